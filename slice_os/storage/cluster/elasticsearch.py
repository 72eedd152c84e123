"""Elasticsearch.

Nothing here needs a script or a licence: what a script would fuse, two searches of one request find
and the client fuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slice_os.errors import LocationError
from slice_os.storage.cluster.client import Client
from slice_os.storage.cluster.dialect import Asker, Dialect, Version, dotted, rewritten
from slice_os.storage.cluster.responses import IndexDescription, nested
from slice_os.storage.cluster.settings import Engine, Layout
from slice_os.storage.findings import Diagnosis

NEAREST = (8, 15)
"""A k-NN query knows `k`; before, all its candidates count."""
ON_DISK = (9, 2)
"""There is bbq_disk, to those who have the licence."""
PATIENT = (9, 2)
"""A search may give its graph up early, and later versions do so unless told: on nested vectors it
then misses many of the 200 nearest passages, for some queries nearly half (seen on 9.5.3)."""
EXCLUDING = (8, 19), (9, 1)
"""From these on vectors can be left out of `_source`, and are unless they are asked for."""
PACKED = (9, 4)
"""Vectors are taken as base64, bytes too."""
NEWEST = (99,)
"""A server that does not say its version is taken for the newest."""
_EARLY = "hnsw_enable_early_termination"


class Elasticsearch(Dialect):
    """See `Dialect`."""

    name, title = "elasticsearch", "Elasticsearch"
    oldest, tested = (8, 14), (8, 19)
    denial = "is unauthorized for "
    template = "elasticsearch/passages.json"
    engines = ("hnsw", "int8_hnsw", "bbq_hnsw", "bbq_disk")
    bodies, is_saturating = "elasticsearch", False
    pit_path, pit_field = "_pit", "id"
    windows = (1_000, 10_000)

    def __init__(self, version: Version | None = None) -> None:
        super().__init__(version)
        self._version = version or NEWEST
        if EXCLUDING[0] <= self._version < (9,) or self._version >= EXCLUDING[1]:
            self.whole_source = {"_source": {"exclude_vectors": False}}
        if version is not None and version >= PACKED:
            self.float_order = ">"

    @classmethod
    def matches(cls, version: Mapping[str, Any]) -> bool:
        # Serverless says so, and has neither shards nor replicas to set.
        return version.get("build_flavor") == "default" and "distribution" not in version

    def closing(self, pit: str) -> dict[str, Any]:
        return {"id": pit}

    def check(self, layout: Layout) -> None:
        super().check(layout)
        if layout.vector_type == "byte" and layout.engine not in ("", "hnsw"):
            raise LocationError(
                f"The engine {layout.engine} makes codes of floats: choose the engine hnsw, or the "
                "vector type float."
            )
        if layout.engine == "bbq_disk" and self._version < ON_DISK:
            raise LocationError(
                f"Elasticsearch {dotted(self._version)} has no engine bbq_disk: choose bbq_hnsw, "
                f"or upgrade to {dotted(ON_DISK)}."
            )

    def put_vector(self, field: dict[str, Any], dimension: int, layout: Layout) -> None:
        field |= {"dims": dimension, "element_type": layout.vector_type}
        engine = layout.engine or self.engines[0]
        graph = field["index_options"] if engine.endswith("hnsw") else {}
        field["index_options"] = {**graph, "type": engine}

    def settings(self) -> dict[str, Any]:
        return {"dense_vector": {_EARLY: False}} if self._version >= PATIENT else {}

    def read_vector(self, field: Mapping[str, Any]) -> tuple[int, str, Engine]:
        engine = field.get("index_options", {}).get("type", "")
        return field["dims"], field.get("element_type", "float"), engine

    def has_hybrid(self, client: Client) -> bool:
        return False  # its retrievers need a licence

    def keeps_degrees(self, layout: Layout) -> bool:
        return layout.engine in ("", "hnsw")

    def adapt(self, body: dict[str, Any]) -> dict[str, Any]:
        return rewritten(body, _without_k) if self._version < NEAREST else body

    def examine(self, asker: Asker, diagnosis: Diagnosis) -> None:
        self.check_version(diagnosis)
        diagnosis.facts["fusions"] = "saturation, rrf, min_max: two searches fused by slice-os"
        alias = asker.address.name
        if not alias:
            return
        indexes = asker.get(f"/{alias}", dict[str, IndexDescription], ignore_unavailable="true")
        for name, index in (indexes or {}).items():
            path = ("properties", "spans", "properties", "vector", "index_options", "type")
            kind = nested(index["mappings"], *path)
            if kind not in (None, "hnsw"):
                diagnosis.add(
                    "notice",
                    f"{name} searches codes of its vectors ({kind}): a dense search misses more, "
                    "and mining reads every word",
                    "keep it if memory is short, else 'slice-os reindex --engine hnsw'.",
                )
            setting = nested(index["settings"]["index"], "dense_vector", _EARLY)
            if self._version >= PATIENT and str(setting).lower() != "false":
                body = f'{{"index.dense_vector.{_EARLY}":false}}'
                diagnosis.add(
                    "warning",
                    f"Searches of {name} may give its graph up early: passages are missed",
                    f"forbid it: {asker.put_settings(name)} '{body}'",
                )


def _without_k(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Leave the number of candidates alone in a k-NN clause."""
    knn = part.get("knn")
    if not isinstance(knn, Mapping):
        return part
    return {**part, "knn": {name: value for name, value in knn.items() if name != "k"}}

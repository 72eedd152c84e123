"""Elasticsearch.

Nothing here needs a script or a licence: what a script would fuse, two searches of one request find
and the client fuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from slice_os.errors import LocationError
from slice_os.storage.cluster import query
from slice_os.storage.cluster.client import Client
from slice_os.storage.cluster.dialect import (
    Asker,
    Dialect,
    Notes,
    Version,
    check_nodes,
    dotted,
    rewritten,
)
from slice_os.storage.cluster.settings import Engine, Layout

NEAREST = (8, 15)
"""A k-NN query knows `k`; before, all its candidates count."""
ON_DISK = (9, 2)
"""There is bbq_disk, to those who have the licence."""
PATIENT = (9, 2)
"""A search may give its graph up early, and later versions do so unless told: on nested vectors it
then misses many of the 200 nearest passages, for some queries nearly half (seen on 9.5.3)."""
EXCLUDING = (8, 19), (9, 1)
"""From these on vectors can be left out of `_source`, and are unless they are asked for."""
_EARLY = "hnsw_enable_early_termination"
NEWEST = (99,)
"""A server that does not say its version is taken for the newest."""
HEAP_SHARE = 0.5
"""Of a node's memory: what vectors are searched from lies outside the heap."""


class Elasticsearch(Dialect):
    """See `Dialect`."""

    name, title = "elasticsearch", "Elasticsearch"
    oldest, tested = (8, 14), (8, 19)
    denial = "is unauthorized for "
    template = "elasticsearch/passages.json"
    engines = ("hnsw", "int8_hnsw", "bbq_hnsw", "bbq_disk")
    pit_path = "_pit"
    pit_field = "id"
    windows = (1_000, 10_000)
    lexical_query = staticmethod(partial(query.lexical_query, dialect="elasticsearch"))
    span_query = staticmethod(partial(query.span_query, dialect="elasticsearch"))
    hybrid_query = None
    hybrid_queries = staticmethod(partial(query.hybrid_queries, dialect="elasticsearch"))
    mining_query = staticmethod(partial(query.mining_query, dialect="elasticsearch"))
    exact_query = staticmethod(partial(query.exact_query, dialect="elasticsearch"))

    def __init__(self, version: Version | None = None) -> None:
        super().__init__(version)
        self._version = version or NEWEST
        if EXCLUDING[0] <= self._version < (9,) or self._version >= EXCLUDING[1]:
            self.whole_source = {"_source": {"exclude_vectors": False}}

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

    def examine(self, asker: Asker, notes: Notes) -> None:
        self.check_version(notes)
        notes.facts["fusions"] = "saturation, rrf, min_max: two searches fused by slice-os"
        _check_nodes(asker, notes)
        name = asker.address.name
        if name:
            indexes = asker.get(f"/{name}", ignore_unavailable="true") or {}
            _check_vectors(indexes, notes)
            if self._version >= PATIENT:
                _check_patience(indexes, asker, notes)
            _note_vectors(asker.get(f"/{name}/_stats/dense_vector"), notes)


def _without_k(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Leave the number of candidates alone in a k-NN clause."""
    knn = part.get("knn")
    if not isinstance(knn, Mapping):
        return part
    return {**part, "knn": {name: one for name, one in knn.items() if name != "k"}}


def _check_nodes(asker: Asker, notes: Notes) -> None:
    """Say if versions differ, breakers have tripped, or the heap leaves vectors no memory."""
    said = asker.get("/_nodes/stats/breaker,jvm,os") or {}
    info = asker.get("/_nodes/_all/jvm", filter_path="nodes.*.version") or {}
    check_nodes(info.get("nodes", {}).values(), notes)
    for node in said.get("nodes", {}).values():
        tripped = sum(one.get("tripped", 0) for one in node.get("breakers", {}).values())
        if tripped:
            notes.find(
                "warning",
                f"Circuit breakers of {node['name']} have tripped {tripped} times: it lacked heap",
                "run fewer searches and bulk requests at a time, or give the node more heap.",
            )
        heap = node.get("jvm", {}).get("mem", {}).get("heap_max_in_bytes", 0)
        memory = node.get("os", {}).get("mem", {}).get("total_in_bytes", 0)
        if memory and heap > memory * (HEAP_SHARE + 0.1):
            notes.find(
                "warning",
                f"The heap of {node['name']} takes {heap / memory:.0%} of its memory, and span "
                "vectors are searched outside of it",
                "make the heap half of the memory, or less.",
            )


def _check_vectors(indexes: Mapping[str, Any], notes: Notes) -> None:
    """Say what the index that holds span vectors loses by its kind."""
    for name, said in indexes.items():
        spans = said["mappings"].get("properties", {}).get("spans", {}).get("properties", {})
        options = spans.get("vector", {}).get("index_options", {})
        kind = options.get("type")
        if kind not in (None, "hnsw"):
            notes.find(
                "notice",
                f"{name} searches codes of its vectors ({kind}): a dense search misses more, and "
                "mining reads every word",
                "keep it if memory is short, else 'slice-os reindex --engine hnsw'.",
            )


def _check_patience(indexes: Mapping[str, Any], asker: Asker, notes: Notes) -> None:
    """Say if searches of an index may give its graph up early."""
    for name, said in indexes.items():
        setting = said["settings"]["index"].get("dense_vector", {}).get(_EARLY)
        if str(setting).lower() != "false":
            put = asker.curl(f"/{name}/_settings", "PUT")
            body = f'{{"index.dense_vector.{_EARLY}":false}}'
            notes.find(
                "warning",
                f"Searches of {name} may give its graph up early: passages are missed",
                f"forbid it: {put} -H 'content-type: application/json' -d '{body}'",
            )


def _note_vectors(stats: Any, notes: Notes) -> None:
    """Note how many vectors there are, and what they take outside of the heap."""
    if not isinstance(stats, Mapping):
        return
    vectors = stats.get("_all", {}).get("primaries", {}).get("dense_vector", {})
    if vectors.get("value_count"):
        notes.facts["span_vectors"] = vectors["value_count"]
    if off_heap := vectors.get("off_heap", {}).get("total_size_bytes"):
        notes.facts["vectors_off_heap_bytes"] = off_heap

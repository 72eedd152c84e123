"""OpenSearch with its k-NN plugin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from slice_os.errors import ClusterError, LocationError
from slice_os.storage.cluster.client import Client
from slice_os.storage.cluster.dialect import Asker, Dialect, Version, dotted, rewritten
from slice_os.storage.cluster.queries import BM25_BOOST, TEXT
from slice_os.storage.cluster.responses import NodePlugins, PluginRow, nested
from slice_os.storage.cluster.settings import Engine, Layout
from slice_os.storage.findings import Diagnosis

KNN, HYBRID = "opensearch-knn", "opensearch-neural-search"
"""The plugin that searches vectors, and the one that fuses queries."""
PAGED = (3, 3)
"""Pages of everything are sorted by `_shard_doc`."""
PACKED = (3, 8)
"""Vectors are taken as base64."""
LUCENE_SCORES = (3,)
"""BM25 is Lucene's; before, scores are k1 + 1 times that, as Elasticsearch's still are."""


class OpenSearch(Dialect):
    """See `Dialect`."""

    name, title = "opensearch", "OpenSearch"
    oldest = (2, 19)  # searches ask for `expand_nested_docs` and `pagination_depth`
    tested = (3, 6)
    denial = "no permissions for ["
    template = "opensearch/passages.json"
    engines = ("lucene", "faiss")
    bodies, is_saturating = "opensearch", True
    pit_path, pit_field = "_search/point_in_time", "pit_id"
    windows = (10_000,)

    def __init__(self, version: Version | None = None) -> None:
        super().__init__(version)
        if version is not None and version >= PACKED:
            self.float_order = "<"

    @classmethod
    def matches(cls, version: Mapping[str, Any]) -> bool:
        return version.get("distribution") == "opensearch"

    def closing(self, pit: str) -> dict[str, Any]:
        return {"pit_id": [pit]}

    def adapt(self, body: dict[str, Any]) -> dict[str, Any]:
        old = self.version is not None and self.version < LUCENE_SCORES
        return rewritten(body, _rescaled) if old else body

    def check(self, layout: Layout) -> None:
        super().check(layout)
        if layout.engine == "faiss" and layout.vector_type == "byte":
            raise LocationError(
                "The engine faiss has no cosine similarity of bytes: choose the engine lucene, or "
                "the vector type float."
            )

    def put_vector(self, field: dict[str, Any], dimension: int, layout: Layout) -> None:
        field |= {"dimension": dimension, "data_type": layout.vector_type}
        field["method"]["engine"] = layout.engine or self.engines[0]

    def read_vector(self, field: Mapping[str, Any]) -> tuple[int, str, Engine]:
        engine = field.get("method", {}).get("engine", "lucene")
        return field["dimension"], field.get("data_type", "float").lower(), engine

    def has_hybrid(self, client: Client) -> bool:
        try:
            rows = client.request("GET", "/_cat/plugins", kind=list[PluginRow], format="json")
            nodes = client.request("GET", "/_cat/nodes", kind=list[Any], format="json", h="name")
        except ClusterError:  # it may not be ours to know
            return False
        having = {row["name"] for row in rows if row["component"] == HYBRID}
        return len(having) == len(nodes)

    def examine(self, asker: Asker, diagnosis: Diagnosis) -> None:
        self.check_version(diagnosis)
        if answer := asker.get("/_nodes/plugins", dict[str, NodePlugins], at="nodes"):
            check_plugins(answer.values(), diagnosis)
        if stats := asker.get("/_plugins/_knn/stats", dict[str, Any]):
            check_graph_memory(stats, diagnosis)

    def check_version(self, diagnosis: Diagnosis) -> None:
        if self.version is not None and self.version < PAGED:
            diagnosis.add(
                "warning",
                f"OpenSearch {dotted(self.version)} cannot sort by _shard_doc: 'mine' "
                "and at low thresholds, 'reindex', 'swap', 'check', 'doctor --deep' and "
                "'--repair', '--from-index' and lexical pages past 10,000 hits fail",
                f"upgrade to {dotted(self.tested)} or newer.",
            )
        else:
            super().check_version(diagnosis)


def _rescaled(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Have a match on the text count as it does where BM25 is Lucene's."""
    match = part.get("match")
    if not (isinstance(match, Mapping) and TEXT in match):
        return part
    options = match[TEXT] if isinstance(match[TEXT], Mapping) else {"query": match[TEXT]}
    return {**part, "match": {TEXT: {**options, "boost": BM25_BOOST["elasticsearch"]}}}


def check_plugins(nodes: Iterable[NodePlugins], diagnosis: Diagnosis) -> None:
    """Add which plugins the nodes have, and what follows from them."""
    by_node = {node["name"]: {plugin["name"] for plugin in node["plugins"]} for node in nodes}
    diagnosis.facts["plugins"] = sorted(set().union(*by_node.values()))
    lacking = {
        plugin: [name for name, plugins in by_node.items() if plugin not in plugins]
        for plugin in (KNN, HYBRID)
    }
    if lacking[KNN]:
        diagnosis.add(
            "error",
            f"The k-NN plugin is missing on {', '.join(lacking[KNN])}",
            f"install {KNN} there ('bin/opensearch-plugin install {KNN}') and restart the node.",
        )
    if not lacking[HYBRID]:
        diagnosis.facts["fusions"] = "saturation, rrf, min_max: one request each"
        return
    diagnosis.facts["fusions"] = (
        "saturation: one request; rrf, min_max: two searches fused by slice-os"
    )
    if len(lacking[HYBRID]) < len(by_node):
        diagnosis.add(
            "warning",
            f"neural-search is on some nodes and not on {', '.join(lacking[HYBRID])}: it is not "
            "used",
            f"install {HYBRID} there too.",
        )


def check_graph_memory(stats: Mapping[str, Any], diagnosis: Diagnosis) -> None:
    """Add whether k-NN's cache of Faiss graphs is full, and whether its breaker has tripped."""
    tripped = bool(stats.get("circuit_breaker_triggered"))
    diagnosis.facts["knn_breaker"] = "triggered" if tripped else "ok"
    if tripped or any(
        nested(stats, "nodes", node, "cache_capacity_reached")
        for node in nested(stats, "nodes") or ()
    ):
        diagnosis.add(
            "warning",
            "k-NN's memory for Faiss graphs is full; the Lucene engine does not use it",
            "if an index here has the engine faiss, add memory or nodes, use the engine lucene, or "
            "raise knn.memory.circuit_breaker.limit.",
        )

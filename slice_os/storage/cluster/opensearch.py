"""OpenSearch with its k-NN plugin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slice_os.errors import ClusterError, LocationError
from slice_os.storage.cluster import query
from slice_os.storage.cluster.client import Client
from slice_os.storage.cluster.dialect import Asker, Dialect, Notes, check_nodes, dotted, rewritten
from slice_os.storage.cluster.query.bodies import BM25_BOOST, TEXT
from slice_os.storage.cluster.response_checks import reading
from slice_os.storage.cluster.settings import Engine, Layout

KNN, HYBRID = "opensearch-knn", "opensearch-neural-search"
"""The plugin that searches vectors, and the one that fuses queries."""
PAGED = (3, 3)
"""Pages of everything are sorted by `_shard_doc`."""
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
    pit_path = "_search/point_in_time"
    pit_field = "pit_id"
    windows = (10_000,)
    lexical_query = staticmethod(query.lexical_query)
    span_query = staticmethod(query.span_query)
    hybrid_query = staticmethod(query.hybrid_query)
    hybrid_queries = staticmethod(query.hybrid_queries)
    mining_query = staticmethod(query.mining_query)
    exact_query = staticmethod(query.exact_query)

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
            rows = client.request("GET", "/_cat/plugins", format="json")
            nodes = client.request("GET", "/_cat/nodes", format="json", h="name")
        except ClusterError:  # it may not be ours to know
            return False
        with reading(client.url):
            having = {row["name"] for row in rows if row["component"] == HYBRID}
        return len(having) == len(nodes)

    def examine(self, asker: Asker, notes: Notes) -> None:
        self.check_version(notes)
        if KNN in _plugins(asker, notes):
            _graphs(asker.get("/_plugins/_knn/stats"), notes)

    def check_version(self, notes: Notes) -> None:
        if self.version is not None and self.version < PAGED:
            notes.find(
                "warning",
                f"OpenSearch {dotted(self.version)} cannot sort by _shard_doc: 'mine' "
                "and at low thresholds, 'reindex', 'swap', 'verify', 'doctor --deep' and "
                "'--repair', '--from-index' and lexical pages past 10,000 hits fail",
                f"upgrade to {dotted(self.tested)} or newer.",
            )
        else:
            super().check_version(notes)


def _rescaled(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Have a match on the text count as it does where BM25 is Lucene's."""
    match = part.get("match")
    if not (isinstance(match, Mapping) and TEXT in match):
        return part
    said = match[TEXT] if isinstance(match[TEXT], Mapping) else {"query": match[TEXT]}
    return {**part, "match": {TEXT: {**said, "boost": BM25_BOOST["elasticsearch"]}}}


def _plugins(asker: Asker, notes: Notes) -> set[str]:
    """Return the plugins that some node has, and say what follows from them."""
    answer = asker.get("/_nodes/plugins")
    if answer is None:
        return {KNN}
    nodes = answer["nodes"].values()
    by_node = {node["name"]: {one["name"] for one in node["plugins"]} for node in nodes}
    notes.facts["plugins"] = sorted(set().union(*by_node.values()))
    check_nodes(nodes, notes)
    lacking = {
        plugin: [name for name, has in by_node.items() if plugin not in has]
        for plugin in (KNN, HYBRID)
    }
    if lacking[KNN]:
        notes.find(
            "error",
            f"The k-NN plugin is missing on {', '.join(lacking[KNN])}",
            f"install {KNN} there ('bin/opensearch-plugin install {KNN}') and restart the node.",
        )
    _fusions(notes, lacking[HYBRID], len(by_node))
    return set(notes.facts["plugins"])


def _fusions(notes: Notes, lacking: list[str], nodes: int) -> None:
    """Say which fusions are one request and which two, fused by the client."""
    if not lacking:
        notes.facts["fusions"] = "saturation, rrf, min_max: one request each"
        return
    notes.facts["fusions"] = "saturation: one request; rrf, min_max: two searches fused by slice-os"
    if len(lacking) < nodes:
        notes.find(
            "warning",
            f"neural-search is on some nodes and not on {', '.join(lacking)}: it is not used",
            f"install {HYBRID} there too.",
        )


def _graphs(stats: Any, notes: Notes) -> None:
    """Say how full k-NN's cache of native graphs is, and whether its breaker has tripped."""
    if not isinstance(stats, dict):
        return
    nodes = stats.get("nodes", {}).values()
    used = sum(node.get("graph_memory_usage", 0) for node in nodes)
    notes.facts["knn_cache_kb"] = used
    notes.facts["knn_breaker"] = "triggered" if stats.get("circuit_breaker_triggered") else "ok"
    full = any(node.get("cache_capacity_reached") for node in nodes)
    if stats.get("circuit_breaker_triggered") or full:
        notes.find(
            "warning",
            "k-NN's memory for Faiss graphs is full"
            + (", and its circuit breaker has tripped" if not full else "")
            + "; the Lucene engine does not use it",
            "if an index here has the engine faiss, add memory or nodes, use the engine lucene, or "
            "raise knn.memory.circuit_breaker.limit.",
        )

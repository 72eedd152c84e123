"""OpenSearch with its k-NN plugin."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from slice_os import query
from slice_os.backends.cluster.client import Client
from slice_os.backends.cluster.dialect import Dialect
from slice_os.backends.cluster.settings import Layout
from slice_os.errors import ClusterError, LocationError

HYBRID = "opensearch-neural-search"
"""The plugin that fuses queries."""


class OpenSearch(Dialect):
    """See `Dialect`."""

    name = "opensearch"
    template = "opensearch/passages.json"
    pit_path = "_search/point_in_time"
    pit_field = "pit_id"
    merge_options = MappingProxyType({"wait_for_completion": "false"})
    lexical_query = staticmethod(query.lexical_query)
    span_query = staticmethod(query.span_query)
    hybrid_query = staticmethod(query.hybrid_query)
    mining_query = staticmethod(query.mining_query)

    @classmethod
    def matches(cls, version: Mapping[str, Any]) -> bool:
        return version.get("distribution") == "opensearch"

    def closing(self, pit: str) -> dict[str, Any]:
        return {"pit_id": [pit]}

    def check(self, layout: Layout) -> None:
        if layout.engine == "faiss" and layout.vector_type == "byte":
            raise LocationError(
                "The engine faiss has no cosine similarity of bytes: choose the engine lucene, or "
                "the vector type float."
            )

    def put_vector(self, field: dict[str, Any], dimension: int, layout: Layout) -> None:
        field |= {"dimension": dimension, "data_type": layout.vector_type}
        field["method"]["engine"] = layout.engine

    def read_vector(self, field: Mapping[str, Any]) -> tuple[int, str, str]:
        engine = field.get("method", {}).get("engine", "lucene")
        return field["dimension"], field.get("data_type", "float").lower(), engine

    def has_hybrid(self, client: Client) -> bool:
        try:
            rows = client.request("GET", "/_cat/plugins", format="json")
            nodes = client.request("GET", "/_cat/nodes", format="json", h="name")
        except ClusterError:  # it may not be ours to know
            return False
        having = {row["name"] for row in rows if row["component"] == HYBRID}
        return len(having) == len(nodes)

"""Bodies for OpenSearch and Elasticsearch as plain JSON, for any client, and answers as hits.

Pure functions: nothing here opens a connection. docs/query.md shows what each returns.
"""

from slice_os.storage.cluster.connector import connector
from slice_os.storage.cluster.facets import facets, read_facets
from slice_os.storage.cluster.hits import read_fused, read_hits
from slice_os.storage.cluster.queries import (
    Dialect,
    exact_query,
    hybrid_queries,
    hybrid_query,
    lexical_query,
    mining_query,
    span_query,
)
from slice_os.storage.cluster.server_fusion import normalization_pipeline, rrf_pipeline
from slice_os.storage.cluster.vectors import VectorType, field_vectors, query_value, radius
from slice_os.storage.filters import filter_clauses, filter_tokens

__all__ = [
    "Dialect",
    "VectorType",
    "connector",
    "exact_query",
    "facets",
    "field_vectors",
    "filter_clauses",
    "filter_tokens",
    "hybrid_queries",
    "hybrid_query",
    "lexical_query",
    "mining_query",
    "normalization_pipeline",
    "query_value",
    "radius",
    "read_facets",
    "read_fused",
    "read_hits",
    "rrf_pipeline",
    "span_query",
]

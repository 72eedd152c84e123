"""Bodies for OpenSearch and Elasticsearch as plain JSON, for any client, and answers as hits.

Pure functions: nothing here opens a connection. docs/query.md shows what each returns.
"""

from slice_os.storage.cluster.query import (
    Dialect,
    VectorType,
    exact_query,
    field_vectors,
    filter_clauses,
    filter_tokens,
    hybrid_queries,
    hybrid_query,
    lexical_query,
    mining_query,
    normalization_pipeline,
    query_value,
    radius,
    read_fused,
    read_hits,
    rrf_pipeline,
    span_query,
)

__all__ = [
    "Dialect",
    "VectorType",
    "exact_query",
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
    "read_fused",
    "read_hits",
    "rrf_pipeline",
    "span_query",
]

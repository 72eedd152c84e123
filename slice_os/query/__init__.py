"""Bodies for OpenSearch as plain JSON, for opensearch-py or curl, and its answers as hits.

Pure functions: nothing here opens a connection. docs/query.md shows what each returns.
"""

from slice_os.query.bodies import exact_query, hybrid_query, lexical_query, span_query
from slice_os.query.filtering import filter_clauses, filter_tokens
from slice_os.query.hits import read_hits
from slice_os.query.mining import mining_query, radius
from slice_os.query.pipelines import normalization_pipeline, rrf_pipeline
from slice_os.query.vectors import VectorType, field_vectors, query_value

__all__ = [
    "VectorType",
    "exact_query",
    "field_vectors",
    "filter_clauses",
    "filter_tokens",
    "hybrid_query",
    "lexical_query",
    "mining_query",
    "normalization_pipeline",
    "query_value",
    "radius",
    "read_hits",
    "rrf_pipeline",
    "span_query",
]

"""Bodies for OpenSearch as plain JSON, for opensearch-py or curl, and its answers as hits.

Pure functions: nothing here opens a connection. docs/query.md shows what each returns.
"""

from slice_os.query.bodies import exact_query as exact_query
from slice_os.query.bodies import hybrid_query as hybrid_query
from slice_os.query.bodies import lexical_query as lexical_query
from slice_os.query.bodies import span_query as span_query
from slice_os.query.filtering import filter_clauses as filter_clauses
from slice_os.query.filtering import filter_tokens as filter_tokens
from slice_os.query.hits import read_hits as read_hits
from slice_os.query.mining import mining_query as mining_query
from slice_os.query.mining import radius as radius
from slice_os.query.pipelines import normalization_pipeline as normalization_pipeline
from slice_os.query.pipelines import rrf_pipeline as rrf_pipeline
from slice_os.query.vectors import VectorType as VectorType
from slice_os.query.vectors import field_vectors as field_vectors
from slice_os.query.vectors import query_value as query_value

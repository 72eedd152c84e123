"""Search, the same on every backend: retrieve candidates, rerank the best, verify their spans."""

from slice_os.search.rerank import is_reranked
from slice_os.search.retrieve import (
    ROUNDING,
    encode_queries,
    encoded_queries,
    query_lengths,
    search_passages,
)
from slice_os.search.verify import Hits, span_text

__all__ = [
    "ROUNDING",
    "Hits",
    "encode_queries",
    "encoded_queries",
    "is_reranked",
    "query_lengths",
    "search_passages",
    "span_text",
]

"""Search, the same on every backend: retrieve candidates, rerank the best, rescore their spans."""

from slice_os.search.rerank import is_reranked as is_reranked
from slice_os.search.rescore import Hits as Hits
from slice_os.search.rescore import read_span as read_span
from slice_os.search.rescore import span_text as span_text
from slice_os.search.retrieve import ROUNDING as ROUNDING
from slice_os.search.retrieve import encode_queries as encode_queries
from slice_os.search.retrieve import encoded_queries as encoded_queries
from slice_os.search.retrieve import query_lengths as query_lengths
from slice_os.search.retrieve import search_passages as search_passages

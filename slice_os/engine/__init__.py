"""What search and mining do with any backend: retrieve, rerank, rescore, choose spans."""

from slice_os.engine.mine import mine_phrases as mine_phrases
from slice_os.engine.mine import select as select
from slice_os.engine.rerank import is_reranked as is_reranked
from slice_os.engine.search import Hits as Hits
from slice_os.engine.search import encode_queries as encode_queries
from slice_os.engine.search import encode_with_words as encode_with_words
from slice_os.engine.search import query_lengths as query_lengths
from slice_os.engine.search import search_passages as search_passages

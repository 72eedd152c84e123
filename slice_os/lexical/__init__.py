"""BM25 as Lucene computes it, for the backends that have no Lucene, and conditions on words."""

from slice_os.lexical.bm25 import K1 as K1
from slice_os.lexical.bm25 import MAX_TERMS as MAX_TERMS
from slice_os.lexical.bm25 import B as B
from slice_os.lexical.bm25 import inverse_document_frequency as inverse_document_frequency
from slice_os.lexical.bm25 import query_terms as query_terms
from slice_os.lexical.bm25 import rounded_lengths as rounded_lengths
from slice_os.lexical.bm25 import terms as terms
from slice_os.lexical.bm25 import text_length as text_length
from slice_os.lexical.wording import LONGEST as LONGEST
from slice_os.lexical.wording import WORD as WORD
from slice_os.lexical.wording import Query as Query
from slice_os.lexical.wording import Wording as Wording
from slice_os.lexical.wording import check_characters as check_characters
from slice_os.lexical.wording import exact_words as exact_words
from slice_os.lexical.wording import parse_query as parse_query
from slice_os.lexical.wording import stands as stands

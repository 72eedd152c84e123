"""BM25 as Lucene computes it, for the backends that have no Lucene, and conditions on words."""

from slice_os.lexical.bm25 import K1, MAX_TERMS, B, inverse_document_frequency, terms
from slice_os.lexical.wording import LONGEST, WORD, Query, Wording, exact_words, parse_query, stands

__all__ = [
    "K1",
    "LONGEST",
    "MAX_TERMS",
    "WORD",
    "B",
    "Query",
    "Wording",
    "exact_words",
    "inverse_document_frequency",
    "parse_query",
    "stands",
    "terms",
]

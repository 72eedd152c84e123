"""BM25 as Lucene computes it, shared by the backends that have no Lucene."""

from slice_os.lexical.bm25 import K1, MAX_TERMS, B, inverse_document_frequency, terms

__all__ = ["K1", "MAX_TERMS", "B", "inverse_document_frequency", "terms"]

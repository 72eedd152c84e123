"""BM25 as Lucene computes it, shared by the backends that have no Lucene."""

from slice_os.lexical.bm25 import MAX_TERMS, B, K1, inverse_document_frequency, terms

__all__ = ["B", "K1", "MAX_TERMS", "inverse_document_frequency", "terms"]

"""Corpus -> encoder -> spans -> backend, in bounded memory.

Reading, splitting and tokenizing run ahead in a thread of their own while the encoder works; the
index is written in the order of the corpus.
"""

from slice_os.pipeline.indexing import Prune, claim_roots, index_documents
from slice_os.pipeline.planning import LOOKED_UP, problem_with
from slice_os.pipeline.report import IndexReport

__all__ = [
    "LOOKED_UP",
    "IndexReport",
    "Prune",
    "claim_roots",
    "index_documents",
    "problem_with",
]

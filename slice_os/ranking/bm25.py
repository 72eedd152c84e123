"""BM25 with b = 0 over documents in memory: a document's length does not count.

score(D) = sum over terms t of the query of qf(t) * idf(t) * tf / (tf + k1), `slice_os.lexical`'s
formula with b = 0; qf and tf count t in the query and in D.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from slice_os.errors import MissingExtraError
from slice_os.lexical import K1, inverse_document_frequency, terms
from slice_os.ranking.stack import Int64
from slice_os.records import Float32


class BM25:
    """The postings of some texts.

    Args:
        texts: The documents.
        stem: Count a term's English stem (Snowball's, also called Porter2) instead of the term.
        idf: Weigh terms by how few documents hold them; else each has the weight 1.

    Raises:
        MissingExtraError: `stem` needs the extra ``ranking``.
    """

    def __init__(self, texts: Sequence[str], *, stem: bool = True, idf: bool = True) -> None:
        self._stem = _stemmer() if stem else str
        self._idf = idf
        self._size = len(texts)
        found: dict[str, list[tuple[int, int]]] = {}
        for number, text in enumerate(texts):
            for term, count in self._terms(text).items():
                found.setdefault(term, []).append((number, count))
        self._postings: dict[str, Int64] = {
            term: np.array(entries, np.int64) for term, entries in found.items()
        }

    def scores(self, query: str) -> Float32:
        """Return the score of each document, float32 ``[D]``; 0 where no term is shared."""
        scores = np.zeros(self._size)
        for term, asked in self._terms(query).items():
            if term in self._postings:
                numbers, counts = self._postings[term].T
                idf = inverse_document_frequency(self._size, len(numbers)) if self._idf else 1.0
                scores[numbers] += asked * idf * counts / (counts + K1)
        return scores.astype(np.float32)

    def _terms(self, text: str) -> Counter[str]:
        stemmed: Counter[str] = Counter()
        for term, count in terms(text).items():
            stemmed[self._stem(term)] += count
        return stemmed


@lru_cache(maxsize=1)
def _stemmer() -> Callable[[str], str]:
    try:
        import snowballstemmer
    except ModuleNotFoundError as exc:
        raise MissingExtraError("Stemming", "ranking") from exc
    stem: Callable[[str], str] = snowballstemmer.stemmer("english").stemWord
    return lru_cache(maxsize=1 << 16)(stem)

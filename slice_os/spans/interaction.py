"""Late interaction: each word of a query with the word of a passage that is nearest to it.

A best span knows one place of a passage. Where the words of a query are said in several, this
knows better which passage is about it; it ranks, and is not a degree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from slice_os.records import Float32

TINY = np.float32(1e-12)
"""What a norm of 0 is taken for: such a vector is near to nothing."""
BLOCK = 512
"""Words of a query that are compared at once: any text is a query, a book too."""


@dataclass(frozen=True, slots=True, eq=False)
class QueryWords:
    """A query's words: `vectors` float32 ``[m, d]`` of unit norm, `shares` ``[m]``, sum 1."""

    vectors: Float32
    shares: Float32


def query_words(vectors: npt.NDArray[Any]) -> QueryWords:
    """Return the words of a query from their contextual vectors ``[m, d]``.

    A word's share is what it contributes to the query's vector q, their sum: q . q_i, if that is
    positive. So "the" counts less than what it stands before, without counting words anywhere.

    Raises:
        ValueError: the vectors add up to nothing.
    """
    rows = vectors.astype(np.float32)
    shares = np.maximum(rows @ rows.sum(axis=0), 0)
    if not shares.sum() > 0:
        raise ValueError("The vectors of the query's words add up to nothing.")
    norms = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), TINY)
    return QueryWords(rows / norms, shares / shares.sum())


def late_interaction(query: QueryWords, passages: Sequence[npt.NDArray[Any]]) -> Float32:
    """Return the sum of ``a_i max_j cos(q_i, w_j)`` over the query's words i, float32 ``[n]``.

    ColBERT's MaxSim (Khattab and Zaharia 2020, equation 3) with the shares a_i instead of ones, in
    [-1, 1]. Each of the `passages` is its word vectors, ``[N, d]``; one without words gives -1.
    """
    counts = np.array([len(words) for words in passages], np.int64)
    filled = counts > 0
    found = np.where(filled, 0, -1).astype(np.float32)
    if not filled.any():
        return found
    words = np.concatenate(passages).astype(np.float32, copy=False)
    norms = np.maximum(np.sqrt(np.einsum("nd,nd->n", words, words)), TINY)
    starts = (np.cumsum(counts) - counts)[filled]
    for first in range(0, len(query.vectors), BLOCK):
        some = slice(first, first + BLOCK)
        cosines = words @ query.vectors[some].T
        cosines /= norms[:, None]
        found[filled] += np.maximum.reduceat(cosines, starts, axis=0) @ query.shares[some]
    return found

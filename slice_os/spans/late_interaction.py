"""Late interaction: each word of a query with the word of a passage that is nearest to it.

A best span knows one place of a passage. Where the words of a query are said in several, this
knows better which passage is about it; it ranks, and is not a degree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from slice_os.types import Float32

TINY = np.float32(1e-12)
"""What a norm of 0 is taken for: such a vector is near to nothing."""


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


def late_interaction(query: QueryWords, words: npt.NDArray[Any]) -> float:
    """Return the sum of ``a_i max_j cos(q_i, w_j)`` over the query's words i, in [-1, 1].

    ColBERT's MaxSim (Khattab and Zaharia 2020, equation 3) with the shares a_i instead of ones.
    `words` are the vectors of a passage's words, ``[N, d]``, each of any length; without words the
    result is -1.
    """
    squares = np.einsum("nd,nd->n", words, words)
    bounds = np.array([0, len(words)])
    return float(late_interactions(query, words @ query.vectors.T, squares, bounds)[0])


def late_interactions(
    query: QueryWords,
    products: npt.NDArray[Any],
    squares: npt.NDArray[Any],
    bounds: npt.NDArray[np.int64],
) -> npt.NDArray[Any]:
    """Return the `late_interaction` of passages ``[p]``, whose words stand one after another.

    Words ``bounds[p]`` to ``bounds[p + 1]`` are those of passage p. `products` ``[N, m]`` are
    theirs with the query's, `squares` ``[N]`` those of each with itself.
    """
    cosines = products / np.maximum(np.sqrt(squares), TINY)[:, None]
    found = np.full(len(bounds) - 1, -1, cosines.dtype)
    if (held := np.diff(bounds) > 0).any():
        nearest = np.maximum.reduceat(cosines, bounds[:-1][held])
        # OpenBLAS was seen to warn of an invalid value in a product of so few, where there is none.
        found[held] = np.einsum("pm,m->p", nearest, query.shares)
    return found

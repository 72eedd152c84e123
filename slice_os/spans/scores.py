"""Exact cosines of a query with every span of a passage and degrees (docs/architecture.md).

Tables are ``[lengths, N]``: row r, column i is the span of ``lengths[r]`` words that starts at
word i; -inf marks what is not a span, so it never wins and never reaches a threshold.
"""

from __future__ import annotations

from typing import Any, overload

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from slice_os.errors import QueryError
from slice_os.spans.norms import Float64
from slice_os.types import Float32


def word_scores(vectors: npt.NDArray[Any], query: npt.NDArray[Any]) -> Float32:
    """Return q . w for every word, float32 ``[N]``, of vectors ``[N, d]`` and a query ``[d]``.

    Without BLAS: for a passage its threads cost more than the product, most on a busy machine.
    """
    scores: Float32 = np.einsum("nd,d->n", vectors, query, dtype=np.float32, casting="same_kind")
    return scores


def span_cosines(word_scores: npt.NDArray[Any], norms: npt.NDArray[Any], lengths: range) -> Float32:
    """Return ``cos(q, i..j) = (c_j - c_i) / n_ij``, float32 ``[len(lengths), N]``.

    `word_scores` is ``vectors @ q``, ``[N]``, for a unit query q; c are its cumulative sums, in
    float64. `norms` is ``[L, N]`` from `span_norms`; where it is 0 (no such span, or one that
    points nowhere) the result is -inf. Rounding may leave [-1, 1] by about 1e-7.

    Raises:
        QueryError: `lengths` is not within 1..L.
        ValueError: the arrays do not belong together, or `lengths` has a step.
    """
    norms = _rows(word_scores, norms, lengths)
    cosines = np.full(norms.shape, -np.inf, np.float32)
    sums = _sums(word_scores, lengths)
    np.divide(sums, norms, out=cosines, where=norms > 0, casting="same_kind")
    return cosines


def stored_cosines(
    word_scores: npt.NDArray[Any], inverse_norms: npt.NDArray[Any], lengths: range
) -> Float32:
    """Return `span_cosines` from inverse norms ``[L, N]``, as `unpack_inverse_norms` gives them.

    A span that runs past the end is -inf; one that points nowhere has a cosine of about 0.

    Raises:
        QueryError: `lengths` is not within 1..L.
        ValueError: the arrays do not belong together, or `lengths` has a step.
    """
    inverse_norms = _rows(word_scores, inverse_norms, lengths)
    cosines = _sums(word_scores, lengths)
    cosines *= inverse_norms
    for row, length in enumerate(lengths):
        cosines[row, max(len(word_scores) - length + 1, 0) :] = -np.inf
    return cosines


def _rows(
    word_scores: npt.NDArray[Any], table: npt.NDArray[Any], lengths: range
) -> npt.NDArray[Any]:
    """Return the rows of ``[L, N]`` that `lengths` names, or raise."""
    if word_scores.ndim != 1 or table.ndim != 2 or table.shape[1] != len(word_scores):
        raise ValueError(f"Scores {word_scores.shape} and norms {table.shape} do not match.")
    if lengths.step != 1:
        raise ValueError("Span lengths are a range without a step.")
    if lengths and not 1 <= lengths[0] <= lengths[-1] <= len(table):
        raise QueryError(
            f"Spans of {lengths[0]} to {lengths[-1]} words were asked for: "
            f"choose lengths from 1 to {len(table)}."
        )
    return table[lengths.start - 1 : lengths.start - 1 + len(lengths)]


def _sums(word_scores: npt.NDArray[Any], lengths: range) -> Float32:
    """Return ``c_j - c_i``, float32 ``[len(lengths), N]``; past the end, anything finite."""
    count = len(word_scores)
    sums = np.zeros(count + 1 + (lengths.stop if lengths else 0))
    np.cumsum(word_scores, dtype=np.float64, out=sums[1 : count + 1])
    (step,) = sums.strides
    ends = as_strided(sums[lengths.start if lengths else 0 :], (len(lengths), count), (step, step))
    return (ends - sums[:count]).astype(np.float32)


@overload
def degree(cosine: float) -> float: ...
@overload
def degree(cosine: npt.NDArray[Any]) -> npt.NDArray[Any]: ...
def degree(cosine: float | npt.NDArray[Any]) -> float | npt.NDArray[Any]:
    """Return the degree of similarity ``(1 + cos) / 2``, clipped to [0, 1]; -inf gives 0.

    A float gives a float; an array gives one of its shape and dtype.
    """
    if isinstance(cosine, np.ndarray):
        return np.clip((1 + cosine) / 2, 0, 1)
    return min(max((1.0 + float(cosine)) / 2.0, 0.0), 1.0)


@overload
def cosine(degree: float) -> float: ...
@overload
def cosine(degree: npt.NDArray[Any]) -> npt.NDArray[Any]: ...
def cosine(degree: float | npt.NDArray[Any]) -> float | npt.NDArray[Any]:
    """Return the cosine of a degree of similarity, ``2 degree - 1``: the inverse of `degree`."""
    return 2 * degree - 1


def contributions(
    word_scores: npt.NDArray[Any], norms: npt.NDArray[Any], i: int, j: int
) -> Float64:
    """Return each word's share of the cosine of span ``i..j``, float64 ``[j - i]``.

    Word k adds ``(q . w_k) / n_ij`` for a unit query q, and these sum to the cosine.
    `word_scores` is ``[N]``, `norms` ``[L, N]``, as for `span_cosines`. A span of norm 0 gives
    zeros.

    Raises:
        ValueError: not ``0 <= i < j <= N``.
    """
    if not 0 <= i < j <= len(word_scores):
        raise ValueError(f"No span {i}..{j} in a passage of {len(word_scores)} words.")
    shares: Float64 = word_scores[i:j].astype(np.float64)
    norm = float(norms[j - i - 1, i])
    return shares / norm if norm > 0 else np.zeros(j - i)

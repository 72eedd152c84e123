"""Exact cosines of a query with every span of a passage (docs/architecture.md).

A span is a half-open run ``i < j`` of word indices of one passage, of at most `max_words` words.
Tables are ``[lengths, N]``: row r, column i is the span of ``lengths[r]`` words that starts at
word i; -inf marks what is not a span, so it never wins and never reaches a threshold.

Nothing of size spans x dimensions is formed: the squared norm of a span is the sum of a square
block of ``G = W W^T`` on its diagonal, so only the band of `max_words` diagonals matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from slice_os.errors import EncoderError, QueryError
from slice_os.types import Float32, Int32, Passage, Words

Float64 = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

MAX_WORDS = 20
"""Default maximum words of a span."""
BLOCK = 128
"""Starts that share one Gram matrix; bounds memory and work for passages of any length."""
CANCELLED = 1e-6
"""Below this share of its words' energy, a squared norm is computed again from the vectors."""
RESOLUTION = 2.0**-46
"""Below this share, a span is rounding of its float32 words (2^-23, squared) and has norm 0."""
TINY = np.float32(1e-12)
"""What a norm of 0 is taken for: such a vector is near to nothing."""


def enumerate_spans(n_words: int, min_words: int = 1, max_words: int = MAX_WORDS) -> Int32:
    """Return every span of `min_words` to `max_words` words of a passage of `n_words` words.

    The result is int32 ``[S, 2]``: rows ``(i, j)``, ordered by start, then by length.

    Raises:
        ValueError: `n_words` is negative, or not ``1 <= min_words <= max_words``.
    """
    if n_words < 0:
        raise ValueError(f"A passage cannot have {n_words} words.")
    if not 1 <= min_words <= max_words:
        raise ValueError(f"No span has {min_words} to {max_words} words.")
    starts = np.arange(n_words, dtype=np.int32)
    ends = starts[:, None] + np.arange(min_words, max_words + 1, dtype=np.int32)
    inside = ends <= n_words
    firsts = np.broadcast_to(starts[:, None], ends.shape)
    return np.stack((firsts[inside], ends[inside]), axis=1)


def full_range(max_words: int = MAX_WORDS) -> range:
    """Return every span length, ``1..max_words``; ValueError if `max_words` is below 1."""
    if max_words < 1:
        raise ValueError(f"The longest span cannot have {max_words} words.")
    return range(1, max_words + 1)


def length_window(query_words: int, max_words: int = MAX_WORDS) -> range:
    """Return the span lengths that a query of `query_words` words is compared with.

    About 0.75 to 1.4 times the query's words n,

        floor(0.75 n) .. max(ceil(1.4 n), n + 3)

    additive at the small end, so that one word still reaches a span of four. A query longer than
    `max_words` is treated as one of `max_words` words, so the range is never empty (15..20 of 20).

    Raises:
        QueryError: the query has no word.
        ValueError: `max_words` is below 1.
    """
    if query_words < 1:
        raise QueryError("The query holds no words: give at least one.")
    words = min(query_words, full_range(max_words)[-1])
    shortest = max(1, 3 * words // 4)
    longest = min(max_words, max((14 * words + 9) // 10, words + 3))
    return range(shortest, longest + 1)


def fit_window(lengths: range, n_words: int) -> range:
    """Return `lengths` for a passage of `n_words` words: a shorter passage counts as a whole.

    Without this a passage of five words could never answer a query of fifteen.
    """
    return range(max(min(lengths.start, n_words), 1), lengths.stop)


def shared_words(starts: Int32, ends: Int32, passage: Passage) -> tuple[int, int]:
    """Return how many words a passage shares with the one before, and the first it shares after.

    `Passage.before` and `after` say so in characters, as the words' offsets, int32 ``[N]``, do.
    """
    first = int(np.searchsorted(ends, passage.before, side="right"))
    last = len(starts) - int(np.searchsorted(starts, len(passage.text) - passage.after))
    return first, last if passage.after else 0


def own_norms(norms: Float32, words: Words, passage: Passage) -> Float32:
    """Return span norms, float32 ``[L, N]``, that are 0 where a neighbour has the span."""
    first, last = shared_words(words.starts, words.ends, passage)
    if not first and not last:
        return norms
    counted: Float32 = norms.copy()
    for length in range(1, min(len(norms), first) + 1):
        counted[length - 1, : min(first // 2, first - length + 1)] = 0
    if last:
        counted[:, len(words) - last + last // 2 :] = 0
    return counted


def checked(vectors: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return `vectors` if they are finite (else EncoderError) and ``[N, d]`` (else ValueError)."""
    if vectors.ndim != 2:
        raise ValueError(f"Word vectors have two axes, not {vectors.ndim}.")
    if not np.isfinite(vectors).all():
        raise EncoderError("the encoder gave a vector that is not a number")
    return vectors


def prefix_sums(vectors: npt.NDArray[Any]) -> Float64:
    """Return ``P`` of docs/architecture.md, float64 ``[N+1, d]``, of word vectors ``[N, d]``.

    ``P[j] - P[i]`` is the vector of span ``i..j``. It is float64 because that difference cancels:
    in float32 its relative error grows with the passage, to 1e-3 at 50,000 words.
    """
    sums = np.zeros((len(vectors) + 1, vectors.shape[1]))
    np.cumsum(vectors, axis=0, dtype=np.float64, out=sums[1:])
    return sums


def span_norms(vectors: npt.NDArray[Any], max_words: int = MAX_WORDS) -> Float32:
    """Return the norms of all spans, float32 ``[L, N]``, of word vectors ``[N, d]``.

    Row ``l - 1``, column ``i`` is ``||w_i + ... + w_{i+l-1}||``; it is 0 where the span runs past
    the end, and where the words cancel to less than float32 rounding of themselves. Every other
    entry is right to 1e-6 of itself, also under cancellation.

    Raises:
        ValueError: `vectors` has not two axes, or `max_words` is below 1.
        EncoderError: a value is NaN or infinite.
    """
    return np.sqrt(squared_norms(vectors, max_words)[0]).astype(np.float32)


def squared_norms(vectors: npt.NDArray[Any], max_words: int) -> tuple[Float64, Bools]:
    """Return squared span norms, float64 ``[L, N]``, and which of them had cancelled.

    Layout, zeros and errors are those of `span_norms`. The bool ``[L, N]`` marks the spans whose
    squared norm is under `CANCELLED` of their words' energy: these were summed from the vectors.
    """
    rows = len(full_range(max_words))
    count = len(checked(vectors))
    squares = np.empty((rows, count))
    energies = np.zeros(count + rows)
    starts = BLOCK + 32 if count <= BLOCK + 32 else BLOCK  # no small rest beside one block
    for begin in range(0, count, starts):
        end = min(begin + starts, count)
        block = vectors[begin : end + rows - 1].astype(np.float64)
        squares[:, begin:end], energies[begin:end] = _block_norms(block, rows, end - begin)
    mass = np.cumsum(as_strided(energies, (rows, count), energies.strides * 2), axis=0)
    for table in (squares, mass):
        for row in range(1, min(rows, count + 1)):
            table[row, count - row :] = 0.0
        table[count + 1 :] = 0.0
    cancelled = squares < CANCELLED * mass
    if cancelled.any():
        _sum_again(squares, cancelled, vectors)
        squares[squares <= RESOLUTION * mass] = 0.0
    return squares, cancelled


def _block_norms(words: Float64, rows: int, starts: int) -> tuple[Float64, Float64]:
    """Return squared norms ``[rows, starts]`` and word energies ``[starts]`` of one block.

    With ``band[o, j] = w_j . w_{j-o}``, adding word ``j`` to a span of ``l - 1`` words adds
    ``gain[l-1, j] = |w_j|^2 + 2 (band[1, j] + ... + band[l-1, j])``; a squared norm is the sum of
    the gains of its words. (The same sum as n^2(i,l) = n^2(i,l-1) + n^2(i+1,l-1) - n^2(i+1,l-2)
    + 2 w_i . w_{i+l-1}, in two cumulative sums instead of l dependent steps.)
    """
    count = len(words)
    gram = np.zeros((count, rows - 1 + count))
    gram[:, rows - 1 :] = words @ words.T
    row, column = gram.strides
    band = as_strided(gram[:, rows - 1 :], (rows, count), (-column, row + column))
    energies = band[0, :starts].copy()
    gains = np.zeros((rows, count + rows))
    np.cumsum(band, axis=0, out=gains[:, :count])
    gains[:, :count] *= 2.0
    gains[:, :count] -= band[0]
    row, column = gains.strides
    return np.cumsum(as_strided(gains, (rows, starts), (row + column, column)), axis=0), energies


def _sum_again(squares: Float64, cells: Bools, vectors: npt.NDArray[Any]) -> None:
    """Replace the squared norms at `cells` by those of the summed vectors, `BLOCK` at a time."""
    for row in np.flatnonzero(cells.any(axis=1)):
        starts = np.flatnonzero(cells[row])
        for begin in range(0, len(starts), BLOCK):
            rows = starts[begin : begin + BLOCK]
            total = vectors[rows].astype(np.float64)
            for word in range(1, row + 1):
                total += vectors[rows + word]
            squares[row, rows] = np.einsum("nd,nd->n", total, total)


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
    sums, norms = _sums_and_rows(word_scores, norms, lengths)
    cosines = np.full(norms.shape, -np.inf, np.float32)
    np.divide(sums, norms, out=cosines, where=norms > 0, casting="same_kind")
    return cosines


def stored_cosines(
    word_scores: npt.NDArray[Any], inverse_norms: npt.NDArray[Any], lengths: range
) -> Float32:
    """Return `span_cosines` from inverse norms ``[L, N]``, as `unpack_inverse_norms` gives them.

    A span that runs past the end is -inf; one that points nowhere has a cosine of about 0.
    """
    cosines, inverse_norms = _sums_and_rows(word_scores, inverse_norms, lengths)
    cosines *= inverse_norms
    for row, length in enumerate(lengths):
        cosines[row, max(len(word_scores) - length + 1, 0) :] = -np.inf
    return cosines


def _sums_and_rows(
    word_scores: npt.NDArray[Any], table: npt.NDArray[Any], lengths: range
) -> tuple[Float32, npt.NDArray[Any]]:
    """Return ``c_j - c_i`` (past the end, anything finite) and the rows of ``[L, N]`` of lengths.

    Both are ``[len(lengths), N]``.
    """
    count = len(word_scores)
    if word_scores.ndim != 1 or table.ndim != 2 or table.shape[1] != count:
        raise ValueError(f"Scores {word_scores.shape} and norms {table.shape} do not match.")
    if lengths.step != 1:
        raise ValueError("Span lengths are a range without a step.")
    if lengths and not 1 <= lengths[0] <= lengths[-1] <= len(table):
        raise QueryError(
            f"Spans of {lengths[0]} to {lengths[-1]} words were asked for: "
            f"choose lengths from 1 to {len(table)}."
        )
    sums = np.zeros(count + 1 + (lengths.stop if lengths else 0))
    np.cumsum(word_scores, dtype=np.float64, out=sums[1 : count + 1])
    (step,) = sums.strides
    ends = as_strided(sums[lengths.start if lengths else 0 :], (len(lengths), count), (step, step))
    rows = table[lengths.start - 1 : lengths.start - 1 + len(lengths)]
    return (ends - sums[:count]).astype(np.float32), rows


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


@dataclass(frozen=True, slots=True, eq=False)
class QueryWords:
    """A query's words, for late interaction.

    Late interaction compares each word of a query with the word of a passage that is nearest to
    it. A best span knows one place of a passage; where the words of a query are said in several,
    this knows better which passage is about it. It ranks, and is not a degree.

    Attributes:
        vectors: float32 ``[m, d]`` of unit norm.
        shares: ``[m]``, what each word counts; their sum is 1.
    """

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


def late_interactions(
    query: QueryWords,
    products: npt.NDArray[Any],
    squares: npt.NDArray[Any],
    bounds: npt.NDArray[np.int64],
) -> npt.NDArray[Any]:
    """Return the late interaction of a query with passages ``[p]``, in [-1, 1].

    That is the sum of ``a_i max_j cos(q_i, w_j)`` over the query's words i: ColBERT's MaxSim
    (Khattab and Zaharia 2020, equation 3) with the shares a_i instead of ones; -1 for a passage
    without words. Words ``bounds[p]`` to ``bounds[p + 1]`` are those of passage p. `products`
    ``[N, m]`` are theirs with the query's, `squares` ``[N]`` those of each with itself.
    """
    cosines = products / np.maximum(np.sqrt(squares), TINY)[:, None]
    interactions = np.full(len(bounds) - 1, -1, cosines.dtype)
    if (held := np.diff(bounds) > 0).any():
        nearest = np.maximum.reduceat(cosines, bounds[:-1][held])
        # OpenBLAS was seen to warn of an invalid value in a product of so few, where there is none.
        interactions[held] = np.einsum("pm,m->p", nearest, query.shares)
    return interactions

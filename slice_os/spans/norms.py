"""Norms of every span of a passage from the Gram matrix of its words (docs/architecture.md).

Nothing of size spans x dimensions is formed: the squared norm of a span is the sum of a square
block of ``G = W W^T`` on its diagonal, so only the band of `max_words` diagonals matters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from slice_os.errors import EncoderError
from slice_os.spans.lengths import MAX_WORDS, full_range
from slice_os.types import Float32

Float64 = npt.NDArray[np.float64]

BLOCK = 128
"""Starts that share one Gram matrix; bounds memory and work for passages of any length."""

CANCELLED = 1e-6
"""Below this share of its words' energy, a squared norm is computed again from the vectors."""

RESOLUTION = 2.0**-46
"""Below this share, a span is rounding of its float32 words (2^-23, squared) and has norm 0."""


def checked(vectors: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return `vectors` if they are finite and ``[N, d]``.

    Raises:
        ValueError: the array has not two axes.
        EncoderError: a value is NaN or infinite.
    """
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


def squared_norms(
    vectors: npt.NDArray[Any], max_words: int
) -> tuple[Float64, npt.NDArray[np.bool_]]:
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
        squares[:, begin:end], energies[begin:end] = _block(block, rows, end - begin)
    mass = np.cumsum(as_strided(energies, (rows, count), energies.strides * 2), axis=0)
    for row in range(1, min(rows, count + 1)):
        squares[row, count - row :] = 0.0
        mass[row, count - row :] = 0.0
    squares[count + 1 :] = 0.0
    mass[count + 1 :] = 0.0
    cancelled = squares < CANCELLED * mass
    if cancelled.any():
        _sum_again(squares, cancelled, vectors)
        squares[squares <= RESOLUTION * mass] = 0.0
    return squares, cancelled


def _block(words: Float64, rows: int, starts: int) -> tuple[Float64, Float64]:
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


def _sum_again(squares: Float64, cells: npt.NDArray[np.bool_], vectors: npt.NDArray[Any]) -> None:
    """Replace the squared norms at `cells` by those of the summed vectors, `BLOCK` at a time."""
    for row in np.flatnonzero(cells.any(axis=1)):
        starts = np.flatnonzero(cells[row])
        for begin in range(0, len(starts), BLOCK):
            some = starts[begin : begin + BLOCK]
            total = vectors[some].astype(np.float64)
            for word in range(1, row + 1):
                total += vectors[some + word]
            squares[row, some] = np.einsum("nd,nd->n", total, total)

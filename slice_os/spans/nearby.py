"""Which nearby spans of a passage are nearly parallel, for all spans at once.

With P the prefix sums, ``P_j - P_i`` the vector of A = i..j and n(a, b) = ||P_b - P_a||, the
identity for four points

    2 A.B = n^2(i', j) + n^2(i, j') - n^2(j, j') - n^2(i, i')        B = i'..j'

gives the cosine of any two spans from the table of squared norms alone. For one pair of shifts
(i' - i, j' - j) that is a handful of array operations over all spans A.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from slice_os.spans.norms import Float64

Bools = npt.NDArray[np.bool_]

REACH = 4
"""Maximum distance in words of a span's start, and of its end, from its representative's.

A larger one gains little: 6 instead of 4 keeps 2 to 5 % fewer spans on synthetic text for twice the
work.
"""

ROUNDING = 1e-7
"""Added to the tolerance: an upper bound of what rounding does to a cosine of two sound spans."""


def represented(squares: Float64, sound: Bools, tolerance: float) -> Bools:
    """Return which spans each span may represent, bool ``[S, bits]`` with S = starts * L.

    `squares` is float64 ``[L + REACH, >= starts]``, squared norms by length and start; `sound` is
    bool ``[L, starts]``, the spans whose norm is neither 0 nor cancelled. Row
    ``start * L + length - 1`` describes the span A; its column ``centre + o``, with `centre` the
    middle column, the span whose row is o further: true where it is A itself, or where both are
    sound, share a word and have cosine >= `tolerance`.
    """
    longest, starts = sound.shape
    centre = REACH * longest
    size = starts * longest
    bits = np.zeros((2 * centre + 1, size + 2 * centre), np.bool_)
    bits[centre] = True
    for offset, shortest, parallel in _shifts(squares, sound, tolerance):
        rows = slice(shortest - 1, shortest - 1 + len(parallel))
        for column, first in ((offset, centre), (-offset, centre + offset)):  # A to B and B to A
            cells = bits[centre + column, first : first + size].reshape(starts, longest)
            cells[:, rows] |= parallel.T
    return np.ascontiguousarray(bits[:, centre : centre + size].T)


def _shifts(squares: Float64, sound: Bools, tolerance: float) -> Iterator[tuple[int, int, Bools]]:
    """Yield the nearly parallel pairs A, B, one pair of shifts at a time, each pair of spans once.

    A triple is how much further B's row is than A's, A's shortest length, and bool
    ``[lengths, starts]`` over A.
    """
    longest, starts = sound.shape
    table = np.zeros((longest + REACH + 1, starts + longest + 2 * REACH))
    width = min(squares.shape[1], table.shape[1])
    table[1:, :width] = squares[:, :width]
    # Scaled so that a product of two is 2 (tolerance + ROUNDING) |A| |B|; inf is reached by none.
    limits = np.full((longest + 1, starts + REACH), np.inf)
    np.sqrt(table[1 : longest + 1, :starts], out=limits[1:, :starts], where=sound)
    limits *= np.sqrt(2.0 * (tolerance + ROUNDING))
    # n^2(j, j') by length and start, whose sum is j, for every shift of the end; j' is before j
    # where the shift is negative.
    between = {
        beyond: sliding_window_view(
            np.concatenate((np.zeros(max(-beyond, 0)), table[abs(beyond)])), starts
        )
        for beyond in range(-REACH, REACH + 1)
    }
    for later in range(REACH + 1):
        for beyond in range(-REACH if later else 1, REACH + 1):
            grown = beyond - later
            low = max(later, -grown, 0) + 1  # they share a word and B has one
            high = min(longest, longest - grown) + 1
            if low >= high:
                continue
            twice = table[low - later : high - later, later : later + starts].copy()
            twice += table[low + beyond : high + beyond, :starts]
            twice -= between[beyond][low:high]
            twice -= table[later, :starts]
            limit = (
                limits[low:high, :starts]
                * (limits[low + grown : high + grown, later : later + starts])
            )
            yield later * longest + grown, low, twice >= limit

"""A cover: the few spans of a passage that represent all of them (docs/architecture.md).

The greedy choice of set cover (Chvatal 1979): keep the span that represents the most spans that
no kept span represents yet, until none is left. The sets are those of `nearby`; they are held as
the bits of Python integers, where one step of the greedy choice is one `&` and one bit count.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import repeat
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from slice_os.spans.cosines import MAX_WORDS, Bools, Float64, full_range, squared_norms
from slice_os.types import Int32

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


BLOCK = 128
"""Starts that are covered together: a step's bits, hence its cost, do not grow with the passage."""
STEP = 0.01
"""Between the tolerances that `bounded_cover` tries."""


def cover(vectors: npt.NDArray[Any], tolerance: float, max_words: int = MAX_WORDS) -> Int32:
    """Return a cover of the spans of word vectors ``[N, d]``, int32 ``[K, 2]`` of ``(i, j)``.

    Every span of 1..`max_words` words with a norm has a cosine of at least `tolerance` to a row of
    the result that shares a word with it. Spans of norm 0 (see `span_norms`) point nowhere: they
    are neither kept nor represented. Rows are ordered by start, then end; equal input gives equal
    output. A kept span represents spans whose start and end are within `REACH` words of its own
    and, past `BLOCK` words, whose starts are in the same block.

    Raises:
        ValueError: `tolerance` is not in (0, 1], `vectors` has not two axes, `max_words` below 1.
        EncoderError: a value is NaN or infinite.
    """
    longest, squares, cancelled = _checked(vectors, tolerance, max_words)
    return _covered(squares, cancelled, longest, tolerance)


def bounded_cover(
    vectors: npt.NDArray[Any], tolerance: float, most: int, max_words: int = MAX_WORDS
) -> tuple[Int32, float]:
    """Return a cover of at most `most` spans, as `cover` does, and the tolerance that it keeps.

    That is `tolerance` if so few spans keep it, else the highest of the tolerances below, `STEP`
    apart, that so few keep; 0.0, which promises nothing, if none does (a passage of hundreds of
    words): then the result is `most` of the spans, evenly spread, of the smallest cover tried.

    Raises:
        ValueError: `most` is below 1, or as `cover` does.
        EncoderError: a value is NaN or infinite.
    """
    if most < 1:
        raise ValueError(f"A cover has at least one span, not {most}.")
    longest, squares, cancelled = _checked(vectors, tolerance, max_words)

    def covered(steps: int) -> Int32:
        return _covered(squares, cancelled, longest, tolerance - STEP * steps)

    last = math.ceil(tolerance / STEP) - 1
    kept = covered(0)
    if len(kept) <= most:
        return kept, tolerance
    # The spans of a cover become fewer about as the angle grows, so the first guess is near.
    wide = min(math.acos(min(tolerance, 1 - STEP)) * len(kept) / most, math.pi / 2)
    steps = min(max(round((tolerance - math.cos(wide)) / STEP), 1), last)
    kept = covered(steps)
    while len(kept) > most and steps < last:
        steps += 1
        kept = covered(steps)
    if len(kept) > most:
        return kept[np.linspace(0, len(kept) - 1, most).round().astype(int)], 0.0
    while steps > 1 and len(more := covered(steps - 1)) <= most:
        steps, kept = steps - 1, more
    return kept, round(tolerance - STEP * steps, 6)


def _checked(
    vectors: npt.NDArray[Any], tolerance: float, max_words: int
) -> tuple[int, Float64, Bools]:
    """Return the longest span in words, and the squared norms that `_covered` needs."""
    if not 0.0 < tolerance <= 1.0:
        raise ValueError(f"A tolerance is a cosine above 0 and at most 1, not {tolerance}.")
    longest = full_range(max_words)[-1]
    return longest, *squared_norms(vectors, longest + REACH)


def _covered(squares: Float64, cancelled: Bools, longest: int, tolerance: float) -> Int32:
    count = squares.shape[1]
    blocks = max(1, -(-count // BLOCK))
    kept = []
    for block in range(blocks):
        begin, end = count * block // blocks, count * (block + 1) // blocks
        around = slice(begin, end + longest + REACH)
        present = squares[:longest, begin:end] > 0
        sound = present & ~cancelled[:longest, begin:end]
        near = represented(squares[:, around], sound, tolerance)
        cells = _greedy(near, present)
        kept.append(np.stack((cells // longest, cells % longest + 1), axis=1))
        kept[-1][:, 0] += begin
        kept[-1][:, 1] += kept[-1][:, 0]
    return np.concatenate(kept).astype(np.int32)


def _greedy(near: Bools, present: Bools) -> npt.NDArray[np.int64]:
    """Return the kept cells ``start * L + length - 1``, ascending, of `represented`'s result.

    `near` is bool ``[S, bits]``; `present`, bool ``[L, starts]``, are the spans to be represented.
    A span's gain only falls while others are kept, so spans wait in the bucket of the gain they
    last had and are counted again when it is their turn (Minoux's lazy greedy choice).
    """
    cells = np.flatnonzero(present.T)
    packed = np.packbits(near, axis=1, bitorder="little")
    rows: list[bytes] = packed.view(f"V{packed.shape[1]}").ravel().tolist()
    order: Literal["little"] = "little"
    sets = list(map(int.from_bytes, rows, repeat(order)))
    buckets: list[list[int]] = [[] for _ in range(near.shape[1] + 1)]
    for cell in cells.tolist():
        buckets[sets[cell].bit_count()].append(cell)
        sets[cell] <<= cell
    centre = near.shape[1] // 2
    waiting = np.zeros(centre + len(near), np.uint8)
    waiting[centre + cells] = 1
    left = int.from_bytes(np.packbits(waiting, bitorder="little").tobytes(), "little")
    kept = []
    for gain in range(len(buckets) - 1, 1, -1):
        for cell in buckets[gain]:
            fresh = sets[cell] & left
            size = fresh.bit_count()
            if size == gain:
                kept.append(cell)
                left ^= fresh
            else:
                buckets[size].append(cell)
    bits = np.frombuffer(left.to_bytes(len(waiting) // 8 + 1, "little"), np.uint8)
    alone = np.flatnonzero(np.unpackbits(bits, bitorder="little")) - centre
    return np.sort(np.concatenate((np.array(kept, np.int64), alone)))

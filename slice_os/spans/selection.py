"""The best spans of a table of cosines.

Tables are those of `slice_os.spans.scores`. Ties are always broken alike: higher cosine, then
fewer words, then further to the front, which is the order of the cells in memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

CHUNK = 4096
"""Candidates examined between two removals of those that overlap a chosen span."""


class ScoredSpan(NamedTuple):
    """Words ``i..j`` (half-open) and the cosine of their span with the query."""

    i: int
    j: int
    cosine: float


def best_span(cosines: npt.NDArray[Any], lengths: range) -> ScoredSpan:
    """Return the best span of `cosines` ``[len(lengths), N]``; ``(0, 0, -inf)`` if there is none.

    Raises:
        ValueError: `cosines` has not one row a length.
    """
    _check(cosines, lengths)
    if not cosines.size:
        return ScoredSpan(0, 0, -np.inf)
    cell = int(np.argmax(cosines))
    if cosines.flat[cell] == -np.inf:
        return ScoredSpan(0, 0, -np.inf)
    return _span(cosines, lengths, cell)


def top_spans(
    cosines: npt.NDArray[Any],
    lengths: range,
    k: int,
    costs: npt.NDArray[Any] | float = 0.0,
) -> list[ScoredSpan]:
    """Return the `k` best spans of `cosines` ``[len(lengths), N]``, best first; fewer if so few.

    The best are those of the highest cosines less their `costs`, of the same shape.

    Raises:
        ValueError: `cosines` has not one row a length, or `k` is negative.
    """
    _check(cosines, lengths)
    if k < 0:
        raise ValueError(f"There are no {k} spans.")
    flat = (cosines - costs).ravel()
    if 0 < k < flat.size:
        cells = np.flatnonzero(flat >= np.partition(flat, flat.size - k)[flat.size - k])
    else:
        cells = np.arange(flat.size if k else 0)
    cells = cells[flat[cells] > -np.inf]
    order = np.argsort(-flat[cells], kind="stable")[:k]
    return [_span(cosines, lengths, cell) for cell in cells[order].tolist()]


def spans_above(
    cosines: npt.NDArray[Any],
    lengths: range,
    threshold: float,
    costs: npt.NDArray[Any] | float = 0.0,
) -> list[ScoredSpan]:
    """Return the matches of `cosines` ``[len(lengths), N]``, best first.

    Spans with a cosine of at least `threshold` (rounded to the table's dtype); of those that
    overlap only the best stays, by its cosine less its cost: greedy non-maximum suppression, so
    every span above the threshold is a match or shares a word with a better one. Work: one sort of
    the candidates, and for every `CHUNK` of them one pass over the words.

    Raises:
        ValueError: `cosines` has not one row a length.
    """
    _check(cosines, lengths)
    flat = cosines.ravel()
    cells = np.flatnonzero((flat >= flat.dtype.type(threshold)) & (flat > -np.inf))
    order = np.argsort(-(cosines - costs).ravel()[cells], kind="stable")
    cells = cells[order]
    count = cosines.shape[1]
    taken = bytearray(count)
    matches = []
    for begin in range(0, len(cells), CHUNK):
        some = cells[begin : begin + CHUNK]
        rows, starts = np.divmod(some, count)
        ends = starts + rows + lengths.start
        before = np.zeros(count + 1, np.int64)
        np.cumsum(np.frombuffer(taken, np.uint8), dtype=np.int64, out=before[1:])
        free = before[ends] == before[starts]
        for i, j, value in zip(
            starts[free].tolist(), ends[free].tolist(), flat[some[free]].tolist(), strict=True
        ):
            if taken.find(1, i, j) < 0:
                taken[i:j] = b"\1" * (j - i)
                matches.append(ScoredSpan(i, j, value))
    return matches


def _span(cosines: npt.NDArray[Any], lengths: range, cell: int) -> ScoredSpan:
    row, start = divmod(cell, cosines.shape[1])
    return ScoredSpan(start, start + lengths[row], float(cosines[row, start]))


def _check(cosines: npt.NDArray[Any], lengths: range) -> None:
    if cosines.ndim != 2 or len(cosines) != len(lengths) or lengths.step != 1:
        raise ValueError(f"A table {cosines.shape} has not one row a length of {lengths}.")

"""Windows of long texts, and batches of nearly equal length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from slice_os.encoder.tokens import TokenizedText

Int64 = npt.NDArray[np.int64]
_OVERLAP = 64


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """A row of a batch: a text, or one window of it.

    Attributes:
        owner: Which text of the chunk it belongs to.
        ids: int64 token ids.
        skip: How many of its tokens are there for context only, before those that count.
        stop: Where those that count end.
        first: int64; where each word begins, counted from `skip`. The first may be the rest of a
            word of the window before.
        word: Number of the first word in the text.
    """

    owner: int
    ids: Int64
    skip: int
    stop: int
    first: Int64
    word: int


def windows(tokens: int, capacity: int) -> Iterator[tuple[int, int, int, int]]:
    """Cut a text of `tokens` tokens into windows of at most `capacity`.

    Yields ``(start, end, low, high)``: the window ``start:end`` and the tokens ``low:high`` that
    are taken from it. Every token is taken once, from the window where its nearer edge is
    furthest away; the edges of the text do not count as edges.
    """
    overlap = min(_OVERLAP, capacity // 4)
    start = low = 0
    while start + capacity < tokens:
        # The last window moves back, so that it is as long as the others.
        following = min(start + capacity - overlap, tokens - capacity)
        high = (following + start + capacity) // 2
        yield start, start + capacity, low, high
        start, low = following, high
    if tokens:
        yield start, tokens, low, tokens


def segments(owner: int, text: TokenizedText, capacity: int) -> Iterator[Segment]:
    """Yield the windows of `text`, less those that hold no word."""
    first, owned = text.words.first, text.words.owned
    if not owned:
        return
    if len(text.ids) <= capacity:
        yield Segment(owner, text.ids, 0, owned, first, 0)
        return
    for start, end, low, high in windows(len(text.ids), capacity):
        stop = min(high, owned)
        if low >= stop:
            continue
        word = int(first.searchsorted(low, side="right")) - 1
        begins = np.maximum(first[word : first.searchsorted(stop)] - low, 0)
        yield Segment(owner, text.ids[start:end], low - start, stop - start, begins, word)


def batches(rows: Sequence[Segment], budget: int, special: int) -> Iterator[list[Segment]]:
    """Group `rows` into batches of at most `budget` tokens with padding, longest rows first.

    A row longer than the budget is a batch of its own. Longest first, because many threads then
    finish at about the same time.
    """
    batch: list[Segment] = []
    width = 0
    for row in sorted(rows, key=lambda one: len(one.ids), reverse=True):
        if not batch or (len(batch) + 1) * width > budget:
            if batch:
                yield batch
            batch, width = [], len(row.ids) + special
        batch.append(row)
    if batch:
        yield batch

"""The passages that a phrase is taught with, read once: the best of an index, and some at random.

Every passage stands for a number of the index's, its weight: one that was found stands for itself,
one that was drawn at random for as many as it was drawn from. So what is estimated from them holds
for the index.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from slice_os.engine.rescore import span_text
from slice_os.spans import SpanTables, length_window
from slice_os.storage.contract import StoredPassage
from slice_os.text import count_words
from slice_os.types import Float32, Int32

BEST, RANDOM = 400, 300
"""Passages near to the phrases, and at random, that teaching begins with."""
FURTHER = 100
"""Passages near to the taught vector that a round may add."""
READ_WHOLE = 20_000
"""Passages of an index of which each may be drawn; of a larger one, those of some documents."""
Key = tuple[str, int]
"""A document and the number of a passage."""
Span = tuple[int, int, int]
"""A passage of the pool by its row, and words i to j of it, half-open."""
Float64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Best:
    """The best span of every passage for a vector: its cosine ``[P]``, and words ``[P]`` i and j.

    `table` ``[N]`` holds the best cosine of the spans that begin with each word of the pool, and
    `lengths` ``[N]`` their words.
    """

    cosines: Float32
    starts: Int32
    ends: Int32
    table: Float32
    lengths: Int32


class Pool:
    """Passages with all their spans; words lie one after the other, N of P passages."""

    def __init__(self, window: range) -> None:
        """Begin without any, for spans of a window of lengths (`SpanTables`: whole sentences)."""
        self.window = window
        self.stored: list[StoredPassage] = []
        self.rows: dict[Key, int] = {}
        self.found: list[bool] = []
        """Whether a search has found a passage; else it was drawn at random."""
        self.total = 0
        """Passages of the index."""
        self._waiting: list[StoredPassage] = []
        self._vectors = np.zeros((0, 0), np.float32)
        self._spans = np.zeros((0, 0), np.float32)
        self.bounds = np.zeros(1, np.int64)

    def __len__(self) -> int:
        return len(self.stored)

    def add(self, passages: Iterable[StoredPassage], *, found: bool = True) -> None:
        """Add passages that are not there yet: those that a search found, or drawn at random."""
        for stored in passages:
            key = stored.passage.document, stored.passage.number
            if key in self.rows:
                self.found[self.rows[key]] |= found
            elif has_known_words(stored):
                self.rows[key] = len(self.stored)
                self.stored.append(stored)
                self.found.append(found)
                self._waiting.append(stored)

    def _take_in(self) -> None:
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        counts = [len(stored.packed) for stored in waiting]
        first, ends = len(self._vectors), self.bounds[-1] + np.cumsum(counts)
        vectors, spans = self._vectors, self._spans
        self._vectors = np.empty((int(ends[-1]), waiting[0].packed.codes.shape[1]), np.float32)
        self._spans = np.empty((waiting[0].packed.max_words, int(ends[-1])), np.float32)
        if first:
            self._vectors[:first], self._spans[:, :first] = vectors, spans
        for stored, end, count in zip(waiting, ends.tolist(), counts, strict=True):
            self._vectors[end - count : end] = stored.packed.vectors
            self._spans[:, end - count : end] = _inverse(stored)
        self.bounds = np.concatenate([self.bounds, ends])

    def part(self, rows: Sequence[int], window: range) -> Pool:
        """Return a pool of some of the passages, for another window of lengths."""
        self._take_in()
        part = Pool(window)
        part.stored = [self.stored[row] for row in rows]
        part.rows = {(s.passage.document, s.passage.number): n for n, s in enumerate(part.stored)}
        part.found = [self.found[row] for row in rows]
        part.total = self.total
        words = [np.arange(self.bounds[row], self.bounds[row + 1]) for row in rows]
        taken = np.concatenate(words)
        part._vectors, part._spans = self._vectors[taken], self._spans[:, taken]
        part.bounds = np.cumsum([0, *map(len, words)])
        return part

    @property
    def weights(self) -> Float64:
        """How many passages of the index each stands for, float64 ``[P]``.

        What a search found stands for itself; those that were drawn, for all that was not found.
        """
        found = np.array(self.found, bool)
        rest = max(self.total - int(found.sum()), 0) / max(int((~found).sum()), 1)
        return np.where(found, 1.0, max(rest, 1.0))

    def best(self, vector: Float32) -> Best:
        """Return the best spans for a vector ``[d]``, of any norm: what is compared is its dot."""
        self._take_in()
        count = len(self._vectors)
        sums = np.zeros(count + 1)
        np.cumsum(self._vectors @ vector, dtype=np.float64, out=sums[1:])
        best = np.full(count, -np.inf, np.float32)
        lengths = np.ones(count, np.int32)
        for length in range(1, min(self.window.stop, count + 1)):
            last = count - length + 1
            inverse = self._spans[length - 1, :last]
            # Of whole sentences it is negative: they count, whatever their length.
            held = inverse != 0 if length >= self.window.start else inverse < 0
            if not held.any():
                continue
            cosines = ((sums[length:] - sums[:last]) * np.abs(inverse)).astype(np.float32)
            better = held & (cosines > best[:last])
            best[:last][better] = cosines[better]
            lengths[:last][better] = length
        highest = np.maximum.reduceat(best, self.bounds[:-1])
        at = np.flatnonzero(best == np.repeat(highest, np.diff(self.bounds)))
        owner = np.searchsorted(self.bounds, at, side="right") - 1
        first = at[np.unique(owner, return_index=True)[1]]
        starts = (first - self.bounds[:-1]).astype(np.int32)
        return Best(highest, starts, starts + lengths[first], best, lengths)

    def top(self, best: Best, row: int, count: int) -> list[Span]:
        """Return the best spans of a passage that share no word, `count` at most."""
        first, last = int(self.bounds[row]), int(self.bounds[row + 1])
        values = best.table[first:last]
        spans: list[Span] = []
        for start in np.argsort(-values, kind="stable").tolist():
            if values[start] == -np.inf or len(spans) == count:
                break
            end = start + int(best.lengths[first + start])
            if all(end <= i or j <= start for _, i, j in spans):
                spans.append((row, start, end))
        return spans

    def vectors(self, spans: Sequence[Span]) -> Float32:
        """Return the unit vectors of some spans, float32 ``[n, d]``."""
        self._take_in()
        first = self.bounds
        sums = [self._vectors[first[row] + i : first[row] + j].sum(axis=0) for row, i, j in spans]
        vectors = np.array(sums, np.float32).reshape(len(spans), self._vectors.shape[1])
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return vectors

    def at(self, row: int, start: int, end: int) -> Span | None:
        """Return the words of a passage within characters `start` to `end`; None if it has none."""
        packed = self.stored[row].packed
        i = int(np.searchsorted(packed.ends, start, side="right"))
        j = int(np.searchsorted(packed.starts, end, side="left"))
        return (row, i, j) if i < j else None

    def text(self, span: Span) -> str:
        """Return the words of a span as they stand in the passage."""
        row, i, j = span
        return span_text(self.stored[row], i, j)[2]


def has_known_words(stored: StoredPassage) -> bool:
    """Tell whether a passage has a span that points anywhere: a pool takes no other."""
    return bool(stored.packed.norms.any())


def _inverse(stored: StoredPassage) -> Float32:
    """Return 1 / norm of the spans of a passage, ``[L, N]``; of whole sentences negative."""
    tables = SpanTables(stored.packed, stored.passage.text)
    inverse = np.where(stored.packed.norms > 0, stored.packed.inverse_norms, 0)
    signed: Float32 = np.where(tables.phrasing.sentences, -inverse, inverse).astype(np.float32)
    return signed


def lengths_of(phrases: Sequence[str], marked: Sequence[str], max_words: int) -> range:
    """Return the span lengths of a taught phrase: all but those too short for it.

    Those of a phrase's own window are too short for much that says the same in long texts; what is
    taught tells by itself what is too long. Of words that were `marked` nearly all count, however
    few they are.
    """
    shortest = min(length_window(count_words(phrase), max_words).start for phrase in phrases)
    if marked:  # but for the outliers
        shortest = min(shortest, int(np.quantile([count_words(words) for words in marked], 0.1)))
    return range(max(shortest, 1), max_words + 1)

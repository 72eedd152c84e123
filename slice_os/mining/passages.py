"""A passage against phrases: the cosines of all its spans, and those that match in context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from slice_os.backends.base import StoredPassage
from slice_os.lexical import Query
from slice_os.records import Float32
from slice_os.spans import (
    Phrasing,
    fit_window,
    full_range,
    phrasing,
    span_cosines,
    span_norms,
    spans_above,
    word_scores,
)


class Phrase(NamedTuple):
    """One phrase of a name: as it was typed, what it asks for, its unit vector, its lengths."""

    typed: str
    query: Query
    vector: Float32
    lengths: range


class Passage(NamedTuple):
    """A passage with its word vectors and the norms of all its spans.

    With those that are counted to its neighbours (`spans.sharing`): of what overlaps only the best
    stays, whosever it is, so that no part of a match is one, too.
    """

    stored: StoredPassage
    vectors: Float32
    norms: Float32
    said: Phrasing

    @classmethod
    def of(cls, stored: StoredPassage) -> Passage:
        """Unpack what is stored."""
        packed = stored.packed
        vectors = packed.vectors
        whole = packed.norms[0].all()
        norms = packed.span_norms if whole else span_norms(vectors, packed.max_words)
        text = stored.passage.text
        said = phrasing(text, packed.starts, packed.ends, packed.max_words)
        return cls(stored, vectors, norms, said)

    def cosines(self, vector: Float32) -> Float32:
        """Return those of spans of all lengths, ``[L, N]``."""
        lengths = full_range(len(self.norms))
        return span_cosines(word_scores(self.vectors, vector), self.norms, lengths)


class Span(NamedTuple):
    """A span with its cosine and which of the phrases it is nearest to."""

    i: int
    j: int
    cosine: float
    phrase: int


def indexed(
    passage: Passage, phrases: Sequence[Phrase], counters: Float32, least: float
) -> list[Span]:
    """Return the spans whose cosine in context is enough, best first, none overlapping."""
    tables = tables_of(passage, phrases)
    nearest, best = tables.argmax(axis=0), tables.max(axis=0)
    against = counter_table(passage, counters, best)
    found = spans_above(np.maximum(best, against), full_range(len(best)), least, passage.said.costs)
    return [
        Span(*span, int(nearest[cell]))
        for span in found
        if best[cell := (span.j - span.i - 1, span.i)] >= against[cell]
    ]


def tables_of(passage: Passage, phrases: Sequence[Phrase]) -> Float32:
    """Return the cosines of the spans with each phrase, ``[phrases, L, N]``.

    A phrase has -inf for spans of a length that it is not compared with.
    """
    count = len(passage.vectors)
    return np.array(
        [
            passage.said.within(passage.cosines(one.vector), fit_window(one.lengths, count))
            for one in phrases
        ]
    )


def counter_table(passage: Passage, counters: Float32, best: Float32) -> Float32:
    """Return the cosines of the spans with the nearest counter-example, ``[L, N]``.

    Of those that a phrase is compared with: `best` of the others is -inf.
    """
    table = np.full_like(best, -np.inf)
    for vector in counters:
        np.maximum(table, passage.cosines(vector), out=table, where=best > -np.inf)
    return table

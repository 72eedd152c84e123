"""Matches of a passage: its spans compared in context, then the likely ones encoded alone.

Of each place of a passage that may say a phrase the best span is encoded first. What it shows of
the place decides whether a few of those that overlap it are, too; the best of all is the match.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from slice_os.encoders.alone import AloneVectors
from slice_os.encoders.judge import Judge, Placed
from slice_os.engine.rescore import read_span
from slice_os.engine.search import ROUNDING
from slice_os.spans import (
    VERBATIM,
    Cosines,
    Question,
    SpanTables,
    cosine,
    degree,
    margin,
    spans_above,
)
from slice_os.spans.tables import Place
from slice_os.storage.contract import StoredPassage
from slice_os.text import Query
from slice_os.types import Float32

MORE, FINER = 3, 1
"""Spans that overlap a place's best one and are encoded too: where that is no match and they may be
one; where it is, to find the better one."""
SLACK = np.float32(0.2)
"""How far above the phrase head's cosine that of the words alone may be, of a span that overlaps
one of which it is known, above what it was there."""


class Phrase(NamedTuple):
    """One phrase of a name: as it was typed, what it asks for, and what spans are compared with."""

    typed: str
    query: Query
    question: Question


class Span(NamedTuple):
    """A span with its cosine and which of the phrases it is nearest to; -1: a counter-example."""

    i: int
    j: int
    cosine: float
    phrase: int


class Case:
    """A passage that may say a name: its spans, what is known of them, and what is to be.

    Spans of the name's phrases and of its counter-examples compete by the same cosines.
    """

    def __init__(
        self,
        stored: StoredPassage,
        tables: SpanTables,
        name: int,
        phrases: list[Phrase],
        counters: Sequence[Question],
        threshold: float,
    ) -> None:
        """Compare all spans of a passage with a name's phrases and counter-examples."""
        self.stored, self.tables, self.name, self.phrases = stored, tables, name, phrases
        self._threshold = threshold
        asked = [phrase.question for phrase in phrases]
        self.questions: list[Question] = [*asked, *counters]
        self.cosines = [self.tables.cosines(question) for question in self.questions]
        meant = np.maximum.reduce([one.context for one in self.cosines[: len(phrases)]])
        for k in range(len(phrases), len(self.questions)):  # of lengths that a phrase counts for
            own = self.cosines[k]
            self.cosines[k] = Cosines(*(np.where(meant > -np.inf, one, -np.inf) for one in own))
        self.costs = tables.costs.copy()
        self.verbatim: dict[Place, list[int]] = {}
        for k, question in enumerate(self.questions):
            for i, j in tables.verbatim(question):
                self.verbatim.setdefault((i, j), []).append(k)
                # Of several the longest is what is said: "no thank you" and not "thank you".
                self.costs[j - i - 1, i] = -VERBATIM * (j - i)
        self._alone: dict[Place, Float32] = {}
        self._peaks: list[Place] = []

    def in_context(self) -> list[Span]:
        """Return the matches where nothing is encoded alone: the phrase head stands for it."""
        shown = [
            question.weights.combine(own.context, own.head)
            for question, own in zip(self.questions, self.cosines, strict=True)
        ]
        for (i, j), same in self.verbatim.items():
            for k in same:
                shown[k][j - i - 1, i] = 1
        best = np.maximum.reduce(shown)
        found = spans_above(best, self.tables.lengths, self._threshold, self.costs)
        values = np.array(shown)
        return self._matches(
            [
                self._span((i, j), values[:, j - i - 1, i].tolist())
                for i, j, _ in found
            ]
        )  # fmt: skip

    def likely(self) -> list[Place]:
        """Return the best span of each place that may be a match: those to encode first."""
        hoped = []
        for question, own in zip(self.questions, self.cosines, strict=True):
            room = np.float32(margin(len(question.text.split()), self._threshold))
            hoped.append(question.weights.combine(own.context, np.minimum(own.head + room, 1)))
        # Of what is not near to a phrase no counter-example has to be known.
        self._hoped = np.maximum.reduce(hoped[: len(self.phrases)])
        for i, j in self.verbatim:
            self._hoped[j - i - 1, i] = 1
        found = spans_above(self._hoped, self.tables.lengths, self._threshold, self.costs)
        self._peaks = [(i, j) for i, j, _ in found]
        return [place for place in self._peaks if place not in self.verbatim]

    def further(self) -> list[Place]:
        """Return the spans to encode next, now that those of `likely` are known (`know`)."""
        found: list[Place] = []
        preference = self._hoped - self.costs
        for place in self._peaks:
            if place in self.verbatim:
                continue
            i, j = place
            known = self._known(place)
            above = [
                max(0.0, self._by_words(k, place) - float(own.head[j - i - 1, i]))
                for k, own in enumerate(self.cosines[: len(self.phrases)])
                if own.head[j - i - 1, i] > -np.inf
            ]
            room = np.float32(max(above, default=0.0)) + SLACK
            fits = known.cosine >= self._threshold
            rows, starts = self._overlapping(place)
            # Whatever reaches the threshold will do; of what does, the one to be marked.
            order = np.argsort(-(preference if fits else self._hoped)[rows, starts], kind="stable")
            chosen: list[Place] = []
            for row, start in zip(rows[order].tolist(), starts[order].tolist(), strict=True):
                if len(chosen) == (FINER if fits else MORE):
                    break
                other = (start, start + row + 1)
                if other == place or other in self.verbatim or other in self._alone:
                    continue
                if fits or self._may_reach(row, start, room):
                    chosen.append(other)
            found += chosen
        return list(dict.fromkeys(found))

    def know(self, place: Place, vector: Float32) -> None:
        """Take note of the vector of a span's words alone."""
        self._alone[place] = vector

    def rescored(self) -> list[Span]:
        """Return the matches by what is known of the spans that were encoded."""
        known = [self._known(place) for place in dict.fromkeys([*self._alone, *self.verbatim])]
        return self._matches([one for one in known if one.cosine >= self._threshold - ROUNDING])

    def _overlapping(self, place: Place) -> tuple[np.ndarray, np.ndarray]:
        """Return the lengths less one and the starts of hopeful spans that overlap one."""
        i, j = place
        first = max(0, i - len(self._hoped) + 1)
        rows, starts = np.nonzero(self._hoped[:, first:j] >= self._threshold)
        starts += first
        near = starts + rows + 1 > i
        return rows[near], starts[near]

    def _may_reach(self, row: int, start: int, room: np.float32) -> bool:
        return any(
            float(question.weights.combine(own.context[row, start], own.head[row, start] + room))
            >= self._threshold
            for question, own in zip(self.questions, self.cosines, strict=True)
        )

    def _by_words(self, k: int, place: Place) -> float:
        if k in self.verbatim.get(place, ()):
            return 1.0
        vector = self._alone.get(place)
        if vector is None:
            return -np.inf
        return min(float(self.questions[k].vector @ vector), 1.0)

    def _known(self, place: Place) -> Span:
        """Return a span with its cosine, of the words that are known of it."""
        i, j = place
        values = []
        for k, (question, own) in enumerate(zip(self.questions, self.cosines, strict=True)):
            if k in self.verbatim.get(place, ()):
                values.append(1.0)
            elif own.context[j - i - 1, i] == -np.inf:
                values.append(-np.inf)
            else:
                alone = np.float64(self._by_words(k, place))
                context = np.float64(own.context[j - i - 1, i])
                values.append(float(question.weights.combine(context, alone)))
        return self._span(place, values)

    def _span(self, place: Place, values: Sequence[float]) -> Span:
        """Return a span by its cosines with all questions: a phrase's or a counter-example's."""
        count = len(self.phrases)
        phrase = int(np.argmax(values[:count]))
        against = max(values[count:], default=-np.inf)
        nearer = against > values[phrase]
        return Span(*place, against if nearer else values[phrase], -1 if nearer else phrase)

    def _matches(self, spans: Sequence[Span]) -> list[Span]:
        """Return the spans of a phrase, best first, none overlapping another or a rival's."""
        kept: list[Span] = []

        def preferred(span: Span) -> tuple[float, int, int]:
            return span.cosine - float(self.costs[span.j - span.i - 1, span.i]), span.i, span.j

        for span in sorted(spans, key=preferred, reverse=True):
            if all(span.j <= other.i or other.j <= span.i for other in kept):
                kept.append(span)
        return [span for span in kept if span.phrase >= 0]


def rescored(cases: Sequence[Case], alone: AloneVectors) -> list[list[Span]]:
    """Return the matches of some cases, whose likely spans are encoded, each text once."""
    for step in (Case.likely, Case.further):
        wanted = [(case, place) for case in cases for place in step(case)]
        vectors = alone.encode([case.tables.place_text(place) for case, place in wanted])
        for (case, place), vector in zip(wanted, vectors, strict=True):
            case.know(place, vector)
    return [case.rescored() for case in cases]


def judged(
    cases: Sequence[Case], found: Sequence[Sequence[Span]], judge: Judge, threshold: float
) -> list[list[Span]]:
    """Return the spans whose judged degree is enough, with it.

    They are those that were chosen by their degrees: a part of what the judge speaks against is no
    match in its place.
    """

    def asked(case: Case, span: Span) -> tuple[str, Placed]:
        packed = case.stored.packed
        start, end = int(packed.starts[span.i]), int(packed.ends[span.j - 1])
        return case.phrases[span.phrase].query.text, read_span(case.stored, start, end)

    flat = [(case, span) for case, own in zip(cases, found, strict=True) for span in own]
    degrees = np.array([degree(span.cosine) for _, span in flat])
    said = iter(judge.degrees([asked(*one) for one in flat], degrees).tolist())
    told = [[(span, next(said)) for span in spans] for spans in found]
    return [
        [span._replace(cosine=cosine(own)) for span, own in spans if own >= threshold - ROUNDING]
        for spans in told
    ]

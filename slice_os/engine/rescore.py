"""The chooser of spans: those of a passage that answer a query best, encoded alone to be sure.

All spans of a passage are compared in context and by the phrase head. Which of them are encoded
alone differs: a search rescores the few best; mining first the best span of each place that may be
a match, and where that leaves it open a few of those that overlap it. The rest is one: what is
shown is made of both cosines (`slice_os.spans.selection`), words that are the query's count 1, of
spans that share a word the best stays, and a judge has the last word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from slice_os.encoders import StandaloneVectors
from slice_os.encoders.judge import Placed
from slice_os.spans import (
    VERBATIM,
    EncodedQuery,
    Place,
    SpanCosines,
    SpanTables,
    margin,
    spans_above,
    top_spans,
)
from slice_os.storage.contract import StoredPassage
from slice_os.text import placed
from slice_os.types import Float32, Match

ROUNDING = 1e-6
"""What a degree may be short of the threshold: a float32 vector times itself is not quite 1."""
MORE, FINER = 3, 1
"""Spans that overlap a place's best one and are encoded too: where that is no match and they may be
one; where it is, to find the better one."""
SLACK = np.float32(0.2)
"""How far above the phrase head's cosine that of the words alone may be, of a span that overlaps
one of which it is known, above what it was there."""


def match_of(
    name: str,
    phrase: str,
    stored: StoredPassage,
    place: Place,
    degree: float,
    probability: float | None = None,
) -> Match:
    """Return the match of a name and its phrase at a place of a passage."""
    start, end, text = span_text(stored, *place)
    passage = stored.passage
    return Match(
        name,
        phrase,
        passage.document,
        passage.number,
        start,
        end,
        text,
        degree,
        passage.start + start,
        passage.start + end,
        probability,
        _speaker(stored, start),
    )


def _speaker(stored: StoredPassage, at: int) -> str:
    """Return who says what stands at a character; nothing where the passage does not tell."""
    speakers = stored.metadata.get("speakers")
    if not speakers:
        return ""
    speakers = speakers if isinstance(speakers, list) else [speakers]
    text = f"\n{stored.passage.text[:at]}"
    return max(("", *map(str, speakers)), key=lambda name: text.rfind(f"\n{name}: "))


def span_text(stored: StoredPassage, i: int, j: int) -> tuple[int, int, str]:
    """Return the character offsets of the words i to j of a passage, and their text."""
    start, end = int(stored.packed.starts[i]), int(stored.packed.ends[j - 1])
    return start, end, stored.passage.text[start:end]


class RescoredSpan(NamedTuple):
    """Words ``i..j``, their cosine and the number of the query they are nearest to.

    That is -1 where a counter-example is nearer.
    """

    i: int
    j: int
    cosine: float
    query: int


class PassageSpans:
    """The spans of a passage: compared with queries, then with what is encoded alone.

    The queries are that of a search, or the phrases of a name and then its counter-examples, which
    compete by the same cosines.

    Attributes:
        stored: The passage.
        tables: The norms of its spans.
        queries: What they are compared with.
        phrases: How many of the queries are no counter-examples.
        query_vectors: Those of the queries that spans encoded alone are compared with.
        costs: What is preferred to what of nearly the same cosine, ``[L, N]``.
        verbatim: The spans that have the very words of queries, and the numbers of those.
        chosen: The spans that may be shown, with the vectors of their words alone; None of those
            that are verbatim, which need none.
    """

    def __init__(
        self,
        stored: StoredPassage,
        tables: SpanTables,
        queries: Sequence[EncodedQuery],
        phrases: int,
    ) -> None:
        """Compare all spans of a passage with the queries."""
        self.stored, self.tables, self.queries, self.phrases = stored, tables, queries, phrases
        self.query_vectors: Sequence[npt.NDArray[Any]] = [query.vector for query in queries]
        self._cosines = [tables.cosines(query) for query in queries]
        if phrases < len(queries):  # counter-examples count for the lengths that a phrase does
            near = np.maximum.reduce([table.context for table in self._cosines[:phrases]])
            self._cosines[phrases:] = [
                SpanCosines(*(np.where(near > -np.inf, cosines, -np.inf) for cosines in both))
                for both in self._cosines[phrases:]
            ]
        self.costs = tables.costs.copy()
        self.verbatim: dict[Place, list[int]] = {}
        for k, query in enumerate(queries):
            for i, j in tables.verbatim(query):
                self.verbatim.setdefault((i, j), []).append(k)
                # Of several the longest is what is said: "no thank you" and not "thank you".
                self.costs[j - i - 1, i] = -VERBATIM * (j - i)
        self.chosen: dict[Place, Float32 | None] = {}

    def in_context(self, threshold: float) -> list[RescoredSpan]:
        """Return the best spans of at least a cosine that share no word, unencoded.

        The phrase head stands for what they say alone.
        """
        shown = self._by_head()
        best = spans_above(np.maximum.reduce(shown), self.tables.lengths, threshold, self.costs)
        return self._apart(
            [
                self._nearest((i, j), [cosines[j - i - 1, i] for cosines in shown])
                for i, j, _ in best
            ]
        )

    def best(self, count: int) -> list[Place]:
        """Return the `count` best spans by the phrase head."""
        shown = np.maximum.reduce(self._by_head())
        return [(i, j) for i, j, _ in top_spans(shown, self.tables.lengths, count, self.costs)]

    def likely(self, threshold: float) -> list[Place]:
        """Return the best span of each place that may reach a cosine: those to encode first."""
        # Of what is not near to a phrase no counter-example has to be known.
        hoped = []
        for query, table in zip(self.queries[: self.phrases], self._cosines, strict=False):
            room = np.float32(margin(query.n_words, threshold))
            hoped.append(query.weights.combine(table.context, np.minimum(table.head + room, 1)))
        self._hoped = np.maximum.reduce(hoped)
        for i, j in self.verbatim:
            self._hoped[j - i - 1, i] = 1
        peaks = spans_above(self._hoped, self.tables.lengths, threshold, self.costs)
        return [(i, j) for i, j, _ in peaks]

    def further(self, threshold: float) -> list[Place]:
        """Return the spans to encode next, now that those of `likely` are known."""
        chosen: list[Place] = []
        preference = self._hoped - self.costs
        for place in [place for place in self.chosen if place not in self.verbatim]:
            i, j = place
            above = [
                max(0.0, self._by_words(k, place) - float(table.head[j - i - 1, i]))
                for k, table in enumerate(self._cosines[: self.phrases])
                if table.head[j - i - 1, i] > -np.inf
            ]
            room = np.float32(max(above, default=0.0)) + SLACK
            fits = self._known(place).cosine >= threshold
            rows, starts = self._overlapping(place, threshold)
            # Whatever reaches the threshold will do; of what does, the one to be marked.
            order = np.argsort(-(preference if fits else self._hoped)[rows, starts], kind="stable")
            others = (
                (start, start + row + 1)
                for row, start in zip(rows[order].tolist(), starts[order].tolist(), strict=True)
                if fits or self._may_reach(row, start, room, threshold)
            )
            fresh = (
                other for other in others if other not in self.verbatim and other not in self.chosen
            )
            chosen += islice(fresh, FINER if fits else MORE)
        return list(dict.fromkeys(chosen))

    def rescored(self, threshold: float = -np.inf) -> list[RescoredSpan]:
        """Return the best spans of at least a cosine, of those that were chosen; none overlap."""
        known = map(self._known, self.chosen)
        return self._apart([span for span in known if span.cosine >= threshold - ROUNDING])

    def _by_head(self) -> list[npt.NDArray[Any]]:
        """Return the cosines that are shown where the phrase head stands for the words alone."""
        shown = [
            query.weights.combine(table.context, table.head)
            for query, table in zip(self.queries, self._cosines, strict=True)
        ]
        for (i, j), same in self.verbatim.items():
            for k in same:
                shown[k][j - i - 1, i] = 1
        return shown

    def _overlapping(
        self, place: Place, threshold: float
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the lengths less one and the starts of hopeful spans that overlap one."""
        i, j = place
        first = max(0, i - len(self._hoped) + 1)
        rows, starts = np.nonzero(self._hoped[:, first:j] >= threshold)
        starts += first
        near = starts + rows + 1 > i
        return rows[near], starts[near]

    def _may_reach(self, row: int, start: int, room: np.float32, threshold: float) -> bool:
        return any(
            float(query.weights.combine(table.context[row, start], table.head[row, start] + room))
            >= threshold
            for query, table in zip(self.queries, self._cosines, strict=True)
        )

    def _by_words(self, k: int, place: Place) -> float:
        """Return the cosine of a query and the words of a chosen span alone."""
        if k in self.verbatim.get(place, ()):
            return 1.0
        vector = self.chosen[place]
        return -np.inf if vector is None else min(float(self.query_vectors[k] @ vector), 1.0)

    def _known(self, place: Place) -> RescoredSpan:
        """Return a chosen span with its cosine."""
        i, j = place
        values = []
        for k, (query, table) in enumerate(zip(self.queries, self._cosines, strict=True)):
            if k in self.verbatim.get(place, ()):
                values.append(1.0)
            elif table.context[j - i - 1, i] == -np.inf:
                values.append(-np.inf)
            else:
                by_words = np.float64(self._by_words(k, place))
                context = np.float64(table.context[j - i - 1, i])
                values.append(float(query.weights.combine(context, by_words)))
        return self._nearest(place, values)

    def _nearest(self, place: Place, values: Sequence[float]) -> RescoredSpan:
        """Return a span by its cosines with all queries: a phrase's or a counter-example's."""
        phrase = int(np.argmax(values[: self.phrases]))
        against = max(values[self.phrases :], default=-np.inf)
        if against > values[phrase]:
            return RescoredSpan(*place, against, -1)
        return RescoredSpan(*place, values[phrase], phrase)

    def cost(self, span: RescoredSpan) -> float:
        """Return what the cosine of a span is counted as less where spans overlap."""
        return float(self.costs[span.j - span.i - 1, span.i])

    def _apart(self, spans: Sequence[RescoredSpan]) -> list[RescoredSpan]:
        """Return the spans of a phrase, best first, none overlapping another or a rival's."""
        kept: list[RescoredSpan] = []
        for span in sorted(spans, key=lambda span: self.cost(span) - span.cosine):
            if all(span.j <= other.i or other.j <= span.i for other in kept):
                kept.append(span)
        return [span for span in kept if span.query >= 0]


def encode_spans(
    passages: Sequence[PassageSpans],
    choose: Callable[[PassageSpans], list[Place]],
    standalone: StandaloneVectors,
    queries: Sequence[str] = (),
) -> npt.NDArray[np.float32]:
    """Encode the chosen spans of passages alone, all in one run; each text once.

    The vectors of `queries` come of the same run; they are returned, ``[len(queries), d]``.
    """
    unknown = []
    for passage in passages:
        for place in choose(passage):
            passage.chosen[place] = None
            if place not in passage.verbatim:
                unknown.append((passage, place))
    texts = [passage.tables.span_text(place) for passage, place in unknown]
    vectors = standalone.encode([*queries, *texts])
    for (passage, place), vector in zip(unknown, vectors[len(queries) :], strict=True):
        passage.chosen[place] = vector
    return vectors[: len(queries)]


def judge_pair(passage: PassageSpans, span: RescoredSpan) -> tuple[str, Placed]:
    """Return what a judge reads of a span: its query, and the span among its neighbours."""
    stored = passage.stored
    start, end, _ = span_text(stored, span.i, span.j)
    text, packed = stored.passage.text, stored.packed
    around = Placed(*placed(text, packed.starts, packed.ends, start, end))
    return passage.queries[span.query].text, around

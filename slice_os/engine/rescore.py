"""Hits out of ranked passages: their best spans, encoded alone to rescore them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from slice_os.encoders.alone import AloneVectors
from slice_os.encoders.judge import Judge, Placed
from slice_os.engine.rerank import Ranked
from slice_os.spans import (
    VERBATIM,
    Question,
    ScoredSpan,
    SpanTables,
    contributions,
    degree,
    questions,
    spans_above,
    top_spans,
)
from slice_os.storage.contract import SearchQuery, StoredPassage
from slice_os.text import placed
from slice_os.types import Hit, SpanMatch

Float64 = npt.NDArray[np.float64]
SHOWN_SPANS = 3
"""Spans a hit shows: the best that share no word."""


class Hits(list[Hit]):
    """The hits of a search, best first: a list that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        return f"<ol>{''.join(f'<li>{hit._repr_html_()}</li>' for hit in self)}</ol>"


def span_text(stored: StoredPassage, i: int, j: int) -> tuple[int, int, str]:
    """Return the character offsets of the words i to j of a passage, and their text."""
    start, end = int(stored.packed.starts[i]), int(stored.packed.ends[j - 1])
    return start, end, stored.passage.text[start:end]


def read_span(stored: StoredPassage, start: int, end: int) -> Placed:
    """Return what a judge reads of the characters `start` to `end` of a passage."""
    text, packed = stored.passage.text, stored.packed
    return Placed(*placed(text, packed.starts, packed.ends, start, end))


def rescored(
    ranked: Sequence[Sequence[Ranked]],
    queries: Sequence[SearchQuery],
    alone: AloneVectors,
    spans: int,
    judge: Judge | None = None,
) -> list[Hits]:
    """Return the hits of some queries' passages: one encoder run rescores `spans` of each passage.

    They are chosen by the phrase head. A `judge` has the last word on their degrees. With 0 spans
    the best are shown as they are in context and by the phrase head.
    """
    encoder = alone.encoder
    asked = [
        questions(
            [query.text],
            query.vector[None],
            [query.lengths],
            encoder.head.ask(query.vector[None]) if encoder.head else None,
            encoder.pieces,
        )[0]
        for query in queries
    ]
    found = [
        [_best(one, question, spans) for one in passages]
        for passages, question in zip(ranked, asked, strict=True)
    ]
    if spans:
        found = _rescored(found, asked, alone)
    shown = [[_apart(own) for own in passages] for passages in found]
    if spans and judge:
        shown = _judged(ranked, shown, [query.text for query in queries], judge)
    return [
        Hits(_hit(one, own) for one, own in zip(passages, matches, strict=True))
        for passages, matches in zip(ranked, shown, strict=True)
    ]


class _Found(NamedTuple):
    """A span, its cosine in context, and what its degree is counted as less in the choice."""

    match: SpanMatch
    context: float
    cost: float
    verbatim: bool


def _best(ranked: Ranked, question: Question, spans: int) -> list[_Found]:
    """Return the spans to rescore, the best by the phrase head; verbatim ones before all."""
    tables = SpanTables(ranked.stored.packed, ranked.stored.passage.text)
    own = tables.cosines(question)
    shown = question.weights.combine(own.context, own.head)
    costs = tables.costs.copy()
    verbatim = tables.verbatim(question)
    for i, j in verbatim:
        shown[j - i - 1, i], costs[j - i - 1, i] = 1, -VERBATIM
    if spans:
        best = top_spans(shown, tables.lengths, spans, costs)
    else:
        best = spans_above(shown, tables.lengths, -1.0, costs)[:SHOWN_SPANS]
    return [
        _Found(
            _match(ranked, tables, span, float(shown[span.j - span.i - 1, span.i])),
            float(own.context[span.j - span.i - 1, span.i]),
            float(costs[span.j - span.i - 1, span.i]) / 2,
            (span.i, span.j) in verbatim,
        )
        for span in best
    ]


def _match(ranked: Ranked, tables: SpanTables, span: ScoredSpan, shown: float) -> SpanMatch:
    shares = contributions(ranked.word_scores, tables.norms, span.i, span.j)
    said = span_text(ranked.stored, span.i, span.j)
    return SpanMatch(*said, degree(shown), degree(float(shares.sum())), tuple(shares.tolist()))


def _rescored(
    found: Sequence[Sequence[list[_Found]]], asked: Sequence[Question], alone: AloneVectors
) -> list[list[list[_Found]]]:
    """Return spans with the degrees that their words alone give them, each text encoded once."""
    spans = [one for passages in found for own in passages for one in own]
    texts = [*(question.text for question in asked), *(one.match.text for one in spans)]
    vectors = alone.encode(texts).astype(np.float64)
    of_spans = iter(vectors[len(asked) :])

    def known(one: _Found, question: Question, vector: Float64) -> _Found:
        by_words = np.float64(min(float(vector @ next(of_spans)), 1.0))
        if one.verbatim:
            return one
        shown = question.weights.combine(np.float64(one.context), by_words)
        return one._replace(match=replace(one.match, degree=degree(float(shown))))

    return [
        [[known(one, question, vector) for one in own] for own in passages]
        for passages, question, vector in zip(found, asked, vectors, strict=False)
    ]


def _apart(spans: Sequence[_Found]) -> list[_Found]:
    """Return the best spans that share no word."""
    kept: list[_Found] = []
    for one in sorted(spans, key=lambda one: one.cost - one.match.degree):
        match = one.match
        if all(match.end <= by.match.start or by.match.end <= match.start for by in kept):
            kept.append(one)
    return kept[:SHOWN_SPANS]


def _judged(
    ranked: Sequence[Sequence[Ranked]],
    shown: Sequence[Sequence[list[_Found]]],
    queries: Sequence[str],
    judge: Judge,
) -> list[list[list[_Found]]]:
    """Return spans with their judged degrees, those of a passage by them."""
    spans = [
        (query, one.stored, found.match)
        for query, some, passages in zip(queries, ranked, shown, strict=True)
        for one, own in zip(some, passages, strict=True)
        for found in own
    ]
    degrees = np.array([match.degree for *_, match in spans])
    asked = [(query, read_span(stored, match.start, match.end)) for query, stored, match in spans]
    judged = judge.degrees(asked, degrees)
    lowered = np.flatnonzero(judged < degrees).tolist()
    why = dict(zip(lowered, judge.reasons([asked[n] for n in lowered]), strict=True))
    said = (
        replace(match, degree=own, opposition=why.get(n, ()))
        for n, ((*_, match), own) in enumerate(zip(spans, judged.tolist(), strict=True))
    )
    return [
        [
            sorted(
                (one._replace(match=next(said)) for one in own),
                key=lambda one: one.cost - one.match.degree,
            )
            for own in passages
        ]
        for passages in shown
    ]


def _hit(ranked: Ranked, spans: Sequence[_Found]) -> Hit:
    kept = tuple(one.match for one in spans)
    passage = ranked.stored.passage
    return Hit(
        passage.document,
        passage.number,
        passage.title,
        passage.text,
        ranked.score,
        kept[0].degree if kept else 0.0,
        kept,
        ranked.stored.metadata,
        passage.start,
        passage.end,
    )

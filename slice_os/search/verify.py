"""Hits out of ranked passages: their best spans, encoded alone to verify their degrees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from slice_os.backends.base import SearchQuery, StoredPassage
from slice_os.encoder import Encoder
from slice_os.encoder.judge import Judge, Placed
from slice_os.records import Float32, Hit, SpanMatch
from slice_os.search.rerank import Ranked
from slice_os.spans import (
    ScoredSpan,
    contributions,
    degree,
    placed,
    preferred,
    verified_degrees,
)

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


def verified(
    ranked: Sequence[Sequence[Ranked]],
    queries: Sequence[SearchQuery],
    encoder: Encoder,
    spans: int,
    judge: Judge | None = None,
) -> list[Hits]:
    """Return the hits of some queries' passages: one encoder run verifies `spans` of each passage.

    A `judge` has the last word on the degrees of those that are shown. With 0 spans degrees are
    those in context.
    """
    found = [[_best(one, spans or SHOWN_SPANS) for one in passages] for passages in ranked]
    if spans:
        found = _verified(found, [query.vector for query in queries], encoder)
    shown = [[_apart(own) for own in passages] for passages in found]
    if spans and judge:
        shown = _judged(ranked, shown, [query.text for query in queries], judge)
    return [
        Hits(_hit(one, own) for one, own in zip(passages, matches, strict=True))
        for passages, matches in zip(ranked, shown, strict=True)
    ]


class _Found(NamedTuple):
    """A span, and what its degree is counted as less in the choice of spans (`Phrasing`)."""

    match: SpanMatch
    cost: float


def _best(ranked: Ranked, spans: int) -> list[_Found]:
    text, packed, window = ranked.stored.passage.text, ranked.stored.packed, ranked.window
    cosines = packed.scored(ranked.word_scores, range(1, window.stop))
    norms = packed.span_norms
    return [
        _Found(_match(ranked, norms, span), cost)
        for span, cost in preferred(text, packed.starts, packed.ends, cosines, window, spans)
    ]


def _match(ranked: Ranked, norms: Float32, span: ScoredSpan) -> SpanMatch:
    indexed = degree(span.cosine)
    shares = contributions(ranked.word_scores, norms, span.i, span.j)
    said = span_text(ranked.stored, span.i, span.j)
    return SpanMatch(*said, indexed, indexed, tuple(shares.tolist()))


def _verified(
    found: Sequence[Sequence[list[_Found]]], vectors: Sequence[Float32], encoder: Encoder
) -> list[list[list[_Found]]]:
    """Return spans with the degrees of their words alone, each text encoded once."""
    texts = {one.match.text: 0 for passages in found for spans in passages for one in spans}
    texts = {text: row for row, text in enumerate(texts)}
    alone = encoder.encode(list(texts))
    return [
        [_with_degrees(spans, vector, alone, texts) for spans in passages]
        for vector, passages in zip(vectors, found, strict=True)
    ]


def _with_degrees(
    spans: Sequence[_Found], vector: Float32, alone: Float32, texts: dict[str, int]
) -> list[_Found]:
    degrees = verified_degrees(vector, alone[[texts[one.match.text] for one in spans]])
    return [
        one._replace(match=replace(one.match, degree=float(d)))
        for one, d in zip(spans, degrees, strict=True)
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

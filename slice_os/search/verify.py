"""Hits out of ranked passages: their best spans, encoded alone to verify their degrees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from slice_os.backends.base import StoredPassage
from slice_os.encoder import Encoder
from slice_os.records import Float32, Hit, SpanMatch
from slice_os.search.rerank import Ranked
from slice_os.spans import ScoredSpan, contributions, degree, pick, verified_degrees

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


def verified(
    ranked: Sequence[Sequence[Ranked]], vectors: Sequence[Float32], encoder: Encoder, spans: int
) -> list[Hits]:
    """Return the hits of some queries' passages: one encoder run verifies `spans` of each passage.

    With 0 spans their degrees are those in context.
    """
    found = [[_best(one, spans or SHOWN_SPANS) for one in passages] for passages in ranked]
    if spans:
        found = _verified(found, vectors, encoder)
    return [
        Hits(_hit(one, own) for one, own in zip(passages, matches, strict=True))
        for passages, matches in zip(ranked, found, strict=True)
    ]


def _best(ranked: Ranked, spans: int) -> list[SpanMatch]:
    return [_match(ranked, span) for span in pick(ranked.cosines, ranked.window, spans)]


def _match(ranked: Ranked, span: ScoredSpan) -> SpanMatch:
    indexed = degree(span.cosine)
    shares = contributions(ranked.word_scores, ranked.norms, span.i, span.j)
    said = span_text(ranked.stored, span.i, span.j)
    return SpanMatch(*said, indexed, indexed, tuple(shares.tolist()))


def _verified(
    found: Sequence[Sequence[list[SpanMatch]]], vectors: Sequence[Float32], encoder: Encoder
) -> list[list[list[SpanMatch]]]:
    """Return matches with the degrees of their words alone, each text encoded once."""
    texts = {one.text: 0 for passages in found for matches in passages for one in matches}
    texts = {text: row for row, text in enumerate(texts)}
    alone = encoder.encode(list(texts))
    return [
        [_with_degrees(matches, vector, alone, texts) for matches in passages]
        for vector, passages in zip(vectors, found, strict=True)
    ]


def _with_degrees(
    matches: Sequence[SpanMatch], vector: Float32, alone: Float32, texts: dict[str, int]
) -> list[SpanMatch]:
    degrees = verified_degrees(vector, alone[[texts[one.text] for one in matches]])
    return [replace(one, degree=float(d)) for one, d in zip(matches, degrees, strict=True)]


def _hit(ranked: Ranked, matches: Sequence[SpanMatch]) -> Hit:
    kept: list[SpanMatch] = []
    for match in sorted(matches, key=lambda match: -match.degree):
        if all(match.end <= other.start or other.end <= match.start for other in kept):
            kept.append(match)
    passage = ranked.stored.passage
    return Hit(
        passage.document,
        passage.number,
        passage.title,
        passage.text,
        ranked.score,
        kept[0].degree if kept else 0.0,
        tuple(kept[:SHOWN_SPANS]),
        ranked.stored.metadata,
        passage.start,
        passage.end,
    )

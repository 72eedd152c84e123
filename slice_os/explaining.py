"""Hits out of candidates: every degree exact, the best spans shown, and verified alone."""

from __future__ import annotations

from collections.abc import Sequence

from slice_os.backends.base import Candidate, StoredPassage
from slice_os.encoder import Encoder
from slice_os.records import Float32, Hit, SpanMatch
from slice_os.spans import (
    ScoredSpan,
    contributions,
    degree,
    fit_window,
    pick,
    span_cosines,
    verified_degrees,
    word_scores,
)

SHOWN_SPANS = 3
"""Spans a hit shows: the best that share no word."""


def span_text(stored: StoredPassage, span: ScoredSpan) -> tuple[int, int, str]:
    """Return a span's character offsets in its passage, and its text."""
    start, end = int(stored.words.starts[span.i]), int(stored.words.ends[span.j - 1])
    return start, end, stored.passage.text[start:end]


def explain(
    candidates: Sequence[Candidate], vector: Float32, lengths: range, encoder: Encoder, verify: int
) -> list[Hit]:
    """Turn candidates into hits: exact degrees, best spans, one encoder run to verify them all."""
    found: list[list[SpanMatch]] = []
    for candidate in candidates:
        stored = candidate.stored
        scores = word_scores(stored.words.vectors, vector)
        window = fit_window(lengths, len(scores))
        cosines = span_cosines(scores, stored.norms, window)
        spans = pick(cosines, window, verify or SHOWN_SPANS)
        found.append([_match(stored, span, scores) for span in spans])
    if verify:
        found = _verified(found, vector, encoder)
    hits = []
    for candidate, matches in zip(candidates, found, strict=True):
        shown = _apart(sorted(matches, key=lambda match: -match.degree))
        passage = candidate.stored.passage
        hits.append(
            Hit(
                passage.document,
                passage.number,
                passage.title,
                passage.text,
                candidate.score,
                shown[0].degree if shown else 0.0,
                tuple(shown),
                candidate.stored.metadata,
                passage.start,
                passage.end,
            )
        )
    return hits


def _match(stored: StoredPassage, span: ScoredSpan, scores: Float32) -> SpanMatch:
    indexed = degree(span.cosine)
    shares = tuple(contributions(scores, stored.norms, span.i, span.j).tolist())
    return SpanMatch(*span_text(stored, span), indexed, indexed, shares)


def _verified(
    found: Sequence[Sequence[SpanMatch]], vector: Float32, encoder: Encoder
) -> list[list[SpanMatch]]:
    texts = list(dict.fromkeys(match.text for matches in found for match in matches))
    degrees = verified_degrees(vector, encoder.encode(texts)) if texts else ()
    by_text = dict(zip(texts, map(float, degrees), strict=True))
    return [
        [
            SpanMatch(m.start, m.end, m.text, by_text[m.text], m.indexed_degree, m.contributions)
            for m in matches
        ]
        for matches in found
    ]


def _apart(matches: Sequence[SpanMatch]) -> list[SpanMatch]:
    """Keep the best matches that share no word, SHOWN_SPANS at most."""
    kept: list[SpanMatch] = []
    for match in matches:
        if all(match.end <= other.start or other.end <= match.start for other in kept):
            kept.append(match)
    return kept[:SHOWN_SPANS]

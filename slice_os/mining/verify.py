"""Spans of many passages, encoded alone and judged, each text once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from slice_os.backends.base import StoredPassage
from slice_os.encoder import Encoder
from slice_os.encoder.judge import Judge, Placed
from slice_os.mining.passages import Passage, Phrase, Span, counter_table, tables_of
from slice_os.records import Float32
from slice_os.search import ROUNDING, read_span, span_text
from slice_os.spans import cosine, degree, full_range, top_spans

VERIFY_MARGIN = 0.1
"""How far below the threshold an indexed degree may be for its span to be verified."""
VERIFIED_SPANS = 32


class Case(NamedTuple):
    """A passage that may say a name, and of which of the name's phrases each of its spans may be.

    A span that is nearer to a counter-example is of none. `costs` are those of `Phrasing`.
    """

    name: int
    phrases: list[Phrase]
    stored: StoredPassage
    costs: Float32
    near: dict[tuple[int, int], list[int]]

    def text(self, place: tuple[int, int]) -> str:
        """Return the words of a span, `i` to `j`."""
        return span_text(self.stored, *place)[2]


def case_of(
    passage: Passage, name: int, phrases: list[Phrase], counters: Float32, threshold: float
) -> Case:
    """Return the spans of a passage that are to be verified for a name's phrases.

    They are the best 32 for each phrase whose indexed degree is within 0.1 of `threshold`.
    """
    tables = tables_of(passage, phrases)
    against = counter_table(passage, counters, tables.max(axis=0))
    lengths, costs = full_range(tables.shape[1]), passage.said.costs
    near: dict[tuple[int, int], list[int]] = {}
    for n, table in enumerate([*tables, against]):
        for i, j, value in top_spans(table, lengths, VERIFIED_SPANS, costs):
            if degree(value) >= threshold - VERIFY_MARGIN:
                said = near.setdefault((i, j), [])
                said += [n] if n < len(phrases) else []
    return Case(name, phrases, passage.stored, costs, near)


def verified(
    cases: Sequence[Case], counters: Sequence[Float32], threshold: float, encoder: Encoder
) -> list[list[Span]]:
    """Return each case's spans whose verified degree is enough: each text is encoded once.

    Those that are nearer to a counter-example are of no phrase, -1.
    """
    texts = dict.fromkeys(case.text(place) for case in cases for place in case.near)
    alone = dict(zip(texts, encoder.encode(list(texts)), strict=True))
    found = []
    for case in cases:
        vectors = np.array([phrase.vector for phrase in case.phrases])
        spans = []
        for place, near in case.near.items():
            own = alone[case.text(place)]
            said = vectors @ own
            best, phrase = max(((float(said[n]), n) for n in near), default=(-np.inf, -1))
            counter = float((counters[case.name] @ own).max(initial=-np.inf))
            nearer = counter > best
            spans.append(Span(*place, counter if nearer else best, -1 if nearer else phrase))
        found.append([span for span in spans if degree(span.cosine) >= threshold - ROUNDING])
    return found


def judged(
    cases: Sequence[Case], found: Sequence[Sequence[Span]], judge: Judge, threshold: float
) -> list[list[Span]]:
    """Return the spans whose judged degree is enough, with it.

    They are those that `apart` has chosen, by their verified degrees: a part of what the judge
    speaks against is no match in its place.
    """

    def asked(case: Case, span: Span) -> tuple[str, Placed]:
        start, end, _ = span_text(case.stored, span.i, span.j)
        return case.phrases[span.phrase].query.text, read_span(case.stored, start, end)

    flat = [(case, span) for case, own in zip(cases, found, strict=True) for span in own]
    verified = np.array([degree(span.cosine) for _, span in flat])
    said = iter(judge.degrees([asked(*one) for one in flat], verified).tolist())
    told = [[(span, next(said)) for span in spans] for spans in found]
    return [
        [span._replace(cosine=cosine(own)) for span, own in spans if own >= threshold - ROUNDING]
        for spans in told
    ]


def apart(case: Case, spans: Sequence[Span], threshold: float) -> list[Span]:
    """Return the spans of a phrase whose degree is enough, best first, none overlapping."""
    kept: list[Span] = []

    def preferred(span: Span) -> tuple[float, int, int]:
        return span.cosine - float(case.costs[span.j - span.i - 1, span.i]), span.i, span.j

    for span in sorted(spans, key=preferred, reverse=True):
        apart = all(span.j <= other.i or other.j <= span.i for other in kept)
        if degree(span.cosine) >= threshold - ROUNDING and apart:
            kept.append(span)
    return [span for span in kept if span.phrase >= 0]

"""Mining: every span of the index that says one of the phrases, exhaustively and exactly."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from slice_os.backends.base import Backend, MiningQuery, Order, StoredPassage
from slice_os.encoder import Encoder
from slice_os.encoder.judge import Judge, Placed
from slice_os.errors import QueryError
from slice_os.filters import Condition
from slice_os.lexical import Query, parse_query
from slice_os.phrases import Sought
from slice_os.records import Float32, Match
from slice_os.search import ROUNDING, encode_queries, query_lengths, span_text
from slice_os.spans import (
    Phrasing,
    cosine,
    degree,
    fit_window,
    full_range,
    phrasing,
    placed,
    span_cosines,
    span_norms,
    spans_above,
    top_spans,
    word_scores,
)

VERIFY_MARGIN = 0.1
"""How far below the threshold an indexed degree may be for its span to be verified."""
VERIFIED_SPANS = 32


class _Phrase(NamedTuple):
    """One phrase of a name: as it was typed, what it asks for, its unit vector, its lengths."""

    typed: str
    query: Query
    vector: Float32
    lengths: range


class _Passage(NamedTuple):
    """A passage with its word vectors and the norms of all its spans.

    With those that are counted to its neighbours (`spans.sharing`): of what overlaps only the best
    stays, whosever it is, so that no part of a match is one, too.
    """

    stored: StoredPassage
    vectors: Float32
    norms: Float32
    said: Phrasing

    @classmethod
    def of(cls, stored: StoredPassage) -> _Passage:
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


class _Span(NamedTuple):
    """A span with its cosine and which of the phrases it is nearest to."""

    i: int
    j: int
    cosine: float
    phrase: int


def mine_phrases(
    backend: Backend,
    encoder: Encoder,
    sought: Mapping[str, Sought],
    *,
    threshold: float = 0.8,
    literal: bool = False,
    filters: Sequence[Condition] = (),
    all_lengths: bool = False,
    verify: bool = False,
    judge: Judge | None = None,
    exact: bool = False,
    on_progress: Callable[[float], object] = lambda done: None,
    on_unknown: Callable[[str], object] = lambda name: None,
) -> Iterator[Match]:
    """Yield every match of what is sought, by name, passage by passage, best first in each.

    A match is a span whose indexed degree with one of a name's phrases is at least `threshold`; of
    those of one name that overlap only the best stays, of which phrase it may be. Where a
    counter-example of the name is nearer to a span than the phrases are, neither that span nor one
    that overlaps it is a match. With `verify` the verified degree decides: of each passage the best
    32 spans whose indexed degree comes within 0.1 of the threshold are encoded alone, which finds
    phrases that their context has drawn away from themselves, and drops those it has drawn near.
    With a `judge` too, those that may reach the threshold are read by it, and its word decides.
    `exact` has a cluster read every word instead of asking its graph, which may miss some matches;
    an embedded index does so anyway. A phrase may say which words have to stand in the passage and
    which must not (`slice_os.lexical.parse_query`), unless it is `literal`; counter-examples are
    taken as they are. `on_progress` is told what share of the work is done, `on_unknown` each
    phrase and counter-example of which the encoder knows no word: it is left out.

    Raises:
        QueryError: a phrase is empty, all are unknown, or the threshold is not in [0, 1].
    """
    if not 0 <= threshold <= 1:
        raise QueryError(f"The threshold {threshold} is not a degree: it must be from 0 to 1.")
    sought = _known(sought, encoder, literal, on_unknown)
    names = list(sought)
    typed = [(n, text) for n, name in enumerate(names) for text in sought[name].phrases]
    queries = [parse_query(text, literal=literal) for _, text in typed]
    against = [text for name in names for text in sought[name].counter_examples]
    vectors = encode_queries(encoder, [query.text for query in queries] + against)
    phrases = [
        _Phrase(text, query, vector, query_lengths(query.text, backend.meta.max_words, all_lengths))
        for (_, text), query, vector in zip(typed, queries, vectors[: len(queries)], strict=True)
    ]
    counters = np.split(
        vectors[len(phrases) :],
        np.cumsum([len(sought[name].counter_examples) for name in names])[:-1],
    )
    judge = judge if verify else None
    least = judge.calibration.least(threshold) if judge else threshold
    reach = cosine(min(max(least - VERIFY_MARGIN, 0), 1)) if verify else cosine(threshold)
    asked = MiningQuery(
        vectors[: len(phrases)],
        [phrase.lengths for phrase in phrases],
        np.full(len(phrases), reach, dtype=np.float32),
        filters,
        exact,
    )
    for stored, found in backend.scan(asked, on_progress):
        words = stored.passage.title, stored.passage.text
        by_name: dict[int, list[_Phrase]] = {}
        for k in found:
            if all(one.holds(*words) for one in phrases[k].query.wording):
                by_name.setdefault(typed[k][0], []).append(phrases[k])
        if not by_name:
            continue
        passage = _Passage.of(stored)
        for n, some in by_name.items():
            if verify:
                spans = _verified(passage, some, counters[n], least, encoder)
                if judge:
                    spans = _judged(passage, some, spans, judge)
                spans = _apart(passage, spans, threshold)
            else:
                spans = _indexed(passage, some, counters[n], cosine(threshold))
            for span in spans:
                if stored.packed.norms[span.j - span.i - 1, span.i]:  # else a neighbour's match
                    yield _match(names[n], some[span.phrase].typed, stored, span)
    on_progress(1.0)


def _known(
    sought: Mapping[str, Sought],
    encoder: Encoder,
    literal: bool,
    on_unknown: Callable[[str], object],
) -> dict[str, Sought]:
    """Return what is sought without the texts that the encoder does not know."""

    def kept(texts: Sequence[str], literal: bool) -> tuple[str, ...]:
        queries = {text: parse_query(text, literal=literal).text for text in texts}
        unknown = [text for text, q in queries.items() if q.strip() and not encoder.knows(q)]
        for text in unknown:
            on_unknown(text)
        return tuple(text for text in texts if text not in unknown)

    known = {
        name: Sought(kept(one.phrases, literal), kept(one.counter_examples, True))
        for name, one in sought.items()
    }
    if sought and not any(one.phrases for one in known.values()):
        first, *others = (text for one in sought.values() for text in one.phrases)
        raise QueryError(
            f"The phrase {first[:60]!r} holds no word that the encoder knows"
            f"{', nor do the others' if others else ''}: mine with an encoder of their language, "
            "and an index made by it."
        )
    return {name: one for name, one in known.items() if one.phrases}


def _indexed(
    passage: _Passage, phrases: Sequence[_Phrase], counters: Float32, least: float
) -> list[_Span]:
    """Return the spans whose cosine in context is enough, best first, none overlapping."""
    tables = _tables(passage, phrases)
    nearest, best = tables.argmax(axis=0), tables.max(axis=0)
    against = _counter_table(passage, counters, best)
    found = spans_above(np.maximum(best, against), full_range(len(best)), least, passage.said.costs)
    return [
        _Span(*span, int(nearest[cell]))
        for span in found
        if best[cell := (span.j - span.i - 1, span.i)] >= against[cell]
    ]


def _tables(passage: _Passage, phrases: Sequence[_Phrase]) -> Float32:
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


def _counter_table(passage: _Passage, counters: Float32, best: Float32) -> Float32:
    """Return the cosines of the spans with the nearest counter-example, ``[L, N]``.

    Of those that a phrase is compared with: `best` of the others is -inf.
    """
    table = np.full_like(best, -np.inf)
    for vector in counters:
        np.maximum(table, passage.cosines(vector), out=table, where=best > -np.inf)
    return table


def _verified(
    passage: _Passage,
    phrases: Sequence[_Phrase],
    counters: Float32,
    threshold: float,
    encoder: Encoder,
) -> list[_Span]:
    """Return the spans whose verified degree is enough.

    Those that are nearer to a counter-example are of no phrase, -1.
    """
    tables = _tables(passage, phrases)
    against_table = _counter_table(passage, counters, tables.max(axis=0))
    lengths = full_range(tables.shape[1])
    # Which phrases each span is near enough to in context; none where it is a counter-example.
    near: dict[tuple[int, int], list[int]] = {}
    for n, table in enumerate([*tables, against_table]):
        for i, j, value in top_spans(table, lengths, VERIFIED_SPANS, passage.said.costs):
            if degree(value) >= threshold - VERIFY_MARGIN:
                said = near.setdefault((i, j), [])
                said += [n] if n < len(phrases) else []
    places = list(near)
    alone = encoder.encode([span_text(passage.stored, *place)[2] for place in places])
    cosines = alone @ np.array([phrase.vector for phrase in phrases]).T
    against = (alone @ counters.T).max(axis=1, initial=-np.inf)
    spans = []
    for place, row, counter in zip(places, cosines.tolist(), against.tolist(), strict=True):
        best, phrase = max(((row[n], n) for n in near[place]), default=(-np.inf, -1))
        nearer = counter > best
        spans.append(_Span(*place, counter if nearer else best, -1 if nearer else phrase))
    return [span for span in spans if degree(span.cosine) >= threshold - ROUNDING]


def _judged(
    passage: _Passage, phrases: Sequence[_Phrase], spans: Sequence[_Span], judge: Judge
) -> list[_Span]:
    """Return spans with their judged degrees; nothing speaks against those of counter-examples."""
    starts, ends = passage.stored.packed.starts, passage.stored.packed.ends
    text = passage.stored.passage.text
    verified = np.array([degree(span.cosine) for span in spans], np.float32)
    degrees = judge.calibration.degrees(verified)
    own = [n for n, span in enumerate(spans) if span.phrase >= 0]
    asked = [
        (
            phrases[spans[n].phrase].query.text,
            Placed(*placed(text, starts, ends, int(starts[spans[n].i]), int(ends[spans[n].j - 1]))),
        )
        for n in own
    ]
    degrees[own] = judge.degrees(asked, verified[own])
    return [
        span._replace(cosine=cosine(one)) for span, one in zip(spans, degrees.tolist(), strict=True)
    ]


def _apart(passage: _Passage, spans: Sequence[_Span], threshold: float) -> list[_Span]:
    """Return the spans of a phrase whose degree is enough, best first, none overlapping."""
    costs = passage.said.costs
    kept: list[_Span] = []

    def preferred(span: _Span) -> tuple[float, int, int]:
        return span.cosine - float(costs[span.j - span.i - 1, span.i]), span.i, span.j

    for span in sorted(spans, key=preferred, reverse=True):
        apart = all(span.j <= other.i or other.j <= span.i for other in kept)
        if degree(span.cosine) >= threshold - ROUNDING and apart:
            kept.append(span)
    return [span for span in kept if span.phrase >= 0]


def _match(name: str, phrase: str, stored: StoredPassage, span: _Span) -> Match:
    start, end, text = span_text(stored, span.i, span.j)
    passage = stored.passage
    return Match(
        name,
        phrase,
        passage.document,
        passage.number,
        start,
        end,
        text,
        degree(span.cosine),
        passage.start + start,
        passage.start + end,
    )


def select(
    matches: Iterable[Match],
    *,
    top: int | None = None,
    per_document: bool = False,
    sort: Order | None = None,
) -> Iterator[Match]:
    """Yield the best of some matches; without an option, all of them as they come.

    `per_document` keeps the best match of each document and name, `top` the best so many of each
    name, name by name; `sort` orders all by their degree, highest first. With `top` alone no more
    than that is held in memory.

    Raises:
        QueryError: `top` is not above 0, or there is no such order.
    """
    if top is not None and top < 1:
        raise QueryError(f"The best {top} matches were asked for: ask for at least 1.")
    if sort not in (None, "degree"):
        raise QueryError(f"There is no order {sort!r}: choose degree.")
    if per_document:
        matches = _best_of_each_document(matches)
    if top is not None:
        matches = _best_of_each_name(matches, top)
    return iter(sorted(matches, key=_worst_last)) if sort else iter(matches)


def _worst_last(match: Match) -> float:
    return -match.degree


def _best_of_each_document(matches: Iterable[Match]) -> Iterator[Match]:
    best: dict[tuple[str, str], Match] = {}
    for match in matches:
        key = match.name, match.document
        if key not in best or best[key].degree < match.degree:
            best[key] = match
    yield from best.values()


def _best_of_each_name(matches: Iterable[Match], top: int) -> Iterator[Match]:
    best: dict[str, list[tuple[float, int, Match]]] = {}
    for order, match in enumerate(matches):
        heap = best.setdefault(match.name, [])
        # Of equal degrees the first stays; no two orders are equal, so matches are not compared.
        entry = (match.degree, -order, match)
        if len(heap) < top:
            heapq.heappush(heap, entry)
        else:
            heapq.heappushpop(heap, entry)
    for heap in best.values():
        yield from (match for _, _, match in sorted(heap, reverse=True))

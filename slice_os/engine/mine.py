"""Mining with any backend, rescored or in context."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from slice_os.encoders import Encoder, StandaloneVectors
from slice_os.encoders.judge import Judge
from slice_os.engine.phrases import Sought
from slice_os.engine.rescore import (
    ROUNDING,
    PassageSpans,
    RescoredSpan,
    encode_spans,
    judge_pair,
    match_of,
)
from slice_os.engine.search import encode_queries, query_lengths
from slice_os.errors import QueryError
from slice_os.options import MineOptions
from slice_os.spans import (
    EncodedQuery,
    PhraseBatch,
    SpanTables,
    cosine,
    degree,
    margin,
    prepare_queries,
)
from slice_os.storage.contract import Backend, MiningQuery, StoredPassage
from slice_os.text import Query, parse_query
from slice_os.text.filters import Condition
from slice_os.text.normal_form import plain
from slice_os.types import Match, OnProgress

FIRST, BATCH = 16, 256
"""Passages whose spans are rescored at once: few at first, so that matches come soon, then twice as
many each time, up to BATCH, which takes a fifth less time."""


class Phrase(NamedTuple):
    """One phrase of a name: as it was typed, without operators, and encoded."""

    name: str
    typed: str
    query: Query
    encoded: EncodedQuery


class _Candidate(NamedTuple):
    """A passage that may say some phrases of a name."""

    spans: PassageSpans
    phrases: list[Phrase]


def mine_phrases(
    backend: Backend,
    standalone: StandaloneVectors,
    sought: Mapping[str, Sought],
    options: MineOptions,
    *,
    filters: Sequence[Condition] = (),
    judge: Judge | None = None,
    on_progress: OnProgress = lambda done: None,
    on_unknown: Callable[[str], object] = lambda name: None,
) -> Iterator[Match]:
    """Return an iterator of every match of what is sought, passage by passage, best first in each.

    A match is a span whose degree with one of a name's phrases is at least the least one; of those
    of one name that overlap only the best stays, of which phrase it may be. Where a counter-example
    of the name is nearer to a span than the phrases are, neither that span nor one that overlaps
    it is a match. Words that are the phrase's have the degree 1. Else it is made of what the span
    says in its context and, with `rescore`, of its words encoded alone by `standalone`, for which
    without it the encoder's phrase head stands (`slice_os.spans.selection`). A `judge` reads those
    that reach the threshold, and its word decides. Every word is read; `graph` has a cluster ask
    its k-NN graph which passages to read, which is faster in a large index and misses what only the
    phrase head sees. A phrase may say which words have to stand in the passage and which must not
    (`slice_os.text.parse_query`), unless it is `literal`; counter-examples are taken as they are.
    `on_progress` is told what share of the work is done, `on_unknown` each phrase and
    counter-example of which the encoder knows no word: it is left out.

    Raises:
        QueryError: a phrase is empty, or all are unknown.
    """
    encoder, threshold = standalone.encoder, options.min_degree
    sought = _known(sought, encoder, options.literal, on_unknown)
    queries = [
        (name, text, parse_query(text, literal=options.literal))
        for name, texts in sought.items()
        for text in texts.phrases
    ]
    against = [(name, text) for name, texts in sought.items() for text in texts.counter_examples]
    all_texts = [query.text for *_, query in queries] + [text for _, text in against]
    encoded = _encode(encoder, all_texts, backend.meta.max_words, options.all_lengths)
    phrases = [Phrase(*query, vectors) for query, vectors in zip(queries, encoded, strict=False)]
    counters: dict[str, list[EncodedQuery]] = {}
    for (name, _), counter in zip(against, encoded[len(phrases) :], strict=True):
        counters.setdefault(name, []).append(counter)
    judge = judge if options.rescore else None
    least = cosine(judge.least(threshold) if judge else threshold)
    mining = MiningQuery(_phrase_batch(phrases, least, options.rescore), filters, options.graph)

    def candidates() -> Iterator[_Candidate]:
        for stored, numbers in backend.scan(mining, on_progress):
            words = stored.passage.title, stored.passage.text
            by_name: dict[str, list[Phrase]] = {}
            for k in numbers:
                if all(wording.holds(*words) for wording in phrases[k].query.wording):
                    by_name.setdefault(phrases[k].name, []).append(phrases[k])
            if by_name:
                tables = _tables(stored, encoder)
                for name, likely in by_name.items():
                    compared = [*(phrase.encoded for phrase in likely), *counters.get(name, ())]
                    yield _Candidate(PassageSpans(stored, tables, compared, len(likely)), likely)

    def matches() -> Iterator[Match]:
        waiting, together = candidates(), FIRST if options.rescore else 1
        while batch := list(islice(waiting, together)):
            if options.rescore:
                together = min(2 * together, BATCH)
            passages = [candidate.spans for candidate in batch]
            if options.rescore:
                encode_spans(passages, lambda spans: spans.likely(least), standalone)
                encode_spans(passages, lambda spans: spans.further(least), standalone)
                best = [spans.rescored(least) for spans in passages]
            else:
                best = [spans.in_context(least) for spans in passages]
            if judge:
                best = _judged(passages, best, judge, threshold)
            for candidate, spans in zip(batch, best, strict=True):
                norms = candidate.spans.stored.packed.norms
                for span in spans:
                    if norms[span.j - span.i - 1, span.i]:  # else a neighbour's
                        phrase = candidate.phrases[span.query]
                        shown = degree(span.cosine)
                        stored = candidate.spans.stored
                        yield match_of(phrase.name, phrase.typed, stored, (span.i, span.j), shown)
        on_progress(1.0)

    return matches()


def _encode(
    encoder: Encoder, texts: Sequence[str], max_words: int, all_lengths: bool
) -> list[EncodedQuery]:
    """Return what spans are compared with; QueryError if a text is empty or unknown."""
    vectors = encode_queries(encoder, [plain(text) for text in texts])
    lengths = [query_lengths(text, max_words, all_lengths) for text in texts]
    return prepare_queries(encoder, texts, vectors, lengths)


def _phrase_batch(phrases: Sequence[Phrase], least: float, rescore: bool) -> PhraseBatch:
    """Return what a backend looks for: what is shown, or what may be once it is rescored."""
    encoded = [phrase.encoded for phrase in phrases]
    head_queries = [query.head_query for query in encoded if query.head_query is not None]
    return PhraseBatch(
        np.array([query.vector for query in encoded]),
        # Shorter ones too: a whole sentence may be one.
        [range(1, query.lengths.stop) for query in encoded],
        np.full(len(encoded), least, dtype=np.float32),
        [query.weights for query in encoded],
        np.array([margin(q.n_words, least) if rescore else 0.0 for q in encoded], np.float32),
        [query.pieces for query in encoded],
        (
            np.array([vector for vector, _ in head_queries]),
            np.array([row for _, row in head_queries]),
        )
        if head_queries
        else None,
    )


def _tables(stored: StoredPassage, encoder: Encoder) -> SpanTables:
    packed, head = stored.packed, encoder.head
    words = (lambda: packed.phrase_vectors(head)) if head else (lambda: packed.vectors)
    return SpanTables(packed, stored.passage.text, head_words=words)


def _judged(
    passages: Sequence[PassageSpans],
    best: Sequence[Sequence[RescoredSpan]],
    judge: Judge,
    threshold: float,
) -> list[list[RescoredSpan]]:
    """Return the spans whose judged degree is enough, with it.

    They are those that were chosen by their degrees: a part of what the judge speaks against is no
    match in its place.
    """
    flat = [
        (passage, span) for passage, spans in zip(passages, best, strict=True) for span in spans
    ]
    degrees = np.array([degree(span.cosine) for _, span in flat])
    judged = iter(judge.degrees([judge_pair(*pair) for pair in flat], degrees).tolist())
    return [
        [
            span._replace(cosine=cosine(judged_degree))
            for span, judged_degree in zip(spans, judged)  # noqa: B905 - goes on with the next
            if judged_degree >= threshold - ROUNDING
        ]
        for spans in best
    ]


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
        name: Sought(kept(texts.phrases, literal), kept(texts.counter_examples, True))
        for name, texts in sought.items()
    }
    if sought and not any(texts.phrases for texts in known.values()):
        first, *others = (text for texts in sought.values() for text in texts.phrases)
        raise QueryError(
            f"The phrase {first[:60]!r} holds no word that the encoder knows"
            f"{', nor do the others' if others else ''}: mine with an encoder of their language, "
            "and an index made by it."
        )
    return {name: texts for name, texts in known.items() if texts.phrases}


def select(matches: Iterable[Match], options: MineOptions) -> Iterator[Match]:
    """Yield the best of some matches; without an option, all of them as they come.

    `per_document` keeps the best match of each document and name, `top` the best so many of each
    name, name by name; `sort` orders all by their degree, highest first. With `top` alone not much
    more than that is held in memory.
    """
    if options.per_document:
        matches = _best(matches, 1, lambda match: (match.name, match.document))
    if options.top is not None:
        matches = _best(matches, options.top, lambda match: match.name)
    return iter(sorted(matches, key=_worst_last)) if options.sort else iter(matches)


def _worst_last(match: Match) -> float:
    return -match.degree


def _best(
    matches: Iterable[Match], count: int, key: Callable[[Match], Hashable]
) -> Iterator[Match]:
    """Yield the best so many of the matches of each key; of equal degrees the first stay."""
    best: dict[Hashable, list[Match]] = {}
    for match in matches:
        group = best.setdefault(key(match), [])
        group.append(match)
        if len(group) >= 2 * count + 100:
            group[:] = sorted(group, key=_worst_last)[:count]
    for group in best.values():
        yield from sorted(group, key=_worst_last)[:count]

"""Mining with any backend, rescored or in context."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

import numpy as np

from slice_os.encoders import Encoder
from slice_os.encoders.alone import AloneVectors
from slice_os.encoders.judge import Judge
from slice_os.engine.phrases import Sought
from slice_os.engine.rescore import span_text
from slice_os.engine.rescore_matches import Case, Phrase, Span, judged, rescored
from slice_os.engine.search import encode_queries, query_lengths
from slice_os.errors import QueryError
from slice_os.options import MineOptions
from slice_os.spans import Aim, Question, SpanTables, cosine, degree, margin, questions
from slice_os.storage.contract import Backend, MiningQuery, Order, StoredPassage
from slice_os.text import parse_query
from slice_os.text.filters import Condition
from slice_os.text.normal_form import plain
from slice_os.types import Match

BATCH = 256
"""Passages whose spans are rescored at once: few, so that Ctrl-C loses little."""


def mine_phrases(
    backend: Backend,
    encoder: Encoder,
    sought: Mapping[str, Sought],
    alone: AloneVectors,
    options: MineOptions,
    *,
    filters: Sequence[Condition] = (),
    judge: Judge | None = None,
    on_progress: Callable[[float], object] = lambda done: None,
    on_unknown: Callable[[str], object] = lambda name: None,
) -> Iterator[Match]:
    """Yield every match of what is sought, by name, passage by passage, best first in each.

    A match is a span whose degree with one of a name's phrases is at least `threshold`; of those of
    one name that overlap only the best stays, of which phrase it may be. Where a counter-example
    of the name is nearer to a span than the phrases are, neither that span nor one that overlaps
    it is a match. Words that are the phrase's have the degree 1. Else it is made of what the span
    says in its context and, with `rescore`, of its words encoded alone, for which without it the
    encoder's phrase head stands (`slice_os.spans.degrees`). `alone` does the encoding of the spans
    that may be a match. A `judge` reads those that reach the threshold, and its word decides.
    Every word is read; `graph` has a cluster ask its k-NN graph which passages to read, which is
    faster in a large index and misses what only the phrase head sees. A phrase may say which words
    have to stand in the passage and which must not (`slice_os.text.parse_query`), unless it is
    `literal`; counter-examples are taken as they are. `on_progress` is told what share of the work
    is done, `on_unknown` each phrase and counter-example of which the encoder knows no word: it is
    left out.

    Raises:
        QueryError: a phrase is empty, all are unknown, or the threshold is not in [0, 1].
    """
    threshold, rescore = options.min_degree, options.rescore
    sought = _known(sought, encoder, options.literal, on_unknown)
    names = list(sought)
    typed = [(n, text) for n, name in enumerate(names) for text in sought[name].phrases]
    queries = [parse_query(text, literal=options.literal) for _, text in typed]
    against = [(n, text) for n, name in enumerate(names) for text in sought[name].counter_examples]
    asked = _questions(
        encoder,
        [*(query.text for query in queries), *(text for _, text in against)],
        backend.meta.max_words,
        options.all_lengths,
    )
    phrases = [
        Phrase(text, query, question)
        for (_, text), query, question in zip(typed, queries, asked[: len(queries)], strict=True)
    ]
    counters: dict[int, list[Question]] = {}
    for (n, _), question in zip(against, asked[len(queries) :], strict=True):
        counters.setdefault(n, []).append(question)
    judge = judge if rescore else None
    least = judge.least(threshold) if judge else threshold
    wanted = MiningQuery(
        _aim(asked[: len(queries)], cosine(least), rescore), filters, options.graph
    )

    def cases() -> Iterator[Case]:
        for stored, found in backend.scan(wanted, on_progress):
            words = stored.passage.title, stored.passage.text
            by_name: dict[int, list[Phrase]] = {}
            for k in found:
                if all(one.holds(*words) for one in phrases[k].query.wording):
                    by_name.setdefault(typed[k][0], []).append(phrases[k])
            if by_name:
                tables = _tables(stored, encoder)
                for n, some in by_name.items():
                    yield Case(stored, tables, n, some, counters.get(n, ()), cosine(least))

    waiting = cases()
    while batch := list(islice(waiting, BATCH if rescore else 1)):
        kept = rescored(batch, alone) if rescore else [case.in_context() for case in batch]
        if judge:
            kept = judged(batch, kept, judge, threshold)
        for case, spans in zip(batch, kept, strict=True):
            for span in spans:
                if case.stored.packed.norms[span.j - span.i - 1, span.i]:  # else a neighbour's
                    yield _match(names[case.name], case.phrases[span.phrase].typed, case, span)
    on_progress(1.0)


def _questions(
    encoder: Encoder, texts: Sequence[str], max_words: int, all_lengths: bool
) -> list[Question]:
    """Return what spans are compared with; QueryError if a text is empty or unknown."""
    vectors = encode_queries(encoder, [plain(text) for text in texts])
    lengths = [query_lengths(text, max_words, all_lengths) for text in texts]
    asked = encoder.head.ask(vectors) if encoder.head else None
    return questions(texts, vectors, lengths, asked, encoder.pieces)


def _aim(asked: Sequence[Question], least: float, rescore: bool) -> Aim:
    """Return what a backend is to look for: what is shown, or what may be once it is rescored."""
    rooms = [margin(len(one.text.split()), least) if rescore else 0.0 for one in asked]
    given = [one.asked for one in asked if one.asked is not None]
    return Aim(
        np.array([one.vector for one in asked]),
        # Shorter ones too: a whole sentence may be one.
        [range(1, one.lengths.stop) for one in asked],
        np.full(len(asked), least, dtype=np.float32),
        [one.weights for one in asked],
        np.array(rooms, np.float32),
        [one.pieces for one in asked],
        (np.array([one for one, _ in given]), np.array([one for _, one in given]))
        if given
        else None,
    )


def _tables(stored: StoredPassage, encoder: Encoder) -> SpanTables:
    packed, head = stored.packed, encoder.head
    words = (lambda: packed.phrase_vectors(head)) if head else (lambda: packed.vectors)
    return SpanTables(packed, stored.passage.text, head_words=words)


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


def _match(name: str, phrase: str, case: Case, span: Span) -> Match:
    start, end, text = span_text(case.stored, span.i, span.j)
    passage = case.stored.passage
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

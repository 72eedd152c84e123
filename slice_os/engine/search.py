"""Search: what a query asks of a backend, and which of the hits it found are returned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from operator import itemgetter

import numpy as np

from slice_os.encoders import Encoder, StandaloneVectors
from slice_os.encoders.judge import Judge
from slice_os.engine.rerank import Ranked, rank_lazily, ranked_passages
from slice_os.engine.rescore import (
    ROUNDING,
    PassageSpans,
    RescoredSpan,
    encode_spans,
    judge_pair,
    span_text,
)
from slice_os.errors import QueryError
from slice_os.host import one_blas_thread
from slice_os.options import SearchOptions
from slice_os.spans import (
    EncodedQuery,
    QueryWords,
    SpanTables,
    contributions,
    degree,
    full_range,
    length_window,
    prepare_queries,
    query_words,
)
from slice_os.storage.contract import Backend, IndexMeta, SearchQuery
from slice_os.text import Query, count_words
from slice_os.text.filters import Condition
from slice_os.types import Float32, Hit, SpanMatch

DEPTH = 1000
"""Passages of each ranking that a hybrid search fuses, whatever the page: pages do not overlap."""
LOOKED_THROUGH = 100
"""Passages whose words come at once where a search goes on through the ranks: some 20 MB."""
PATIENCE = 100
"""Passages in a row below the degree that is asked for after which no more are looked through: each
takes a few encoder runs. On the examples 2 of 1,856 hits lie further down."""
_NO_VECTOR: Float32 = np.zeros(0, np.float32)
SHOWN_SPANS = 3
"""Spans a hit shows: the best that share no word."""


class Hits(list[Hit]):
    """The hits of a search, best first: a list that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        return f"<ol>{''.join(f'<li>{hit._repr_html_()}</li>' for hit in self)}</ol>"


def search_passages(
    backend: Backend,
    load: Callable[[], StandaloneVectors],
    queries: Sequence[str | Query],
    options: SearchOptions,
    *,
    filters: Sequence[Condition] = (),
    judge: Judge | None = None,
    turn: Callable[[Float32], Float32] | None = None,
) -> list[Hits]:
    """Return the best passages for each of some queries, ranked by their score.

    The queries are encoded in one run of the encoder that `load` gives, and so are the spans that
    are rescored; an embedded index is read once for all of them. A text is taken as it is;
    `slice_os.text.parse_query` reads the operators that one may hold.

    The dense part of a score is the degree of the best span in context and, for a share of `late`,
    how near each word of the query has its nearest word in the passage (`engine.rerank`;
    the fusions of rankings, rrf and min_max, go by the degree alone).

    The degree of a hit is that of its best span, made of what that says in its context and of its
    words alone (`spans.selection`): `rescore` spans a hit, the best by the phrase head, are
    encoded; with ``rescore=0`` the phrase head stands for it. A `judge` then compares each span
    that is shown with the query word by word, and has the last word (`slice_os.encoders.judge`).
    BM25 needs no encoder: with ``rescore=0``, unless a degree is asked for (`min_degree`, `sort`),
    the hits of the mode lexical have no spans and the degree 0; and of a query of which the encoder
    knows no word, only its very words are shown.

    With `min_degree` only hits of at least that degree are returned and counted, in whatever mode:
    the search goes on through the ranks until it has `size` of them after the first `offset`, has
    looked through the best 1,000 passages, or has found 100 in a row below it. To find all that
    reach a degree, mine.

    With `group` the hits of a document stand together, the documents in the order of their best
    hits; `size` and `offset` count documents. Each comes with those of its hits that are met before
    the last of these documents is complete: of the best 1,000 passages, and until 100 in a row have
    brought no new document.

    Which hits are returned is decided by their scores; `sort` puts them in the order of their
    degrees, the highest first, and with `group` their documents in that of their best ones.

    Raises:
        QueryError: the query holds no word, or a setting is out of its range.
    """
    onward = options.min_degree > 0 or options.group
    last = options.offset + options.size
    if onward and last > DEPTH:
        raise QueryError(
            f"A search by degree or by document looks through the best {DEPTH:,} passages: "
            "ask for no more than that, or mine."
        )
    if options.mode == "hybrid" and last > DEPTH:
        raise QueryError(
            f"A hybrid search ranks the best {DEPTH:,} passages of each ranking: ask for no more "
            "than that, or use the mode dense or lexical."
        )
    parsed = [Query(query) if isinstance(query, str) else query for query in queries]
    needs_spans = options.mode != "lexical" or options.rescore or options.min_degree or options.sort
    standalone = load() if needs_spans else None
    encoder = standalone.encoder if standalone else None
    with one_blas_thread():
        search_queries = _search_queries(backend, encoder, parsed, options, filters)
        prepared = _prepared(encoder, search_queries)
        if turn is not None:  # what ranks; the degrees shown are the query's own
            search_queries = [replace(query, vector=turn(query.vector)) for query in search_queries]
        mark = partial(
            _marked, standalone=standalone, rescore=options.rescore, judge=judge, meta=backend.meta
        )
        if not onward:
            ranked = ranked_passages(backend, search_queries, range(options.offset, last))
            pages = mark(ranked, prepared)
        else:
            pages = []
            for query, encoded in zip(search_queries, prepared, strict=True):
                hits = _through_ranks(backend, query, encoded, mark, options)
                documents = _by_document(hits, last) if options.group else ([hit] for hit in hits)
                page = islice(documents, options.offset, last)
                pages.append(Hits(chain.from_iterable(page)))
        return [_by_degree(hits, options.group) for hits in pages] if options.sort else pages


def _search_queries(
    backend: Backend,
    encoder: Encoder | None,
    queries: Sequence[Query],
    options: SearchOptions,
    filters: Sequence[Condition],
) -> list[SearchQuery]:
    """Return what a backend is asked for; all queries are encoded in one run.

    BM25 alone needs no encoder, nor that it knows a word of the query. Then there are no lengths of
    spans to compare, as all that is unknown is alike to it: only the very words can be shown.
    """
    known = [encoder is not None and encoder.knows(query.text) for query in queries]
    for query, is_known in zip(queries, known, strict=True):
        _check(query.text, is_known or options.mode == "lexical")
    texts = [query.text for query in queries]
    encoded: Iterator[tuple[Float32, QueryWords | None]] = iter([(_NO_VECTOR, None)] * len(texts))
    if encoder:
        encoded = _encode_with_words(encoder, texts)
    onward = options.min_degree > 0 or options.group
    search_queries = []
    for query, is_known, (vector, words) in zip(queries, known, encoded, strict=True):
        lengths = range(1, 1)
        if is_known:
            lengths = query_lengths(query.text, backend.meta.max_words, options.all_lengths)
        search_queries.append(
            SearchQuery(
                query.text,
                vector,
                lengths,
                filters=[*filters, *query.wording],
                depth=max(DEPTH, options.offset + options.size),
                reach=DEPTH if onward else 0,
                words=words,
                mode=options.mode,
                fusion=options.fusion,
                weight=options.weight,
                late=options.late,
            )
        )
    return search_queries


def _prepared(
    encoder: Encoder | None, queries: Sequence[SearchQuery]
) -> Sequence[EncodedQuery | None]:
    """Return what spans are compared with for each query; None where no span is to be shown."""
    if encoder is None or not queries:
        return [None] * len(queries)
    texts, lengths = [query.text for query in queries], [query.lengths for query in queries]
    return prepare_queries(encoder, texts, np.stack([query.vector for query in queries]), lengths)


def _marked(
    ranked: Sequence[Sequence[Ranked]],
    queries: Sequence[EncodedQuery | None],
    standalone: StandaloneVectors | None,
    rescore: int,
    judge: Judge | None,
    meta: IndexMeta,
) -> list[Hits]:
    """Return passages as hits with their best spans: one encoder run rescores those of all.

    The best by the phrase head are rescored, `rescore` of each passage. A `judge` has the last word
    on their degrees. With 0 the best are shown as they are in context and by the phrase head.
    """
    compared = {
        passage: PassageSpans(
            passage.stored,
            SpanTables(passage.stored.packed, passage.stored.passage.text),
            [query],
            phrases=1,
        )
        for passages, query in zip(ranked, queries, strict=True)
        if query
        for passage in passages
    }
    if rescore and standalone and compared:
        known = [query for query in queries if query]
        texts = [query.text for query in known]
        vectors = encode_spans(
            [*compared.values()], lambda spans: spans.best(rescore), standalone, texts
        )
        query_vectors = dict(zip(known, vectors.astype(np.float64), strict=True))
        for spans in compared.values():
            spans.query_vectors = [query_vectors[spans.queries[0]]]
    shown = [
        (passage, spans, span)
        for passage, spans in compared.items()
        for span in (spans.rescored() if rescore else spans.in_context(-1.0))[:SHOWN_SPANS]
    ]
    degrees = np.array([degree(span.cosine) for *_, span in shown])
    reasons: dict[int, tuple[str, ...]] = {}
    if judge and rescore and shown:
        pairs = [judge_pair(spans, span) for _, spans, span in shown]
        judged = judge.degrees(pairs, degrees)
        lowered = np.flatnonzero(judged < degrees - ROUNDING).tolist()
        reasons = dict(zip(lowered, judge.reasons([pairs[n] for n in lowered]), strict=True))
        degrees = judged
    matches: dict[Ranked, list[tuple[float, SpanMatch]]] = {}
    for n, (passage, spans, span) in enumerate(shown):
        match = _span_match(passage, spans, span, float(degrees[n]), reasons.get(n, ()))
        preference = spans.cost(span) / 2 - match.degree
        matches.setdefault(passage, []).append((preference, match))
    return [
        Hits(_hit(passage, matches.get(passage, ()), meta) for passage in passages)
        for passages in ranked
    ]


def _span_match(
    ranked: Ranked,
    spans: PassageSpans,
    span: RescoredSpan,
    final_degree: float,
    opposition: tuple[str, ...],
) -> SpanMatch:
    start, end, text = span_text(ranked.stored, span.i, span.j)
    shares = contributions(ranked.word_scores, spans.tables.norms, span.i, span.j)
    in_context = degree(float(shares.sum()))
    return SpanMatch(start, end, text, final_degree, in_context, tuple(shares.tolist()), opposition)


def _hit(ranked: Ranked, matches: Sequence[tuple[float, SpanMatch]], meta: IndexMeta) -> Hit:
    passage = ranked.stored.passage
    spans = tuple(match for _, match in sorted(matches, key=itemgetter(0)))
    return Hit(
        passage.document,
        passage.number,
        passage.title,
        passage.text,
        ranked.score,
        spans[0].degree if spans else 0.0,
        spans,
        meta.stored(ranked.stored.metadata),
        passage.start,
        passage.end,
    )


def _through_ranks(
    backend: Backend,
    query: SearchQuery,
    prepared: EncodedQuery | None,
    mark: Callable[..., list[Hits]],
    options: SearchOptions,
) -> Iterator[Hit]:
    """Yield the hits of at least a degree, of the best DEPTH, until PATIENCE in a row are below."""
    step, missed = min(options.offset + options.size, LOOKED_THROUGH), 0
    ranked = _all_ranked(backend, query, step)
    while page := list(islice(ranked, step)):
        (hits,) = mark([page], [prepared])
        for hit in hits:
            if hit.degree >= options.min_degree - ROUNDING:
                missed = 0
                yield hit
            elif (missed := missed + 1) == PATIENCE:
                return
        step = min(2 * step, LOOKED_THROUGH)


def _all_ranked(backend: Backend, query: SearchQuery, step: int) -> Iterator[Ranked]:
    """Yield the best DEPTH passages; they are read as many together as the backend has at once."""
    first = 0
    while first < DEPTH:
        size = min(max(step, backend.ranks_at_once), DEPTH - first)
        (ranked,) = rank_lazily(backend, [query], range(first, first + size))
        passages = 0
        for passages, passage in enumerate(ranked, 1):  # noqa: B007 - counted for what follows
            yield passage
        if passages < size:
            return
        first, step = first + size, min(2 * step, LOOKED_THROUGH)


def _by_document(hits: Iterator[Hit], count: int) -> list[list[Hit]]:
    """Return the hits of the first `count` documents, and of no other."""
    documents: dict[str, list[Hit]] = {}
    since = 0
    for hit in hits:
        since = since + 1 if hit.document in documents else 0
        if since == PATIENCE or (not since and len(documents) == count):
            break
        documents.setdefault(hit.document, []).append(hit)
    return list(documents.values())


def _by_degree(hits: Hits, group: bool) -> Hits:
    """Return hits in the order of their degrees; with `group` those of a document stay together."""
    ordered = sorted(hits, key=lambda hit: -hit.degree)
    if group:
        documents = [hit.document for hit in ordered]
        ordered.sort(key=lambda hit: documents.index(hit.document))
    return Hits(ordered)


def encode_with_words(
    encoder: Encoder, texts: Sequence[str]
) -> Iterator[tuple[Float32, QueryWords]]:
    """Yield the unit vector, float32 ``[d]``, and the words of each query, in one encoder run.

    Raises:
        QueryError: one is empty or holds no word.
    """
    for text, (vector, words) in zip(texts, _encode_with_words(encoder, texts), strict=True):
        _check(text, words is not None)
        assert words is not None
        yield vector, words


def _encode_with_words(
    encoder: Encoder, texts: Sequence[str]
) -> Iterator[tuple[Float32, QueryWords | None]]:
    """Yield the same; of a text of which the encoder knows no word, zeros and None."""
    for words in encoder.encode_words(texts):
        whole = words.vectors.sum(axis=0)
        norm = np.linalg.norm(whole)
        yield (whole / norm, query_words(words.vectors)) if norm > 0 else (whole, None)


def encode_queries(encoder: Encoder, queries: Sequence[str]) -> Float32:
    """Return the unit vectors of queries or phrases, float32 ``[n, d]``.

    Raises:
        QueryError: one of them is empty or holds no word that the encoder knows.
    """
    vectors = encoder.encode(queries)
    for query, norm in zip(queries, np.linalg.norm(vectors, axis=1), strict=True):
        _check(query, norm > 0 and encoder.knows(query))
    return vectors


def _check(query: str, known: bool) -> None:
    if not query.strip():
        raise QueryError("The query is empty: give at least one word.")
    if not known:
        raise QueryError(
            f"The query {query[:60]!r} holds no word that the encoder knows",
            hint="search for it by BM25 ('--mode lexical'), or index with an encoder of its "
            "language.",
        )


def query_lengths(query: str, max_words: int, all_lengths: bool) -> range:
    """Return the span lengths that a query is compared with."""
    return full_range(max_words) if all_lengths else length_window(count_words(query), max_words)

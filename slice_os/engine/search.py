"""Search: what a query asks of a backend, and which of the hits it found are returned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from slice_os.encoders import Encoder
from slice_os.encoders.alone import AloneVectors
from slice_os.encoders.judge import Judge
from slice_os.engine.rerank import ranked_passages
from slice_os.engine.rescore import Hits, rescored
from slice_os.errors import QueryError
from slice_os.host import one_blas_thread
from slice_os.options import SearchOptions
from slice_os.spans import QueryWords, full_range, length_window, query_words
from slice_os.storage.contract import Backend, SearchQuery
from slice_os.text import Query, count_words
from slice_os.text.filters import Condition
from slice_os.types import Float32, Hit

DEPTH = 1000
"""Passages of each ranking that a hybrid search fuses, whatever the page: pages do not overlap."""
LOOKED_THROUGH = 100
"""Passages whose words come at once where a search goes on through the ranks: some 20 MB."""
PATIENCE = 100
"""Passages in a row below the degree that is asked for after which no more are looked through: each
takes a few encoder runs. On the examples 2 of 1,856 hits lie further down."""
ROUNDING = 1e-6
"""What a degree may be short of the threshold: a float32 vector times itself is not quite 1."""


def search_passages(
    backend: Backend,
    alone: AloneVectors,
    queries: Sequence[str | Query],
    options: SearchOptions,
    *,
    filters: Sequence[Condition] = (),
    judge: Judge | None = None,
) -> list[Hits]:
    """Return the best passages for each of some queries, ranked by their score.

    The queries are encoded in one run of the encoder, and so are the spans that are rescored, by
    `alone`; an embedded index is read once for all of them. A text is taken as it is;
    `slice_os.text.parse_query` reads the operators that one may hold.

    The dense part of a score is the degree of the best span in context and, for a share of `late`,
    how near each word of the query has its nearest word in the passage (`search.rerank`;
    the fusions of rankings, rrf and min_max, go by the degree alone).

    The degree of a hit is that of its best span, made of what that says in its context and of its
    words alone (`slice_os.spans.degrees`): `rescore` spans a hit, the best by the phrase head, are
    encoded; with ``rescore=0`` the phrase head stands for it. A `judge` then compares each span
    that is shown with the query word by word, and has the last word (`slice_os.encoders.judges`).
    `all_lengths` compares spans of every length instead of about 0.75 to 1.4 times the query's
    words.

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
    encoder = alone.encoder
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
    asked = [Query(query) if isinstance(query, str) else query for query in queries]
    with one_blas_thread():
        encoded = encoded_queries(encoder, [query.text for query in asked])
        wanted = [
            SearchQuery(
                query.text,
                vector,
                _lengths(encoder, query.text, backend.meta.max_words, options),
                filters=[*filters, *query.wording],
                reach=DEPTH if onward else 0,
                words=words,
                mode=options.mode,
                fusion=options.fusion,
                weight=options.weight,
                late=options.late,
            )
            for query, (vector, words) in zip(asked, encoded, strict=True)
        ]

        def read(some: Sequence[SearchQuery], offset: int, size: int) -> list[Hits]:
            return _page(backend, alone, some, range(offset, offset + size), options.rescore, judge)

        found = [] if onward else read(wanted, options.offset, options.size)
        for query in wanted if onward else ():
            hits = _through_ranks(
                lambda at, count, query=query: read([query], at, count)[0],  # type: ignore[misc]
                options.min_degree,
                last,
            )
            documents = _by_document(hits, last) if options.group else ([hit] for hit in hits)
            some = islice(documents, options.offset, last)
            found.append(Hits(hit for hits in some for hit in hits))
        return [_by_degree(hits, options.group) for hits in found] if options.sort else found


def _page(
    backend: Backend,
    alone: AloneVectors,
    queries: Sequence[SearchQuery],
    ranks: range,
    rescore: int,
    judge: Judge | None,
) -> list[Hits]:
    """Return the hits of some ranks of each query: retrieved, reranked, rescored."""
    wanted = max(DEPTH, ranks.stop)
    asked = [replace(query, depth=wanted, reach=max(query.reach, ranks.stop)) for query in queries]
    ranked = ranked_passages(backend, asked, ranks)
    stored = backend.meta.stored
    return [
        Hits(replace(hit, metadata=stored(hit.metadata)) for hit in hits)
        for hits in rescored(ranked, queries, alone, rescore, judge)
    ]


def _through_ranks(
    read: Callable[[int, int], list[Hit]], least: float, expected: int
) -> Iterator[Hit]:
    """Yield the hits of at least a degree, of the best DEPTH; ``read(offset, size)`` gives some."""
    at, step, missed = 0, min(expected, LOOKED_THROUGH), 0
    while at < DEPTH:
        step = min(step, DEPTH - at)
        hits = read(at, step)
        for hit in hits:
            if hit.degree >= least - ROUNDING:
                missed = 0
                yield hit
            elif (missed := missed + 1) == PATIENCE:
                return
        if len(hits) < step:
            return
        at, step = at + step, min(2 * step, LOOKED_THROUGH)


def _by_document(hits: Iterator[Hit], count: int) -> list[list[Hit]]:
    """Return the hits of the first `count` documents, and of no other."""
    found: dict[str, list[Hit]] = {}
    since = 0
    for hit in hits:
        since = since + 1 if hit.document in found else 0
        if since == PATIENCE or (not since and len(found) == count):
            break
        found.setdefault(hit.document, []).append(hit)
    return list(found.values())


def _by_degree(hits: Hits, group: bool) -> Hits:
    """Return hits in the order of their degrees; with `group` those of a document stay together."""
    ordered = sorted(hits, key=lambda hit: -hit.degree)
    if group:
        documents = [hit.document for hit in ordered]
        ordered.sort(key=lambda hit: documents.index(hit.document))
    return Hits(ordered)


def encoded_queries(encoder: Encoder, texts: Sequence[str]) -> Iterator[tuple[Float32, QueryWords]]:
    """Yield the unit vector, float32 ``[d]``, and the words of each query, in one encoder run.

    Raises:
        QueryError: one is empty or holds no word.
    """
    for text in texts:
        _not_empty(text)
    for text, words in zip(texts, encoder.encode_words(texts), strict=True):
        whole = words.vectors.sum(axis=0)
        norm = np.linalg.norm(whole)
        if not norm > 0:
            raise QueryError(f"The query {text[:60]!r} holds no word that the encoder knows.")
        yield whole / norm, query_words(words.vectors)


def _lengths(encoder: Encoder, query: str, max_words: int, options: SearchOptions) -> range:
    """Return the span lengths that a query is compared with, none if it is of unknown words.

    To the encoder an unknown word is like every other: no span can be shown for one.
    """
    known = encoder.knows(query)
    if options.mode != "lexical":
        _known(query, known)
    return query_lengths(query, max_words, options.all_lengths) if known else range(1, 1)


def encode_queries(encoder: Encoder, queries: Sequence[str]) -> Float32:
    """Return the unit vectors of queries or phrases, float32 ``[n, d]``.

    Raises:
        QueryError: one of them is empty or holds no word that the encoder knows.
    """
    for query in queries:
        _not_empty(query)
    vectors = encoder.encode(queries)
    for query, norm in zip(queries, np.linalg.norm(vectors, axis=1), strict=True):
        _known(query, norm > 0 and encoder.knows(query))
    return vectors


def _not_empty(query: str) -> None:
    if not query.strip():
        raise QueryError("The query is empty: give at least one word.")


def _known(query: str, known: bool) -> None:
    if not known:
        raise QueryError(
            f"The query {query[:60]!r} holds no word that the encoder knows: search for it by BM25 "
            "('--mode lexical'), or index with an encoder of its language."
        )


def query_lengths(query: str, max_words: int, all_lengths: bool) -> range:
    """Return the span lengths that a query is compared with."""
    return full_range(max_words) if all_lengths else length_window(count_words(query), max_words)

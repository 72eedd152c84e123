"""Candidates of an embedded index: every passage's degree, BM25, both fused."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from functools import partial

import numpy as np

from slice_os.spans import degree
from slice_os.storage.contract import Candidate, SearchQuery, StoredPassage
from slice_os.storage.fusion import get_fusion
from slice_os.storage.local.database import AT, Bools, Database, Int64
from slice_os.storage.local.filter_bits import meets
from slice_os.storage.local.postings import (
    Float64,
    Places,
    Postings,
    Ref,
    Segments,
    wording_clause,
)
from slice_os.storage.local.scan import best_cosines, exact_cosines, grouped
from slice_os.text.filters import Condition
from slice_os.types import Float32, Passage

REFINED = 400
"""Ranks by bits that are scored again by vectors; in an index of no more passages, all are.

Twice as many for short spans, which are near to much by nearly the same: more is reranked then.
"""
Rank = tuple[int, float, float]
"""A place, its score and its BM25 score, or NaN."""


def candidates(
    database: Database, segments: Segments, pool: Executor, queries: Sequence[SearchQuery]
) -> list[list[Candidate]]:
    """Return the ranks that each query asks for, best first; `pool` scans the segments."""
    places = Places(segments)
    scans: list[Future[Float32]] = []
    rows: dict[int, int] = {}
    if dense := [n for n, query in enumerate(queries) if query.mode != "lexical"]:
        vectors = np.array([queries[n].vector for n in dense])
        lengths = [queries[n].lengths for n in dense]
        rows = {n: row for row, n in enumerate(dense)}
        exact = len(places) <= REFINED
        in_order = (segments[number] for number in places.numbers.tolist())
        scans = [
            pool.submit(best_cosines, group, vectors, lengths, exact=exact)
            for group in grouped(in_order, len(dense), exact=exact)
        ]
    postings = Postings(database, places, len(queries))
    lexical = [  # while the pool scans
        None
        if query.mode == "dense"
        else postings.scores(query.text, query.filters, max(query.depth, query.ranks.stop))
        for query in queries
    ]
    cosines = [scan.result() for scan in scans]
    left_out: dict[tuple[Condition, ...], Bools] = {}
    results = []
    for n, (query, scores) in enumerate(zip(queries, lexical, strict=True)):
        degrees = np.empty(0)
        if n in rows and cosines:
            filters = tuple(query.filters)
            if filters not in left_out:
                left_out[filters] = unseen(database, places, filters)
            degrees = degree(np.concatenate([part[rows[n]] for part in cosines])).astype(float)
            degrees[left_out[filters]] = np.nan
        by_vectors = partial(_exact_degrees, segments, places, query)
        ranked = _ranked(postings, query, scores, degrees, by_vectors)[query.ranks.start :]
        passages = fetch(database, segments, places.refs([place for place, *_ in ranked]))
        results.append(
            [
                Candidate(score, stored, None if np.isnan(bm25) else bm25)
                for (_, score, bm25), stored in zip(ranked, passages, strict=True)
            ]
        )
    return results


def _whole_blocks(query: SearchQuery, ranks: int) -> int:
    """Return so many ranks, and the rest of those that are scored again together."""
    block = _refined(query)
    return -(-ranks // block) * block


def _refined(query: SearchQuery) -> int:
    return 2 * REFINED if query.is_short else REFINED


def _exact_degrees(segments: Segments, places: Places, query: SearchQuery, at: Int64) -> Float64:
    """Return the degrees of the passages at some places, from their vectors."""
    parts = [(segments[number], ordinal) for number, ordinal in places.refs(at.tolist())]
    return degree(exact_cosines(parts, query.vector, query.lengths)).astype(float)


def _ranked(
    postings: Postings,
    query: SearchQuery,
    lexical: tuple[Int64, Float64] | None,
    degrees: Float64,
    exact: Callable[[Int64], Float64],
) -> list[Rank]:
    """Return the best places for a query, as far as its ranks go.

    Where the `degrees` are those of a large index, they come from bits, and of what ranks best by
    them those of `exact` are taken: a block of ranks at a time, so that pages are cut from one
    sequence. A fusion of rankings has them of all that it fuses.
    """
    depth = max(query.depth, query.ranks.stop)
    if query.mode == "dense":
        depth = _whole_blocks(query, depth)
    rows, values = lexical or (np.empty(0, np.int64), np.empty(0))
    matching = postings.places(rows)
    by_bits = query.mode != "lexical" and len(degrees) > REFINED
    fusion, weight = get_fusion(query.fusion, query.weight)
    of_one = fusion.of_one if query.mode == "hybrid" else None
    fuses_rankings = query.mode == "hybrid" and not of_one
    if by_bits and fuses_rankings:
        fused_places = np.union1d(_top(degrees, depth + _refined(query)), matching)
        known = np.full(len(degrees), np.nan)
        known[fused_places] = exact(fused_places)
        degrees, by_bits = known, False
    top = _top(degrees, depth)
    places = np.union1d(top, matching)
    bm25 = np.full(len(places), np.nan)
    bm25[np.searchsorted(places, matching)] = values[rows]
    if of_one and len(rows) == depth:  # the best by degree may have a BM25 score too
        lacking = np.flatnonzero(np.isnan(bm25))
        scored = values[postings.rows(places[lacking])]
        bm25[lacking] = np.where(scored > 0, scored, np.nan)

    if fuses_rankings:
        dense = dict(zip(top.tolist(), degrees[top].tolist(), strict=True))
        words = dict(zip(matching.tolist(), values[rows].tolist(), strict=True))
        fused = fusion.fuse(dense, words, weight)
        scores = np.array([fused[place] for place in places.tolist()], float)
    else:
        scores = bm25 if query.mode == "lexical" else degrees[places]
        if of_one:
            scores = of_one(np.nan_to_num(scores), np.nan_to_num(bm25), weight)
    best = np.lexsort((places, -scores))
    if by_bits:
        best = best[: _whole_blocks(query, query.ranks.stop)]
        seen = best[~np.isnan(degrees[places[best]])]
        scores[seen] = exact(places[seen])
        if of_one:
            scores[seen] = of_one(scores[seen], np.nan_to_num(bm25[seen]), weight)
        blocks = np.arange(len(best)) // _refined(query)
        best = best[np.lexsort((places[best], -scores[best], blocks))]
    best = best[: query.ranks.stop]
    return list(zip(places[best].tolist(), scores[best].tolist(), bm25[best].tolist(), strict=True))


def fetch(
    database: sqlite3.Connection, segments: Segments, refs: Sequence[Ref]
) -> list[StoredPassage]:
    """Return some passages, in the order of the references."""
    rows = database.execute(
        "SELECT p.segment, p.ordinal, d.metadata, d.id, p.number, p.start, p.end, p.text, p.title"
        f" FROM {AT} JOIN documents d ON d.key = p.document ORDER BY place.key",
        (json.dumps(refs),),
    )
    return [
        StoredPassage(Passage(*passage), json.loads(metadata), segments[segment].passage(ordinal))
        for segment, ordinal, metadata, *passage in rows
    ]


def unseen(database: Database, places: Places, filters: Sequence[Condition]) -> Bools:
    """Tell of the passage at each place whether it is hidden, or a filter excludes it."""
    left_out = np.zeros(len(places), bool)
    if filters:
        numbers = places.numbers.tolist()
        owners = [_owners(database, number, places.passages(number)) for number in numbers]
        keys = np.concatenate([*owners, np.empty(0, np.int64)])
        left_out = ~meets(database, filters, keys)
    words, phrases = wording_clause(filters)
    refs = "SELECT segment, ordinal FROM hidden"
    if phrases:
        refs += f" UNION ALL SELECT segment, ordinal FROM passages p WHERE NOT ({words})"
    left_out[places.of(database.execute(refs, phrases).fetchall())] = True
    return left_out


def _owners(database: Database, segment: int, passages: int) -> Int64:
    """Return the key of the document of each passage of a segment, 0 of those that are gone."""
    if segment not in database.owners:
        owners = np.zeros(passages, np.int64)
        query = "SELECT ordinal, document FROM passages WHERE segment = ?"
        ordinals, keys = (
            np.array(database.execute(query, (segment,)).fetchall(), np.int64).reshape(-1, 2).T
        )
        owners[ordinals] = keys
        database.owners[segment] = owners
    return database.owners[segment]


def _top(degrees: Float64, depth: int) -> Int64:
    """Return where the `depth` highest degrees are."""
    best = np.arange(len(degrees))
    if len(degrees) > depth:
        best = np.argpartition(-degrees, depth - 1)[:depth]
    return best[~np.isnan(degrees[best])]

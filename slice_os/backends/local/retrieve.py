"""Candidates of an embedded index: every passage's degree, SQLite's BM25, and the two fused."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future
from heapq import nsmallest

import numpy as np

from slice_os.backends.base import Candidate, SearchQuery, StoredPassage
from slice_os.backends.local.lexical import Float64, Int64, Postings, Ref, wording_clause
from slice_os.backends.local.scan import best_cosines
from slice_os.backends.local.schema import AT, filter_clause
from slice_os.backends.local.segment import Segment
from slice_os.filters import Condition, Filter
from slice_os.fusion import get_fusion
from slice_os.records import Float32, Passage
from slice_os.spans import degree

Segments = Mapping[int, Segment]


def candidates(
    database: sqlite3.Connection, segments: Segments, pool: Executor, queries: Sequence[SearchQuery]
) -> list[list[Candidate]]:
    """Return the ranks that each query asks for, best first; `pool` scans the segments."""
    scanned: dict[int, Future[Float32]] = {}
    rows: dict[int, int] = {}
    if dense := [n for n, query in enumerate(queries) if query.mode != "lexical"]:
        vectors = np.array([queries[n].vector for n in dense])
        lengths = [queries[n].lengths for n in dense]
        rows = {n: row for row, n in enumerate(dense)}
        for number, segment in segments.items():
            scanned[number] = pool.submit(best_cosines, segment, vectors, lengths)
    postings = Postings(database, len(queries))
    lexical = [  # while the pool scans
        None if query.mode == "dense" else postings.scores(query.text, query.filters)
        for query in queries
    ]
    cosines = {number: one.result() for number, one in scanned.items()}
    left_out: dict[tuple[Condition, ...], dict[int, list[int]]] = {}
    found = []
    for n, (query, scores) in enumerate(zip(queries, lexical, strict=True)):
        degrees: dict[int, Float32] = {}
        if n in rows:
            filters = tuple(query.filters)
            if filters not in left_out:
                left_out[filters] = unseen(database, filters)
            # -1 where it may not be seen.
            degrees = {number: degree(some[rows[n]]) for number, some in cosines.items()}
            for number, ordinals in left_out[filters].items():
                degrees[number][ordinals] = -1
        ranked = _ranked(postings, query, scores, degrees)[query.ranks.start : query.ranks.stop]
        passages = fetch(database, segments, [ref for ref, *_ in ranked])
        found.append(
            [
                Candidate(score, stored, bm25)
                for (_, score, bm25), stored in zip(ranked, passages, strict=True)
            ]
        )
    return found


def _ranked(
    postings: Postings,
    query: SearchQuery,
    lexical: tuple[Int64, Float64] | None,
    degrees: dict[int, Float32],
) -> list[tuple[Ref, float, float | None]]:
    """Return the passages that a query finds, their scores and BM25 scores, best first."""
    depth = max(query.depth, query.ranks.stop)
    bm25: dict[Ref, float] = {}
    dense = _top(degrees, depth) if degrees else {}
    scores: Mapping[Ref, float] = dense
    if lexical is not None:
        keys, values = lexical
        bm25 = dict(zip(postings.refs(keys[:depth]), values[:depth].tolist(), strict=True))
        scores = bm25
    if query.mode == "hybrid":
        fusion, weight = get_fusion(query.fusion, query.weight)
        if fusion.whole_corpus:
            if len(keys) > depth:  # the best by degree may have a BM25 score too
                missing = [ref for ref in dense if ref not in bm25]
                wanted = np.array(postings.keys(missing), np.int64)
                order = np.argsort(keys)
                at = order[np.searchsorted(keys, wanted, sorter=order) - len(order)]
                for n in np.flatnonzero(keys[at] == wanted).tolist():
                    bm25[missing[n]] = float(values[at[n]])
            dense |= {(s, o): float(degrees[s][o]) for s, o in bm25}
        scores = fusion.fuse(dense, bm25, weight)
    ranked = nsmallest(query.ranks.stop, scores, key=lambda ref: (-scores[ref], ref))
    return [(ref, scores[ref], bm25.get(ref)) for ref in ranked]


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


def unseen(database: sqlite3.Connection, filters: Sequence[Condition]) -> dict[int, list[int]]:
    """Return the ordinals, by segment, that are hidden or that a filter excludes."""
    query = "SELECT segment, ordinal FROM hidden"
    parameters: list[str] = []
    if filters:
        condition, parameters = filter_clause([one for one in filters if isinstance(one, Filter)])
        words, phrases = wording_clause(filters)
        query += (
            " UNION ALL SELECT segment, ordinal FROM passages p WHERE document IN"
            f" (SELECT key FROM documents d WHERE NOT ({condition})) OR NOT ({words})"
        )
        parameters += phrases
    found: dict[int, list[int]] = {}
    for segment, ordinal in database.execute(query, parameters):
        found.setdefault(segment, []).append(ordinal)
    return found


def _top(degrees: dict[int, Float32], depth: int) -> dict[Ref, float]:
    """Return the `depth` highest degrees."""
    if not degrees:
        return {}
    numbers = np.repeat(list(degrees), [len(d) for d in degrees.values()])
    ordinals = np.concatenate([np.arange(len(d)) for d in degrees.values()])
    values = np.concatenate(list(degrees.values()))
    if len(values) > depth:
        best = np.argpartition(-values, depth - 1)[:depth]
        numbers, ordinals, values = numbers[best], ordinals[best], values[best]
    seen = values >= 0
    return {
        (int(n), int(o)): float(v)
        for n, o, v in zip(numbers[seen], ordinals[seen], values[seen], strict=True)
    }

"""Candidates of an embedded index: every passage's degree, SQLite's BM25, and the two fused."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future

import numpy as np

from slice_os.backends.base import Candidate, SearchQuery, StoredPassage
from slice_os.backends.local.lexical import bm25, bm25_of, wording_clause
from slice_os.backends.local.scan import best_cosines
from slice_os.backends.local.schema import AT, filter_clause
from slice_os.backends.local.segment import Segment
from slice_os.filters import Condition, Filter
from slice_os.fusion import get_fusion
from slice_os.records import Float32, Passage
from slice_os.spans import degree

Ref = tuple[int, int]
"""Where a passage's words are: the number of its segment, its ordinal in it."""
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
    lexical = [_lexical(database, query) for query in queries]  # while the pool scans
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
        found.append(_ranked(database, segments, query, scores, degrees))
    return found


def _lexical(database: sqlite3.Connection, query: SearchQuery) -> dict[Ref, float]:
    if query.mode == "dense":
        return {}
    rows = bm25(database, query.text, _depth(query), query.filters)
    return {(segment, ordinal): score for _, segment, ordinal, score in rows}


def _depth(query: SearchQuery) -> int:
    return max(query.depth, query.ranks.stop)


def _ranked(
    database: sqlite3.Connection,
    segments: Segments,
    query: SearchQuery,
    lexical: dict[Ref, float],
    degrees: dict[int, Float32],
) -> list[Candidate]:
    """Return the ranks of a query from its BM25 scores and the degrees of all passages."""
    depth, bm25_scores = _depth(query), dict(lexical)
    scores: Mapping[Ref, float] = lexical
    if query.mode != "lexical":
        scores = dense = _top(degrees, depth)
    if query.mode == "hybrid":
        fusion, weight = get_fusion(query.fusion, query.weight)
        if fusion.whole_corpus:
            if len(lexical) == depth:  # cut off: the best by degree may have a BM25 score too
                missing = [ref for ref in dense if ref not in lexical]
                bm25_scores |= bm25_of(database, query.text, missing)
            dense |= {(s, o): float(degrees[s][o]) for s, o in bm25_scores}
        scores = fusion.fuse(dense, bm25_scores, weight)
    ranked = sorted(scores, key=lambda ref: (-scores[ref], ref))
    some = ranked[query.ranks.start : query.ranks.stop]
    found = fetch(database, segments, some)
    return [
        Candidate(scores[ref], stored, bm25_scores.get(ref))
        for ref, stored in zip(some, found, strict=True)
    ]


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

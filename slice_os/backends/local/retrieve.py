"""Search in an embedded index: every passage's degree, SQLite's BM25, and the two fused."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor

import numpy as np

from slice_os.backends.base import Candidate, Retrieval, StoredPassage
from slice_os.backends.local.lexical import bm25, bm25_of, wording_clause
from slice_os.backends.local.scan import best_cosines
from slice_os.backends.local.schema import AT, filter_clause
from slice_os.backends.local.segment import Segment
from slice_os.backends.relevance import is_scored_again, score_page, whole_blocks
from slice_os.filters import Condition, Filter
from slice_os.fusion import get_fusion
from slice_os.records import Float32, Passage
from slice_os.spans import degree

Place = tuple[int, int]
"""Where a passage's words are: the number of its segment, its ordinal in it."""
Segments = Mapping[int, Segment]


def retrieve(
    database: sqlite3.Connection, segments: Segments, pool: Executor, wanted: Retrieval
) -> list[Candidate]:
    """Return the page that a retrieval asks for, best first; `pool` scans the segments."""
    depth = max(wanted.depth, wanted.offset + wanted.size)
    # Else the scan's degrees are enough.
    again = is_scored_again(wanted.mode, wanted.fusion) and wanted.late > 0
    if again:
        depth = whole_blocks(wanted, depth)
    dense: dict[Place, float] = {}
    lexical: dict[Place, float] = {}
    degrees: dict[int, Float32] = {}
    scanned = _scan(segments, pool, wanted) if wanted.mode != "lexical" else iter(())
    if wanted.mode != "dense":  # while the pool scans
        for _, segment, ordinal, score in bm25(database, wanted.text, depth, wanted.filters):
            lexical[segment, ordinal] = score
    if wanted.mode != "lexical":
        degrees = _degrees(database, segments, scanned, wanted.filters)
        dense = _top(degrees, depth)
    if wanted.mode == "hybrid":
        fusion, weight = get_fusion(wanted.fusion, wanted.weight)
        if fusion.whole_corpus:
            if len(lexical) == depth:  # cut off: the best by degree may have a BM25 score too
                missing = [ref for ref in dense if ref not in lexical]
                lexical |= bm25_of(database, wanted.text, missing)
            dense |= {(s, o): float(degrees[s][o]) for s, o in lexical}
        scores: Mapping[Place, float] = fusion.fuse(dense, lexical, weight)
    else:
        scores = dense or lexical
    ranked = sorted(scores, key=lambda ref: (-scores[ref], ref))
    if not again:
        page = ranked[wanted.offset : wanted.offset + wanted.size]
        found = fetch(database, segments, page)
        return [Candidate(scores[ref], one) for ref, one in zip(page, found, strict=True)]

    def read(offset: int, size: int) -> list[tuple[StoredPassage, float | None]]:
        some = ranked[offset : offset + size]
        found = fetch(database, segments, some)
        return [(one, lexical.get(ref)) for ref, one in zip(some, found, strict=True)]

    return score_page(wanted, read)


def fetch(
    database: sqlite3.Connection, segments: Segments, places: Sequence[Place]
) -> list[StoredPassage]:
    """Return the passages at some places."""
    rows = database.execute(
        "SELECT p.segment, p.ordinal, d.metadata, d.id, p.number, p.start, p.end, p.text, p.title"
        f" FROM {AT} JOIN documents d ON d.key = p.document ORDER BY place.key",
        (json.dumps(places),),
    )
    return [
        StoredPassage(Passage(*passage), json.loads(metadata), *segments[segment].words(ordinal))
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


def _scan(segments: Segments, pool: Executor, wanted: Retrieval) -> Iterator[Float32]:
    """Have the pool begin with all segments; return the best cosine of every passage of each."""
    return pool.map(lambda s: best_cosines(s, wanted.vector, wanted.lengths), segments.values())


def _degrees(
    database: sqlite3.Connection,
    segments: Segments,
    scanned: Iterator[Float32],
    filters: Sequence[Condition],
) -> dict[int, Float32]:
    """Return every passage's degree by segment and ordinal; -1 where it may not be seen."""
    degrees = {n: degree(c) for n, c in zip(segments, scanned, strict=True)}
    for number, ordinals in unseen(database, filters).items():
        degrees[number][ordinals] = -1
    return degrees


def _top(degrees: dict[int, Float32], depth: int) -> dict[Place, float]:
    """Return the `depth` highest degrees by place."""
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

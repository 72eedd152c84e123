"""BM25 over the postings of SQLite's FTS5, with Lucene's weights.

FTS5's own bm25() gives a term that more than half of all passages hold almost no weight and so
misranks small collections. It is therefore asked for each term alone, where its score is
idf * tf-part * (k1 + 1), and its idf is replaced by Lucene's, which is positive for every term.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence

from slice_os.backends.local.schema import filter_clause
from slice_os.filters import Filter
from slice_os.lexical import K1, MAX_TERMS, inverse_document_frequency, terms

_LEAST_IDF = 1e-6  # what FTS5 uses where its idf would be negative


def bm25(
    database: sqlite3.Connection, text: str, depth: int, filters: Sequence[Filter]
) -> list[tuple[int, int, int, float]]:
    """Return (passage key, segment, ordinal, score) of the `depth` best passages, best first."""
    (passages,) = database.execute(
        "SELECT (SELECT total(passages) FROM segments) - (SELECT count(*) FROM hidden)"
    ).fetchone()
    weights = _weights(database, text, passages)
    if not weights:
        return []
    condition, parameters = filter_clause(filters)
    legs = " UNION ALL ".join(
        ["SELECT rowid AS key, bm25(postings) * ? AS s FROM postings WHERE postings MATCH ?"]
        * len(weights)
    )
    allowed = (
        "WHERE key IN (SELECT p.key FROM passages p JOIN documents d ON d.key = p.document"
        f" WHERE {condition})"
    )
    # The inner limit keeps SQLite from merging the legs into the outer query, where bm25() has no
    # postings. Equal scores are ordered by key, so that pages do not overlap.
    query = (
        "SELECT p.key, p.segment, p.ordinal, score FROM ("
        f"SELECT key, sum(s) AS score FROM ({legs} LIMIT -1) {allowed if filters else ''} "
        "GROUP BY key ORDER BY score DESC, key LIMIT ?) best "
        "JOIN passages p ON p.key = best.key ORDER BY score DESC, p.key"
    )
    values: list[object] = []
    for term, weight in weights.items():
        values += [weight, f'"{term}"']
    return database.execute(query, [*values, *parameters, depth]).fetchall()


def _weights(database: sqlite3.Connection, text: str, passages: float) -> dict[str, float]:
    """Return for each term of the query the factor that turns FTS5's score into Lucene's."""
    found: list[tuple[int, str, int]] = []
    for term, count in terms(text).items():
        (holding,) = database.execute(
            "SELECT count(*) FROM postings WHERE postings MATCH ?", (f'"{term}"',)
        ).fetchone()
        if holding:
            found.append((holding, term, count))
    weights = {}
    for holding, term, count in sorted(found)[:MAX_TERMS]:
        theirs = math.log((passages - holding + 0.5) / (holding + 0.5))
        theirs = theirs if theirs > 0 else _LEAST_IDF
        ours = inverse_document_frequency(passages, holding)
        weights[term] = -count * ours / theirs / (K1 + 1)
    return weights

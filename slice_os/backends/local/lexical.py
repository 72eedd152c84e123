"""BM25 over the postings of SQLite's FTS5, with Lucene's weights.

FTS5's own bm25() gives a term that more than half of all passages hold almost no weight and so
misranks small collections. It is therefore asked for each term alone, where its score is
idf * tf-part * (k1 + 1), and its idf is replaced by Lucene's, which is positive for every term.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Sequence

import regex

from slice_os.backends.local.schema import AT, filter_clause
from slice_os.filters import Condition, Filter
from slice_os.lexical import (
    K1,
    LONGEST,
    MAX_TERMS,
    Wording,
    exact_words,
    inverse_document_frequency,
    terms,
)

# Letters that were in Unicode when FTS5's tables were made, so that its terms are our words.
_INDEXED = regex.compile(r"[^\u0524-\U0010ffff\p{M}]+")
_LEAST_IDF = 1e-6  # what FTS5 uses where its idf would be negative


def bm25(
    database: sqlite3.Connection, text: str, depth: int, filters: Sequence[Condition]
) -> list[tuple[int, int, int, float]]:
    """Return (passage key, segment, ordinal, score) of the `depth` best passages, best first."""
    condition, parameters = passage_clause(filters)
    allowed = (
        "WHERE key IN (SELECT p.key FROM passages p JOIN documents d ON d.key = p.document"
        f" WHERE {condition})"
    )
    clauses, values = _clauses(database, text)
    if not clauses:
        return []
    # Equal scores are ordered by key, so that pages do not overlap.
    query = (
        "SELECT p.key, p.segment, p.ordinal, score FROM ("
        f"SELECT key, sum(s) AS score FROM ({clauses}) {allowed if filters else ''} "
        "GROUP BY key ORDER BY score DESC, key LIMIT ?) best "
        "JOIN passages p ON p.key = best.key ORDER BY score DESC, p.key"
    )
    return database.execute(query, [*values, *parameters, depth]).fetchall()


def bm25_of(
    database: sqlite3.Connection, text: str, places: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], float]:
    """Return the scores above 0 of the passages at the given (segment, ordinal)."""
    wanted = "(SELECT value FROM json_each(?))"
    rows = database.execute(f"SELECT p.key, p.segment, p.ordinal FROM {AT}", (json.dumps(places),))
    keys = {key: (segment, ordinal) for key, segment, ordinal in rows}
    clauses, values = _clauses(database, text, f"AND +rowid IN {wanted}", json.dumps(list(keys)))
    if not clauses:
        return {}
    rows = database.execute(f"SELECT key, sum(s) FROM ({clauses}) GROUP BY key", values)
    return {keys[key]: score for key, score in rows}


def passage_clause(conditions: Sequence[Condition]) -> tuple[str, list[str]]:
    """Return an SQL condition on passages `p` of documents `d`, and its parameters."""
    clause, parameters = filter_clause([one for one in conditions if isinstance(one, Filter)])
    words, phrases = wording_clause(conditions)
    return f"{clause} AND {words}", parameters + phrases


def wording_clause(conditions: Sequence[Condition]) -> tuple[str, list[str]]:
    """Return the part of `passage_clause` that is about the passages' own words."""
    clauses = ["TRUE"]
    parameters: list[str] = []
    for one in conditions:
        if isinstance(one, Wording):
            clause = "stands(?, p.title, p.text)"
            words = exact_words(one.phrase)
            if _INDEXED.fullmatch(one.phrase) and max(map(len, words)) < LONGEST:
                # Their stems stand there too: most passages need not be read.
                clause = (
                    f"p.key IN (SELECT rowid FROM postings WHERE postings MATCH ?) AND {clause}"
                )
                parameters.append(f'"{" ".join(words)}"')
            parameters.append(one.phrase)
            clauses.append(f"{'' if one.wanted else 'NOT '}({clause})")
    return " AND ".join(clauses), parameters


def _clauses(
    database: sqlite3.Connection, text: str, condition: str = "", parameter: str | None = None
) -> tuple[str, list[object]]:
    """Return SQL that gives (key, s) for every term and passage, and its parameters.

    Its limit keeps SQLite from merging it into an outer query, where bm25() has no postings.
    """
    (passages,) = database.execute(
        "SELECT (SELECT total(passages) FROM segments) - (SELECT count(*) FROM hidden)"
    ).fetchone()
    clause = (
        "SELECT rowid AS key, bm25(postings) * ? AS s FROM postings"
        f" WHERE postings MATCH ? {condition}"
    )
    values: list[object] = []
    weights = _weights(database, text, passages)
    for term, weight in weights.items():
        values += [weight, f'"{term}"', *([] if parameter is None else [parameter])]
    return " UNION ALL ".join([clause] * len(weights)) + " LIMIT -1" * bool(weights), values


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

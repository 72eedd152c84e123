"""BM25 over the postings of SQLite's FTS5, with Lucene's weights.

FTS5's own bm25() gives a term that more than half of all passages hold almost no weight and so
misranks small collections. It is therefore asked for each term alone, where its score is
idf * tf-part * (k1 + 1), and its idf is replaced by Lucene's, which is positive for every term.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import regex

from slice_os.backends.local.schema import AT, filter_clause
from slice_os.backends.local.segment import Segment
from slice_os.filters import Condition, Filter
from slice_os.lexical import (
    K1,
    LONGEST,
    MAX_TERMS,
    Wording,
    exact_words,
    inverse_document_frequency,
    query_terms,
)

# Letters that were in Unicode when FTS5's tables were made, so that its terms are our words.
_INDEXED = regex.compile(r"[^\u0524-\U0010ffff\p{M}]+")
_LEAST_IDF = 1e-6  # what FTS5 uses where its idf would be negative
Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]
Ref = tuple[int, int]
"""Where a passage's words are: the number of its segment, its ordinal in it."""
MANY = 8
"""With more queries it is quicker to know where all passages are than to look some up for each."""


class Places:
    """All passages, numbered through: those of the first segment, of the second, and so on."""

    def __init__(self, segments: Mapping[int, Segment]) -> None:
        """Take the segments by their numbers."""
        self.numbers = np.array(sorted(segments), np.int64)
        counts = [len(segments[number].bounds) - 1 for number in self.numbers.tolist()]
        self._first = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))

    def of(self, refs: Sequence[Ref] | Int64) -> Int64:
        """Return the places of some passages ``[n]``."""
        numbers, ordinals = np.array(refs, np.int64).reshape(-1, 2).T
        found: Int64 = self._first[np.searchsorted(self.numbers, numbers)] + ordinals
        return found

    def refs(self, places: Sequence[int]) -> list[Ref]:
        """Return the passages at some places."""
        at = np.searchsorted(self._first, places, side="right") - 1
        ordinals = np.array(places, np.int64) - self._first[at]
        return list(zip(self.numbers[at].tolist(), ordinals.tolist(), strict=True))


class Postings:
    """The postings of one state of an index; those of a term are read once for all queries."""

    def __init__(self, database: sqlite3.Connection, places: Places, queries: int) -> None:
        """Read the postings of as many queries; for many, where all passages are, once."""
        self._database = database
        self._of = places
        self._keys, self._places = np.empty((2, 0), np.int64)
        if queries > MANY:
            query = "SELECT key, segment, ordinal FROM passages WHERE NOT pending ORDER BY key"
            rows = np.array(database.execute(query).fetchall(), np.int64).reshape(-1, 3)
            self._keys, self._places = rows[:, 0], places.of(rows[:, 1:])
        self._by_place = np.argsort(self._places)
        self._terms: dict[str, tuple[Int64, Float64]] = {}
        self._allowed: dict[tuple[Condition, ...], Int64] = {}
        self._passages, self._last = database.execute(
            "SELECT (SELECT total(passages) FROM segments) - (SELECT count(*) FROM hidden),"
            " (SELECT ifnull(max(key), 0) FROM passages)"
        ).fetchone()

    def scores(self, text: str, filters: Sequence[Condition]) -> tuple[Int64, Float64]:
        """Return the keys of all passages that hold a term of a query, and scores by key.

        The keys ``[n]`` stand best first; equal scores by key, so that pages do not overlap. Of
        what is not among them the score is 0.
        """
        found = [(term, count, *self._postings(term)) for term, count in query_terms(text).items()]
        rarest = sorted((len(keys), term) for term, _, keys, _ in found if len(keys))[:MAX_TERMS]
        kept = {term for _, term in rarest}
        weighted = [
            (keys, count * scores) for term, count, keys, scores in found if term in kept
        ] or [(np.empty(0, np.int64), np.empty(0))]
        scores: Float64 = np.bincount(
            np.concatenate([keys for keys, _ in weighted]),
            np.concatenate([some for _, some in weighted]),
            self._last + 1,
        ).astype(np.float64, copy=False)
        if filters:
            meeting = self._meeting(tuple(filters))
            kept_scores = scores[meeting]
            scores = np.zeros_like(scores)
            scores[meeting] = kept_scores
        keys = np.flatnonzero(scores)
        return keys[np.argsort(-scores[keys], kind="stable")], scores

    def _postings(self, term: str) -> tuple[Int64, Float64]:
        """Return the keys of the passages that hold a term, and what it adds to their scores."""
        if term not in self._terms:
            query = "SELECT rowid, bm25(postings) FROM postings WHERE postings MATCH ?"
            rows = np.array(self._database.execute(query, (f'"{term}"',)).fetchall())
            keys, scores = rows.reshape(-1, 2).T
            holding = len(keys)
            theirs = math.log((self._passages - holding + 0.5) / (holding + 0.5))
            ours = inverse_document_frequency(self._passages, holding)
            scores = scores * (-ours / (theirs if theirs > 0 else _LEAST_IDF) / (K1 + 1))
            self._terms[term] = keys.astype(np.int64), scores
        return self._terms[term]

    def _meeting(self, filters: tuple[Condition, ...]) -> Int64:
        """Return the keys of the passages that meet all filters."""
        if filters not in self._allowed:
            clause, parameters = filter_clause([one for one in filters if isinstance(one, Filter)])
            words, phrases = wording_clause(filters)
            query = (
                "SELECT p.key FROM passages p JOIN documents d ON d.key = p.document"
                f" WHERE {clause} AND {words}"
            )
            rows = self._database.execute(query, parameters + phrases)
            self._allowed[filters] = np.array([key for (key,) in rows], np.int64)
        return self._allowed[filters]

    def places(self, keys: Int64) -> Int64:
        """Return the places of some passages, by their keys."""
        if len(self._keys):
            return self._places[np.searchsorted(self._keys, keys)]
        query = (
            "SELECT p.segment, p.ordinal FROM json_each(?) wanted"
            " CROSS JOIN passages p ON p.key = wanted.value ORDER BY wanted.key"
        )
        return self._of.of(self._database.execute(query, (json.dumps(keys.tolist()),)).fetchall())

    def keys(self, places: Int64) -> Int64:
        """Return the keys of the passages at some places."""
        if len(self._keys):
            at = np.searchsorted(self._places, places, sorter=self._by_place)
            return self._keys[self._by_place[at]]
        query = f"SELECT p.key FROM {AT} ORDER BY place.key"
        rows = self._database.execute(query, (json.dumps(self._of.refs(places.tolist())),))
        return np.array(rows.fetchall(), np.int64).reshape(-1)


def wording_clause(conditions: Sequence[Condition]) -> tuple[str, list[str]]:
    """Return an SQL condition about the words of passages `p`, and its parameters."""
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

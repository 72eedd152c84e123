"""BM25 of an embedded index, from SQLite's postings, and where its passages are.

FTS5's own bm25() gives a term that more than half of all passages hold almost no weight, and counts
stop words in the length of a text. It is therefore asked only where its terms stand; the weights
and lengths are Lucene's, so that an embedded index ranks as a cluster does.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt
import orjson
import regex

from slice_os.errors import IndexDamagedError
from slice_os.storage.local.database import AT, Bools, Database, Int64
from slice_os.storage.local.filter_bits import meets
from slice_os.storage.local.segments import Segment
from slice_os.text import (
    K1,
    LONGEST,
    MAX_TERMS,
    B,
    Wording,
    exact_words,
    inverse_document_frequency,
    query_terms,
    rounded_lengths,
)
from slice_os.text.filters import Condition

# Letters that were in Unicode when FTS5's tables were made, so that its terms are our words.
_INDEXED = regex.compile(r"[^\u0524-\U0010ffff\p{M}]+")
# Tables of the connection alone: where the terms of postings stand, and FTS5's stems of a word.
_TERMS = (
    "temp.occurrences USING fts5vocab(main, postings, instance)",
    "temp.asked USING fts5(word, tokenize='porter unicode61')",
    "temp.stems USING fts5vocab(temp, asked, instance)",
)
Float64 = npt.NDArray[np.float64]
Ref = tuple[int, int]
"""Where a passage's words are: the number of its segment, its ordinal in it."""
MANY = 8
"""With more queries it is quicker to know where all passages are than to look some up for each."""
Segments = Mapping[int, Segment]


class Places:
    """All passages, numbered through: those of the first segment, of the second, and so on."""

    def __init__(self, segments: Segments) -> None:
        """Take the segments by their numbers."""
        self.numbers = np.array(sorted(segments), np.int64)
        counts = [len(segments[number].bounds) - 1 for number in self.numbers.tolist()]
        self._first = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))

    def __len__(self) -> int:
        return int(self._first[-1])

    def passages(self, number: int) -> int:
        """Return how many passages a segment has."""
        at = np.searchsorted(self.numbers, number)
        return int(self._first[at + 1] - self._first[at])

    def of(self, refs: Sequence[Ref] | Int64) -> Int64:
        """Return the places of some passages ``[n]``."""
        numbers, ordinals = np.array(refs, np.int64).reshape(-1, 2).T
        places: Int64 = self._first[np.searchsorted(self.numbers, numbers)] + ordinals
        return places

    def refs(self, places: Sequence[int]) -> list[Ref]:
        """Return the passages at some places."""
        at = np.searchsorted(self._first, places, side="right") - 1
        ordinals = np.array(places, np.int64) - self._first[at]
        return list(zip(self.numbers[at].tolist(), ordinals.tolist(), strict=True))


class Postings:
    """The postings of one state of an index; those of a term are read once for all queries.

    A passage's row is its number in the order of the keys, which may have gaps of any size.
    """

    def __init__(self, database: Database, places: Places, queries: int) -> None:
        """Read the postings of as many queries; for many, where all passages are, once."""
        self._database = database
        self._of = places
        self._places = np.empty(0, np.int64)
        if queries > MANY:
            query = "SELECT segment, ordinal FROM passages WHERE NOT pending ORDER BY key"
            self._places = places.of(database.execute(query).fetchall())
        self._by_place = np.argsort(self._places)
        self._terms: dict[str, tuple[Int64, Float64]] = {}
        self._allowed: dict[tuple[Condition, ...], Bools] = {}
        self._keys = self._documents = np.empty(0, np.int64)
        self._lengths = np.empty(0)

    def scores(self, text: str, filters: Sequence[Condition], depth: int) -> tuple[Int64, Float64]:
        """Return the rows of the `depth` best passages for a query, and the scores of all by row.

        The rows ``[n]`` stand best first; equal scores by row, so that pages do not overlap. What
        holds no term of the query has the score 0.
        """
        if not len(self._keys):  # what a dense search has no need of
            for table in _TERMS:
                self._database.execute(f"CREATE VIRTUAL TABLE IF NOT EXISTS {table}")
            known = self._database.remembered()
            if "lengths" not in known:
                known["lengths"] = _lengths(self._database)
            self._keys, self._lengths, self._documents = known["lengths"]
        terms = [(term, count, *self._postings(term)) for term, count in query_terms(text).items()]
        rarest = sorted((len(rows), term) for term, _, rows, _ in terms if len(rows))[:MAX_TERMS]
        kept = {term for _, term in rarest}
        weighted = [
            (rows, count * scores) for term, count, rows, scores in terms if term in kept
        ] or [(np.empty(0, np.int64), np.empty(0))]
        scores: Float64 = np.bincount(
            np.concatenate([rows for rows, _ in weighted]),
            np.concatenate([scores for _, scores in weighted]),
            len(self._lengths),
        ).astype(np.float64, copy=False)
        if filters:
            scores[~self._meeting(tuple(filters))] = 0
        rows = np.flatnonzero(scores)
        if len(rows) > depth:
            of_rows = scores[rows]
            rows = rows[of_rows >= np.partition(of_rows, -depth)[-depth]]
        return rows[np.argsort(-scores[rows], kind="stable")][:depth], scores

    def _postings(self, term: str) -> tuple[Int64, Float64]:
        """Return the rows of the passages that hold a term, and what it adds to their scores."""
        if term not in self._terms:
            held = self._holding(term)
            firsts = np.flatnonzero(np.diff(held, prepend=-1))
            keys, times = held[firsts], np.diff(firsts, append=len(held))
            rows = self._rows(keys)
            if len(rows) < len(keys):
                raise IndexDamagedError(
                    "The postings of BM25 name passages that are not there",
                    hint="'slice-os doctor --repair' makes them anew.",
                )
            idf = inverse_document_frequency(len(self._keys), len(rows))
            self._terms[term] = rows, idf * times / (times + self._lengths[rows])
        return self._terms[term]

    def _rows(self, keys: Int64) -> Int64:
        """Return the rows of some passages, of those that are complete."""
        rows = np.searchsorted(self._keys, keys)
        known = rows < len(self._keys)
        known[known] = self._keys[rows[known]] == keys[known]
        complete: Int64 = rows[known]
        return complete

    def _holding(self, term: str) -> Int64:
        """Return the key of a passage as often as it holds a term, or several in a row; ordered."""
        self._database.execute("DELETE FROM asked")
        self._database.execute("INSERT INTO asked VALUES (?)", (term,))
        stems = self._database.execute("SELECT term FROM stems ORDER BY offset").fetchall()
        # Without its places a word is far quicker, and all of one in one row by half.
        what = "doc" if len(stems) == 1 else "(doc << 1 | (col = 'title')) << 31 | offset"
        query = f"SELECT json_group_array({what}) FROM occurrences WHERE term = ?"
        places = [
            np.array(orjson.loads(self._database.execute(query, stem).fetchone()[0]), np.int64)
            for stem in stems
        ]
        held = places[0] if places else np.empty(0, np.int64)  # of marks alone, say
        for n, following in enumerate(places[1:], 1):
            held = held[np.isin(held + n, following)]
        return held if len(stems) == 1 else held >> 32

    def _meeting(self, filters: tuple[Condition, ...]) -> Bools:
        """Tell of every row whether the passage meets all filters."""
        if filters not in self._allowed:
            allowed = meets(self._database, filters, self._documents)
            words, phrases = wording_clause(filters)
            if phrases:
                query = f"SELECT key FROM passages p WHERE {words}"
                stands = np.zeros(len(allowed), bool)
                stands[self._rows(_numbers(self._database.execute(query, phrases)))] = True
                allowed &= stands
            self._allowed[filters] = allowed
        return self._allowed[filters]

    def places(self, rows: Int64) -> Int64:
        """Return the places of some passages, by their rows."""
        if len(self._places):
            return self._places[rows]
        keys = self._keys[rows]
        query = (
            "SELECT p.segment, p.ordinal FROM json_each(?) wanted"
            " CROSS JOIN passages p ON p.key = wanted.value ORDER BY wanted.key"
        )
        return self._of.of(self._database.execute(query, (json.dumps(keys.tolist()),)).fetchall())

    def rows(self, places: Int64) -> Int64:
        """Return the rows of the passages at some places."""
        if len(self._places):
            at = np.searchsorted(self._places, places, sorter=self._by_place)
            return self._by_place[at]
        query = f"SELECT p.key FROM {AT} ORDER BY place.key"
        keys = self._database.execute(query, (json.dumps(self._of.refs(places.tolist())),))
        return self._rows(_numbers(keys))


def _lengths(database: Database) -> tuple[Int64, Float64, Int64]:
    """Return the keys of all passages in order, k1 (1 - b + b |D| / avgdl) and document of each."""
    query = "SELECT key, length, document FROM passages WHERE NOT pending ORDER BY key"
    keys, lengths, documents = np.ascontiguousarray(
        _numbers(database.execute(query)).reshape(-1, 3).T
    )
    mean = lengths.mean() if len(lengths) else 1.0
    return keys, K1 * (1 - B + B * rounded_lengths(lengths) / mean), documents


def _numbers(rows: Iterable[Sequence[int]]) -> Int64:
    return np.fromiter(chain.from_iterable(rows), np.int64)


def wording_clause(conditions: Sequence[Condition]) -> tuple[str, list[str]]:
    """Return an SQL condition about the words of passages `p`, and its parameters."""
    clauses = ["TRUE"]
    parameters: list[str] = []
    for wording in conditions:
        if isinstance(wording, Wording):
            clause = "stands(?, p.title, p.text)"
            words = exact_words(wording.phrase)
            if _INDEXED.fullmatch(wording.phrase) and max(map(len, words)) < LONGEST:
                # Their stems stand there too: most passages need not be read.
                clause = (
                    f"p.key IN (SELECT rowid FROM postings WHERE postings MATCH ?) AND {clause}"
                )
                parameters.append(f'"{" ".join(words)}"')
            parameters.append(wording.phrase)
            clauses.append(f"{'' if wording.wanted else 'NOT '}({clause})")
    return " AND ".join(clauses), parameters

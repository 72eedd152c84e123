"""Which documents meet filters: bits of documents, looked up by the tokens of their metadata.

The tokens, and what a filter asks of them, are a cluster's
(`slice_os.storage.cluster.filters`). A row of the table `tokens` says of `WIDTH` documents
which of them have a token: a value that half of all documents have takes few rows, and one that a
single document has takes one.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from slice_os.storage.cluster.filters import (
    field_name,
    filter_clauses,
    filter_tokens,
    last_token,
)
from slice_os.storage.local.database import Bools, Database, Int64
from slice_os.text.filters import Condition, Filter

Meeting = Callable[[Sequence[Condition], Int64], Bools]
"""Tells which of some documents, given by their keys, meet filters."""
WIDTH = 64
"""Documents of one row: the bits of one of SQLite's integers."""
REMEMBERED = 8
"""Filters of which a connection remembers what meets them, until somebody writes."""
_LIMITS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


def note_tokens(database: sqlite3.Connection, key: int, former: str, metadata: str) -> None:
    """Have filters find a document by its metadata, no longer by its former one; both as JSON."""
    old, new = _tokens(former), _tokens(metadata)
    block, bit = key // WIDTH, int(np.uint64(1 << key % WIDTH).astype(np.int64))  # signed
    gone, added = sorted(old - new), sorted(new - old)
    database.executemany(
        "UPDATE tokens SET bits = bits & ~? WHERE token = ? AND block = ?",
        [(bit, token, block) for token in gone],
    )
    database.executemany(
        "DELETE FROM tokens WHERE token = ? AND block = ? AND bits = 0",
        [(token, block) for token in gone],
    )
    database.executemany(
        "INSERT INTO tokens VALUES (?, ?, ?)"
        " ON CONFLICT (token, block) DO UPDATE SET bits = bits | excluded.bits",
        [(token, block, bit) for token in added],
    )


def make_tokens(database: sqlite3.Connection) -> None:
    """Make all tokens anew from the documents' metadata."""
    database.execute("DELETE FROM tokens")
    for key, metadata in database.execute("SELECT key, metadata FROM documents").fetchall():
        note_tokens(database, key, "{}", metadata)


def _tokens(metadata: str) -> set[str]:
    return set(filter_tokens(json.loads(metadata)))


def has_field(database: sqlite3.Connection, name: str) -> bool:
    """Tell whether the metadata of a document has a field."""
    ((_, wanted),) = filter_clauses([Filter(name, "exists", "")])[0].items()
    (prefix,) = wanted.values()
    query = "SELECT 1 FROM tokens WHERE token >= ? AND token < ? LIMIT 1"
    return database.execute(query, (prefix, _after(prefix))).fetchone() is not None


def field_names(database: sqlite3.Connection) -> list[str]:
    """Return the names of all fields; one look-up for each."""
    names: list[str] = []
    last = ""
    query = "SELECT token FROM tokens WHERE token > ? ORDER BY token LIMIT 1"
    while row := database.execute(query, (last,)).fetchone():
        names.append(field_name(row[0]))
        last = last_token(row[0])
    return names


def meeting_of(database: Database) -> Meeting:
    """Return what tells which documents meet filters, in one state of the index."""
    state = database.execute("PRAGMA data_version").fetchone()
    if database.met is None or database.met[0] != state:
        database.met = state, {}
    known = database.met[1]

    def meeting(filters: Sequence[Condition], keys: Int64) -> Bools:
        asked = tuple(one for one in filters if isinstance(one, Filter))
        if asked not in known:
            if len(known) == REMEMBERED:
                del known[next(iter(known))]
            known[asked] = _meeting(database, asked)
        found: Bools = known[asked].take(keys, mode="clip")
        return found

    return meeting


def _meeting(database: sqlite3.Connection, filters: Sequence[Filter]) -> Bools:
    """Tell of every key up to the last document's, and some more, whether it meets filters."""
    (last,) = database.execute("SELECT ifnull(max(key), 0) FROM documents").fetchone()
    found = np.ones((last // WIDTH + 1, WIDTH), bool)
    for clause in filter_clauses(filters):
        found &= _evaluate(database, clause, len(found))
    return found.reshape(-1)


def key_clause(database: sqlite3.Connection, filters: Sequence[Filter]) -> tuple[str, list[str]]:
    """Return an SQL condition on the documents `d`, and its parameters."""
    if not filters:
        return "TRUE", []
    keys = np.flatnonzero(_meeting(database, filters)).tolist()
    return "d.key IN (SELECT value FROM json_each(?))", [json.dumps(keys)]


def _evaluate(database: sqlite3.Connection, clause: Mapping[str, Any], blocks: int) -> Bools:
    """Return which documents a clause of a cluster's query holds of, ``[blocks, WIDTH]``."""
    ((kind, wanted),) = clause.items()
    if kind == "bool":
        some = wanted.get("must_not") or wanted["should"]
        found: Bools = np.logical_or.reduce([_evaluate(database, one, blocks) for one in some])
        return ~found if "must_not" in wanted else found
    (value,) = wanted.values()
    if kind in ("term", "terms"):
        asked = [{"gte": one, "lte": one} for one in ([value] if kind == "term" else value)]
    else:
        asked = [{"gte": value, "lt": _after(value)} if kind == "prefix" else value]
    found = np.zeros((blocks, WIDTH), bool)
    for bounds in asked:
        condition = " AND ".join(f"token {_LIMITS[limit]} ?" for limit in bounds)
        # As text: Python would make an object of each number.
        query = f"SELECT group_concat(block), group_concat(bits) FROM tokens WHERE {condition}"
        texts = database.execute(query, list(bounds.values())).fetchone()
        if texts[0] is not None:
            numbers, packed = (np.fromstring(text, np.int64, sep=",") for text in texts)
            bits = packed.astype("<i8").view(np.uint8).reshape(-1, WIDTH // 8)
            row, bit = np.nonzero(np.unpackbits(bits, axis=1, bitorder="little"))
            found[numbers[row], bit] = True
    return found


def _after(beginning: str) -> str:
    """Return the least text that is greater than all that begin with a text."""
    whole = beginning.rstrip("\U0010ffff")
    following = ord(whole[-1]) + 1
    return whole[:-1] + chr(0xE000 if following == 0xD800 else following)

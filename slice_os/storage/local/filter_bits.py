"""Which documents meet filters: bits of documents, looked up by the tokens of their metadata.

The tokens, and what a filter asks of them, are a cluster's
(`slice_os.storage.filters`). A row of the table `tokens` says of `WIDTH` documents
which of them have a token: a value that half of all documents have takes few rows, and one that a
single document has takes one.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from slice_os.storage.filters import (
    field_name,
    filter_clauses,
    filter_tokens,
    last_token,
)
from slice_os.storage.local.database import Bools, Database, Int64
from slice_os.text.filters import Condition, Filter

WIDTH = 64
"""Documents of one row: the bits of one of SQLite's integers."""
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
    ((_, body),) = filter_clauses([Filter(name, "exists", "")])[0].items()
    (prefix,) = body.values()
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


def meets(database: Database, filters: Sequence[Condition], keys: Int64) -> Bools:
    """Tell which of some documents, given by their keys, meet filters; remembered."""
    fields = tuple(condition for condition in filters if isinstance(condition, Filter))
    known = database.remembered()
    if ("filters", fields) not in known:
        known["filters", fields] = _meeting(database, fields)
    met: Bools = known["filters", fields].take(keys, mode="clip")
    return met


def _meeting(database: sqlite3.Connection, filters: Sequence[Filter]) -> Bools:
    """Tell of every key up to the last document's, and some more, whether it meets filters."""
    (last,) = database.execute("SELECT ifnull(max(key), 0) FROM documents").fetchone()
    met = np.ones((last // WIDTH + 1, WIDTH), bool)
    for clause in filter_clauses(filters):
        met &= _evaluate(database, clause, len(met))
    return met.reshape(-1)


def key_clause(database: sqlite3.Connection, filters: Sequence[Filter]) -> tuple[str, list[str]]:
    """Return an SQL condition on the documents `d`, and its parameters."""
    if not filters:
        return "TRUE", []
    keys = np.flatnonzero(_meeting(database, filters)).tolist()
    return "d.key IN (SELECT value FROM json_each(?))", [json.dumps(keys)]


def _evaluate(database: sqlite3.Connection, clause: Mapping[str, Any], blocks: int) -> Bools:
    """Return which documents a clause of a cluster's query holds of, ``[blocks, WIDTH]``."""
    ((kind, body),) = clause.items()
    if kind == "bool":
        parts = body.get("must_not") or body["should"]
        either: Bools = np.logical_or.reduce([_evaluate(database, part, blocks) for part in parts])
        return ~either if "must_not" in body else either
    (value,) = body.values()
    if kind in ("term", "terms"):
        ranges = [{"gte": term, "lte": term} for term in ([value] if kind == "term" else value)]
    else:
        ranges = [{"gte": value, "lt": _after(value)} if kind == "prefix" else value]
    holds = np.zeros((blocks, WIDTH), bool)
    for bounds in ranges:
        condition = " AND ".join(f"token {_LIMITS[limit]} ?" for limit in bounds)
        # As text: Python would make an object of each number.
        query = f"SELECT group_concat(block), group_concat(bits) FROM tokens WHERE {condition}"
        texts = database.execute(query, list(bounds.values())).fetchone()
        if texts[0] is not None:
            numbers, packed = (np.fromstring(text, np.int64, sep=",") for text in texts)
            bits = packed.astype("<i8").view(np.uint8).reshape(-1, WIDTH // 8)
            row, bit = np.nonzero(np.unpackbits(bits, axis=1, bitorder="little"))
            holds[numbers[row], bit] = True
    return holds


def _after(beginning: str) -> str:
    """Return the least text that is greater than all that begin with a text."""
    whole = beginning.rstrip("\U0010ffff")
    following = ord(whole[-1]) + 1
    return whole[:-1] + chr(0xE000 if following == 0xD800 else following)

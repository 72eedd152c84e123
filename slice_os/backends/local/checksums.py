"""Digests that show a change to the database of an embedded index.

A document's row says what is known of it and of its passages but their places in segments.
"""

from __future__ import annotations

import sqlite3

from slice_os.records import content_hash


def note_digest(database: sqlite3.Connection, key: int) -> None:
    """Put the digest of a complete document into its row."""
    database.execute(
        "UPDATE documents SET digest = ? WHERE key = ?", (document_digest(database, key), key)
    )


def document_digest(database: sqlite3.Connection, key: int) -> str:
    """Return the hash of a document's row and of what its passages say of themselves."""
    row = database.execute(
        "SELECT id, title, metadata, hash, source FROM documents WHERE key = ?", (key,)
    ).fetchone()
    passages = database.execute(
        'SELECT number, start, "end", title, hash, words FROM passages'
        " WHERE document = ? AND NOT pending ORDER BY number, key",
        (key,),
    )
    return content_hash(row, passages.fetchall())


def note_description(database: sqlite3.Connection) -> None:
    """Note the hash of what the index says of itself and of its roots."""
    database.execute("UPDATE meta SET value = ? WHERE name = 'digest'", (described(database),))


def described(database: sqlite3.Connection) -> str:
    """Return the hash of what the index says of itself and of its roots."""
    rows = database.execute("SELECT * FROM meta WHERE name IN ('index', 'roots') ORDER BY name")
    return content_hash(rows.fetchall())

"""Hashes that show a change to the database of an embedded index, of its rows and of its file.

A document's row says what is known of it and of its passages but their places in segments. Of the
file there is a checksum beside it, as ``b2sum --check index.sqlite.b2`` reads it, so that no byte
changes unseen. Who writes removes it first and makes it again at the end: where there is one,
nobody has written since, and where there is none, a run is under way, was killed, or ended while
readers were in the middle of something.
"""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import suppress
from pathlib import Path

from slice_os.backends.local.opened import file_blocks
from slice_os.backends.local.schema import DATABASE, has_column, state_of
from slice_os.files import sync_folder, write_whole
from slice_os.records import content_hash

CHECKSUM = f"{DATABASE}.b2"
PATIENCE = 1000
"""Milliseconds that the end of a run waits for readers."""


def unseal(folder: Path) -> None:
    """Remove the checksum of the database's file; to be done before anything is committed."""
    with suppress(FileNotFoundError):
        (folder / CHECKSUM).unlink()
        sync_folder(folder)


def seal(database: sqlite3.Connection, folder: Path) -> None:
    """Bring all that is committed into the database's file and note its checksum.

    For who holds the lock of the writer. Without a checksum if readers are in the middle of
    something or the disk fails: what is committed stays so.
    """
    with suppress(OSError, sqlite3.Error):
        database.execute(f"PRAGMA busy_timeout = {PATIENCE}")
        (busy, *_) = database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy or state_of(folder).logged:
            return
        write_whole(folder / CHECKSUM, _line(folder))


def is_sealed(folder: Path) -> bool | None:
    """Tell whether the database's file is what was written; None: it has no checksum (now)."""
    while True:
        try:
            noted = _noted(folder)
            whole = noted == _line(folder) and not state_of(folder).logged
            if whole or noted == _noted(folder):
                return whole
        except FileNotFoundError:
            return None


def _noted(folder: Path) -> str:
    return (folder / CHECKSUM).read_text(encoding="utf-8", errors="replace")


def _line(folder: Path) -> str:
    found = hashlib.blake2b()
    for some in file_blocks(folder / DATABASE):
        found.update(some)
    return f"{found.hexdigest()}  {DATABASE}\n"


def add_digests(database: sqlite3.Connection) -> None:
    """Have an index of before there were digests hold them from now on."""
    if not has_column(database, "documents", "digest"):
        database.execute("ALTER TABLE documents ADD COLUMN digest TEXT")
    database.execute("INSERT OR IGNORE INTO meta VALUES ('digest', ?)", (described(database),))


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

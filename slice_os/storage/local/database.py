"""The SQLite side of an embedded index: documents, passages and their BM25 postings."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from slice_os.errors import IndexDamagedError, LocationError, MovedError
from slice_os.files import sync_folder
from slice_os.storage.contract import IndexMeta
from slice_os.storage.local.segments import Recorded, mending
from slice_os.text import stands
from slice_os.text.normal_form import normal_form
from slice_os.types import content_hash

Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
DATABASE = "index.sqlite"
LAYOUT = 3
"""The number of the layout of an embedded index; one with another number cannot be read."""
REMEMBERED = 16
"""Results that a connection remembers at most."""
_SHARED_FILE = 1 << 15
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

# `hidden` names passages that a segment holds and no reader may see: those deleted, and those of
# a document that is not complete yet (`pending`). A segment's number is never used again: readers
# know what they have mapped by it.
SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE documents (
    key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, title TEXT NOT NULL, metadata TEXT NOT NULL,
    hash TEXT, run INTEGER NOT NULL, source TEXT NOT NULL, digest TEXT);
CREATE TABLE passages (
    key INTEGER PRIMARY KEY, document INTEGER NOT NULL REFERENCES documents,
    number INTEGER NOT NULL, start INTEGER NOT NULL, "end" INTEGER NOT NULL,
    title TEXT NOT NULL, text TEXT NOT NULL,
    hash TEXT NOT NULL, words INTEGER NOT NULL, segment INTEGER NOT NULL, ordinal INTEGER NOT NULL,
    pending INTEGER NOT NULL DEFAULT 0, length INTEGER NOT NULL);
CREATE INDEX passages_document ON passages (document, number);
CREATE UNIQUE INDEX passages_place ON passages (segment, ordinal, document);
CREATE INDEX passages_length ON passages (length, words, document) WHERE NOT pending;
CREATE TABLE tokens (
    token TEXT NOT NULL, block INTEGER NOT NULL, bits INTEGER NOT NULL,
    PRIMARY KEY (token, block)) WITHOUT ROWID;
CREATE TABLE segments (
    number INTEGER PRIMARY KEY AUTOINCREMENT, passages INTEGER NOT NULL, words INTEGER NOT NULL,
    size INTEGER NOT NULL, checksum BLOB NOT NULL);
CREATE TABLE hidden (
    segment INTEGER NOT NULL, ordinal INTEGER NOT NULL, words INTEGER NOT NULL,
    PRIMARY KEY (segment, ordinal)) WITHOUT ROWID;
CREATE VIEW indexed (key, title, text) AS
    SELECT key, normal_form(title), normal_form(text) FROM passages;
CREATE VIRTUAL TABLE postings USING fts5 (
    title, text, content='indexed', content_rowid='key', tokenize='porter unicode61');
CREATE TRIGGER passages_added AFTER INSERT ON passages WHEN NOT new.pending BEGIN
    INSERT INTO postings (rowid, title, text)
        VALUES (new.key, normal_form(new.title), normal_form(new.text));
END;
CREATE TRIGGER passages_deleted AFTER DELETE ON passages WHEN NOT old.pending BEGIN
    INSERT INTO postings (postings, rowid, title, text)
        VALUES ('delete', old.key, normal_form(old.title), normal_form(old.text));
END;
CREATE TRIGGER passages_completed AFTER UPDATE OF pending ON passages
        WHEN old.pending AND NOT new.pending BEGIN
    INSERT INTO postings (rowid, title, text)
        VALUES (new.key, normal_form(new.title), normal_form(new.text));
END;
"""

AT = (
    "json_each(?) place CROSS JOIN passages p"
    " ON p.segment = json_extract(place.value, '$[0]')"
    " AND p.ordinal = json_extract(place.value, '$[1]')"
)
"""The passages `p` at the places of a JSON list of [segment, ordinal]; looked up in that order."""


class State(NamedTuple):
    """What tells that somebody has written to an index, or is about to."""

    changed: int
    size: int
    logged: bool


class Database(sqlite3.Connection):
    """A connection to an index.

    Attributes:
        sealed: The state of the file, where it is read as one that does not change.
        refused: Why it cannot be read as one that changes, then.
        owners: The keys of the documents of each segment's passages; they change no more, and what
            is gone stays hidden.
    """

    sealed: State | None = None
    refused: sqlite3.Error | None = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.owners: dict[int, Int64] = {}
        self._version: object = None
        self._remembered: dict[Any, Any] = {}

    def remembered(self) -> dict[Any, Any]:
        """Return what was put here in this state of the index; empty after somebody has written."""
        version = self.execute("PRAGMA data_version").fetchone()
        if version != self._version or len(self._remembered) >= REMEMBERED:
            self._version, self._remembered = version, {}
        return self._remembered


def connect(folder: Path) -> Database:
    """Open the database of an existing index; readers and the writer each have their own.

    Readers of a write-ahead log share a file beside it. Where nobody has made it, and this process
    may not, SQLite reads the database only as a file that does not change (`reading`).
    """
    file = folder / DATABASE
    if not file.is_file():
        raise MovedError(f"The index {folder} is there no longer: open it again.")
    try:
        database = _open(file)
        try:
            objects = _objects(database)
        except sqlite3.Error as exc:
            # A full disk has no room for that file either.
            if not any(sign in str(exc) for sign in ("readonly", "unable to open", "full", "I/O")):
                raise
            database.close()
            state = state_of(folder)
            if state.logged:
                raise LocationError(
                    f"A run that wrote to {folder} was killed: open the index once with the "
                    "right to write into its folder."
                ) from exc
            database = _open(file, "?mode=ro&immutable=1")
            database.sealed, database.refused = state, exc
            objects = _objects(database)
    except (OSError, sqlite3.Error, UnicodeDecodeError) as exc:
        raise as_error(folder, exc) from exc
    if foreign := objects.symmetric_difference(_schema()):
        database.close()
        names = ", ".join(sorted({name for _, name, _ in foreign}))
        raise _damaged(folder, f"its schema is not what slice-os makes: {names}")
    return database


def _open(file: Path, mode: str = "?mode=rw") -> Database:
    database = Database(
        f"{file.absolute().as_uri()}{mode}",
        uri=True,
        isolation_level=None,
        timeout=60,
        check_same_thread=False,
    )
    database.execute("PRAGMA busy_timeout = 60000")
    database.create_function("stands", 3, stands, deterministic=True)
    add_normal_form(database)
    return database


def add_normal_form(database: sqlite3.Connection) -> None:
    """Add the function that the schema of an index calls."""
    database.create_function("normal_form", 1, normal_form, deterministic=True)


def _objects(database: sqlite3.Connection) -> frozenset[tuple[str, str, str]]:
    """Return the type, name and definition of all that a database holds.

    How the tables of FTS5 are defined is up to each version of SQLite.
    """
    return frozenset(
        (str(kind), str(name), "" if str(name).startswith("postings_") else _words(sql or ""))
        for kind, name, sql in database.execute("SELECT type, name, sql FROM sqlite_master")
    )


def _words(text: object) -> str:
    return " ".join(str(text).split())


@cache
def _schema() -> frozenset[tuple[str, str, str]]:
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(SCHEMA)
        return _objects(database)


def state_of(folder: Path) -> State:
    """Return the state of the index in `folder`."""
    file = (folder / DATABASE).stat()
    log = folder / f"{DATABASE}-wal"  # an empty one is of a reader for whom the disk was full
    return State(file.st_mtime_ns, file.st_size, log.exists() and log.stat().st_size > 0)


def is_outdated(database: Database, folder: Path) -> bool:
    """Tell whether what is read as a file that does not change has changed."""
    return database.sealed is not None and database.sealed != state_of(folder)


@contextmanager
def reading(database: Database, folder: Path) -> Iterator[None]:
    """Raise what SQLite's errors mean, and LocationError if what was read is outdated by now."""
    error: Exception | None = None
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as exc:
        error = exc
    if is_outdated(database, folder):
        raise LocationError(
            f"The index {folder} was written to while it was read without the right to write "
            "beside it: run this again."
        ) from error
    if error is not None:
        raise as_error(folder, error) from error


@contextmanager
def mapped_errors(folder: Path) -> Iterator[None]:
    """Raise what errors of SQLite and of the disk mean."""
    try:
        yield
    except (OSError, sqlite3.Error) as exc:
        raise as_error(folder, exc) from exc


def is_full(folder: Path, exc: Exception) -> bool:
    """Tell whether an error is that of a full disk, or of a file as large as it may be."""
    if getattr(exc, "errno", None) in _FULL or "is full" in str(exc):
        return True
    # SQLite says so little where it cannot make the file that readers share.
    if any(sign in str(exc) for sign in ("I/O", "unable to open")):
        with suppress(OSError):
            return _lacks_inodes(folder) or shutil.disk_usage(folder).free < _SHARED_FILE
    return False


def _lacks_inodes(folder: Path) -> bool:
    if not hasattr(os, "statvfs"):
        return False
    disk = os.statvfs(folder)
    return disk.f_files > 0 and disk.f_favail == 0


def as_error(folder: Path, exc: Exception) -> LocationError:
    """Return what to raise for an error of SQLite or the file system.

    What SQLite says of a damaged database may quote it, and be no text then.
    """
    if isinstance(exc, UnicodeDecodeError) or any(
        sign in str(exc) for sign in ("malformed", "not a database", "disk image")
    ):
        return _damaged(folder, exc)
    if is_full(folder, exc):
        remedy = "make room"
        with suppress(OSError):
            if _lacks_inodes(folder):
                remedy = "it has no inode left for another file, delete some"
        return LocationError(
            f"The disk that holds {folder} is full: {remedy} and run this again. What was "
            "committed is kept, and searching goes on."
        )
    if "readonly" in str(exc):
        return LocationError(f"The index {folder} cannot be written: get the right to, or copy it.")
    return LocationError(f"The index {folder} cannot be used: {_words(exc)}.")


def _damaged(folder: Path, reason: object) -> IndexDamagedError:
    return IndexDamagedError(  # the reason may quote what the database holds
        f"The index {folder} is damaged ({_words(reason)}): restore a backup, or index to a new "
        "location."
    )


def note_digest(database: sqlite3.Connection, key: int) -> None:
    """Put the digest of a complete document into its row."""
    database.execute(
        "UPDATE documents SET digest = ? WHERE key = ?", (document_digest(database, key), key)
    )


def document_digest(database: sqlite3.Connection, key: int) -> str:
    """Return the hash of a document's row and of its passages' rows."""
    row = database.execute(
        "SELECT id, title, metadata, hash, source FROM documents WHERE key = ?", (key,)
    ).fetchone()
    passages = database.execute(
        'SELECT number, start, "end", title, hash, words FROM passages'
        " WHERE document = ? AND NOT pending ORDER BY number, key",
        (key,),
    )
    return content_hash(row, passages.fetchall())


def note_meta_digest(database: sqlite3.Connection) -> None:
    """Put the digest of the index's description and roots beside them."""
    database.execute("UPDATE meta SET value = ? WHERE name = 'digest'", (meta_digest(database),))


def meta_digest(database: sqlite3.Connection) -> str:
    """Return the hash of the index's description and roots."""
    rows = database.execute("SELECT * FROM meta WHERE name IN ('index', 'roots') ORDER BY name")
    return content_hash(rows.fetchall())


def recorded_segments(database: sqlite3.Connection) -> dict[int, Recorded]:
    """Return what the database says of each segment, by number, in order."""
    rows = database.execute("SELECT * FROM segments ORDER BY number")
    return {row[0]: Recorded(*row) for row in rows}


def record_segment(database: sqlite3.Connection, segment: Recorded) -> None:
    """Note a segment."""
    database.execute("INSERT OR REPLACE INTO segments VALUES (?, ?, ?, ?, ?)", segment)


def segment_missing(folder: Path) -> IndexDamagedError:
    """Return what to raise where a file of a segment is gone."""
    return IndexDamagedError(f"The index {folder} misses a segment file: {mending(folder)}.")


def next_segment(database: sqlite3.Connection) -> int:
    """Return a segment number that has never been used."""
    (number,) = database.execute(
        "SELECT ifnull(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'segments'"
    ).fetchone()
    return int(number)


def make_folder(folder: Path) -> None:
    """Make the folder of an index, for this user alone; one that is there stays as it is."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def create(folder: Path, meta: IndexMeta) -> None:
    """Make an empty index in `folder`; the rename of its database is what makes it exist."""
    make_folder(folder)
    (folder / "segments").mkdir(exist_ok=True)
    fresh = folder / f"{DATABASE}.new"
    fresh.unlink(missing_ok=True)
    with closing(sqlite3.connect(fresh, isolation_level=None)) as database:
        database.executescript(SCHEMA)
        values = {name: getattr(meta, name) for name in IndexMeta.__dataclass_fields__}
        values["format"] = LAYOUT
        database.execute("INSERT INTO meta VALUES ('index', ?)", (json.dumps(values),))
        database.execute("INSERT INTO meta VALUES ('run', '0'), ('roots', '{}'), ('digest', '')")
        note_meta_digest(database)
        database.execute("PRAGMA journal_mode = WAL")
    fresh.rename(folder / DATABASE)
    sync_folder(folder)


def load_meta(database: sqlite3.Connection, folder: Path) -> IndexMeta:
    """Return the index's description, or raise an error that names the way out."""
    try:
        (text,) = database.execute("SELECT value FROM meta WHERE name = 'index'").fetchone()
        values = json.loads(text)
        if (layout := values.pop("format")) != LAYOUT:
            remedy = "install a newer one" if layout > LAYOUT else "index anew"
            raise LocationError(
                f"The index {folder} has format {layout}, this slice-os reads {LAYOUT}: {remedy}."
            )
        if unknown := values.keys() - IndexMeta.__dataclass_fields__:
            raise LocationError(
                f"The index {folder} has settings that this slice-os does not know "
                f"({', '.join(sorted(unknown))}): install a newer slice-os."
            )
        if values.get("store") is not None:
            values["store"] = tuple(values["store"])
        return IndexMeta(**values)
    except sqlite3.OperationalError as exc:
        raise as_error(folder, exc) from exc
    except (sqlite3.Error, TypeError, ValueError, KeyError) as exc:
        raise _damaged(folder, exc) from exc


def load_roots(database: sqlite3.Connection) -> dict[str, str]:
    """Return the folders in which ids start, by prefix."""
    try:
        (text,) = database.execute("SELECT value FROM meta WHERE name = 'roots'").fetchone()
        roots: dict[str, str] = json.loads(text)
    except (TypeError, ValueError) as exc:
        raise IndexDamagedError(
            "What the index says of its roots is damaged",
            hint="restore a backup ('slice-os restore'), or index to a new location.",
        ) from exc
    return roots

"""Writing an embedded index.

A segment is synced first; the SQLite transaction that names it is the commit point.
Everything since the last commit lies in one open transaction and in memory; a crash loses just
that. A document too large for one commit is committed in parts that stay hidden until it is
complete, and a later run goes on from them.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from filelock import AcquireReturnProxy, FileLock, Timeout

from slice_os.errors import IndexDamagedError, IndexLockedError, LocationError, MovedError
from slice_os.spans import PackedPassage
from slice_os.storage.contract import Writer
from slice_os.storage.local.compaction import merge_segments, remove_orphans, segment_file
from slice_os.storage.local.database import (
    as_error,
    connect,
    is_full,
    load_meta,
    next_segment,
    note_digest,
    note_meta_digest,
    record_segment,
)
from slice_os.storage.local.filter_bits import note_tokens
from slice_os.storage.local.segments import Recorded, write_segment
from slice_os.text import text_length
from slice_os.text.filters import flat_metadata
from slice_os.types import Document, Passage

_log = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")
SEGMENT_WORDS = 65_536
COMMIT_SECONDS = 30.0
LOCK = "writer.lock"
PATIENCE = 1000
"""Milliseconds that the end of a run waits for readers."""


def _whole(step: Callable[P, T]) -> Callable[P, T]:
    """Make a method of the writer one step: all of it is done or nothing, whatever interrupts."""

    @wraps(step)
    def whole(*args: P.args, **kwargs: P.kwargs) -> T:
        with cast(LocalWriter, args[0]).step():
            return step(*args, **kwargs)

    return whole


def in_use(folder: Path) -> IndexLockedError:
    """Return what to raise where another process has the lock of an index."""
    return IndexLockedError(
        f"Another process is writing to {folder}: wait for it to end, or stop it."
    )


def lock(folder: Path, *, wait: bool = False) -> AcquireReturnProxy[Any]:
    """Return the lock of the one writer of an index, acquired; IndexLockedError if it is taken.

    With `wait` it is waited for, however long the writer takes. As a context manager it is
    released at the end of the block.
    """
    try:
        return FileLock(folder / LOCK, timeout=-1 if wait else 0).acquire()
    except Timeout:
        raise in_use(folder) from None
    except OSError as exc:
        raise LocationError(f"{folder} cannot be written to: {exc.strerror}.") from exc


class LocalWriter(Writer):
    """The one writer of an embedded index; see `Writer` for the contract."""

    def __init__(self, folder: Path, is_live: Callable[[], bool] | None = None) -> None:
        self._folder = folder
        self._lock = lock(folder).lock
        with ExitStack() as undo:
            undo.callback(self._lock.release)
            if is_live is not None and not is_live():
                raise MovedError(
                    f"Another generation of {folder} is live now: run this again; what is done is "
                    "kept."
                )
            self._database = connect(folder)
            undo.callback(self._database.close)
            self._open(folder)
            undo.pop_all()
        self._broken = False
        self._document: Document | None = None
        self._key = 0
        self._keys: list[int] = []  # the passages that the document has when it is complete
        self._moves: list[tuple[int, int, int, int]] = []
        self._stored: dict[str, list[int]] = defaultdict(list)

    def _open(self, folder: Path) -> None:
        if self._database.refused is not None:
            raise as_error(folder, self._database.refused)
        try:
            load_meta(self._database, folder)  # refuses what cannot be written to
            remove_orphans(self._database, folder)
            self._begin_transaction()
            (run,) = self._database.execute("SELECT value FROM meta WHERE name = 'run'").fetchone()
            self._run = int(run) + 1
            self._database.execute("UPDATE meta SET value = ? WHERE name = 'run'", (self._run,))
        except sqlite3.Error as exc:
            raise as_error(folder, exc) from exc

    def _begin_transaction(self) -> None:
        # First, so that what is committed is not written again, whatever interrupts what follows.
        self._packed: list[PackedPassage] = []
        self._words = 0
        self._database.execute("BEGIN IMMEDIATE")
        self._segment = next_segment(self._database)
        self._since = time.monotonic()

    @contextmanager
    def step(self) -> Iterator[None]:
        """Do all of a step or nothing of it, whatever interrupts it."""
        if self._broken:
            raise LocationError(f"{self._folder} could not be written earlier in this run.")
        packed, words = len(self._packed), self._words
        try:
            self._database.execute("SAVEPOINT step")
            yield
            self._database.execute("RELEASE step")
        except BaseException as exc:
            # An interrupt may come when the step is released, and so done: it stays then.
            with suppress(sqlite3.Error):
                self._database.execute("ROLLBACK TO step")
                del self._packed[packed:]
                self._words = words
                self._database.execute("RELEASE step")
            # A full disk makes SQLite roll back everything since the last commit.
            self._broken = not self._database.in_transaction
            if isinstance(exc, sqlite3.Error):
                raise as_error(self._folder, exc) from exc
            raise

    @_whole
    def touch(self, document: str) -> bool:
        seen = self._database.execute(
            "UPDATE documents SET run = :run WHERE id = :id AND run < :run",
            {"run": self._run, "id": document},
        )
        return seen.rowcount == 1

    @_whole
    def begin(self, document: Document) -> bool:
        row = self._database.execute(
            "SELECT key, run FROM documents WHERE id = ?", (document.id,)
        ).fetchone()
        if row is None:
            cursor = self._database.execute(
                "INSERT INTO documents (id, title, metadata, run, source)"
                " VALUES (?, ?, '{}', ?, ?)",
                (document.id, document.title, self._run, document.source),
            )
            self._key = int(cursor.lastrowid or 0)
        elif row[1] == self._run:
            return False
        else:
            self._key = row[0]
            self._database.execute(
                "UPDATE documents SET run = ?, hash = NULL, digest = NULL WHERE key = ?",
                (self._run, self._key),
            )
        self._document = document
        self._keys.clear()
        self._moves.clear()
        self._stored.clear()
        for key, passage_hash in self._database.execute(
            "SELECT key, hash FROM passages WHERE document = ? ORDER BY number DESC", (self._key,)
        ):
            self._stored[passage_hash].append(key)
        return True

    def put(self, passage: Passage, packed: PackedPassage) -> None:
        self._put(passage, packed)
        if self._words >= SEGMENT_WORDS or time.monotonic() - self._since > COMMIT_SECONDS:
            self.commit()

    @_whole
    def _put(self, passage: Passage, packed: PackedPassage) -> None:
        """Add a passage that stays hidden until its document is complete."""
        ordinal = len(self._packed)
        words = packed.own_words(passage)
        cursor = self._database.execute(
            "INSERT INTO passages (document, number, start, end, title, text, hash, words, segment,"
            " ordinal, pending, length) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?)",
            (self._key, passage.number, passage.start, passage.end, passage.title, passage.text,
             passage.hash, words, self._segment, ordinal, text_length(passage.title, passage.text)),
        )  # fmt: skip
        self._database.execute(
            "INSERT INTO hidden VALUES (?, ?, ?)", (self._segment, ordinal, words)
        )
        self._keys.append(int(cursor.lastrowid or 0))
        self._packed.append(packed)
        self._words += len(packed)

    def keep(self, passage: Passage) -> None:
        key = self._stored[passage.hash].pop()
        self._moves.append((passage.number, passage.start, passage.end, key))
        self._keys.append(key)

    @_whole
    def finish(self) -> int:
        assert self._document is not None
        former = self._database.execute(
            "SELECT key FROM passages WHERE document = ?", (self._key,)
        ).fetchall()
        kept = set(self._keys)
        self._drop([key for (key,) in former if key not in kept])
        self._database.executemany(
            "UPDATE passages SET number = ?, start = ?, end = ? WHERE key = ?", self._moves
        )
        self._database.execute(
            "DELETE FROM hidden WHERE (segment, ordinal) IN"
            " (SELECT segment, ordinal FROM passages WHERE document = ? AND pending)",
            (self._key,),
        )
        self._database.execute(
            "UPDATE passages SET pending = 0 WHERE document = ? AND pending", (self._key,)
        )
        metadata = json.dumps(
            flat_metadata(self._document.metadata), ensure_ascii=False, default=str
        )
        (former_metadata,) = self._database.execute(
            "SELECT metadata FROM documents WHERE key = ?", (self._key,)
        ).fetchone()
        note_tokens(self._database, self._key, former_metadata, metadata)
        self._database.execute(
            "UPDATE documents SET title = ?, metadata = ?, hash = ?, source = ? WHERE key = ?",
            (self._document.title, metadata, self._document.hash, self._document.source, self._key),
        )
        note_digest(self._database, self._key)
        self._document = None
        (words,) = self._database.execute(
            "SELECT ifnull(sum(words), 0) FROM passages WHERE document = ?", (self._key,)
        ).fetchone()
        return int(words)

    def _drop(self, keys: Sequence[int]) -> None:
        """Delete passages and hide what their segments still hold of them."""
        rows = [(key,) for key in keys]
        self._database.executemany(
            "INSERT OR IGNORE INTO hidden SELECT segment, ordinal, words FROM passages"
            " WHERE key = ?",
            rows,
        )
        self._database.executemany("DELETE FROM passages WHERE key = ?", rows)

    @_whole
    def delete(self, documents: Sequence[str]) -> int:
        # Half a character cannot be stored, so no document has such an id.
        ids = [name.encode("utf-8", "replace").decode() for name in documents]
        deleted = 0
        for name in ids:
            query = "SELECT key, metadata FROM documents WHERE id = ?"
            for document, metadata in self._database.execute(query, (name,)).fetchall():
                query = "SELECT key FROM passages WHERE document = ?"
                self._drop([key for (key,) in self._database.execute(query, (document,))])
                note_tokens(self._database, document, metadata, "{}")
                self._database.execute("DELETE FROM documents WHERE key = ?", (document,))
                deleted += 1
        return deleted

    def unseen(self) -> Iterator[tuple[str, str]]:
        self.commit()
        yield from self._database.execute(
            "SELECT id, source FROM documents WHERE run < ?", (self._run,)
        )

    @_whole
    def remember(self, roots: Mapping[str, str]) -> None:
        self._database.execute(
            "INSERT OR REPLACE INTO meta VALUES ('roots', ?)", (json.dumps(roots),)
        )
        note_meta_digest(self._database)

    def commit(self) -> None:
        """Write the segment, then commit; may be called again after an interrupt in its middle."""
        try:
            if self._packed and self._database.in_transaction:
                file = segment_file(self._folder, self._segment)
                written = write_segment(file, self._packed)
                record_segment(
                    self._database,
                    Recorded(self._segment, len(self._packed), self._words, *written),
                )
            if self._database.in_transaction:
                self._database.execute("COMMIT")
            self._begin_transaction()
        except (OSError, sqlite3.Error) as exc:
            self._broken = True
            if is_full(self._folder, exc):
                raise as_error(self._folder, exc) from exc
            raise LocationError(f"{self._folder} could not be written: {exc}.") from exc

    def close(self, *, merge: bool = True) -> None:
        """Commit, then merge segments. A document that was begun and not finished stays hidden.

        After an error of the disk nothing more is written: the last commit stands.
        """
        try:
            if not self._broken:
                self.commit()
                if merge:
                    self._merge()
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                self._checkpoint()
        finally:
            self._database.close()  # rolls back what is open
            self._lock.release()

    def _checkpoint(self) -> None:
        """Empty the log, so that who may not write beside the database can read all of it.

        Without it, where readers are in the middle of something: the last of them does it.
        """
        with suppress(sqlite3.Error):
            self._database.execute(f"PRAGMA busy_timeout = {PATIENCE}")
            self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _merge(self) -> None:
        try:
            merge_segments(self._database, self._folder, SEGMENT_WORDS)
        except (OSError, sqlite3.Error, IndexDamagedError) as exc:
            _log.warning(
                "The segments of %s could not be merged: %s. Nothing is lost.", self._folder, exc
            )

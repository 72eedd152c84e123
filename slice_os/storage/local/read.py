"""Reading an embedded index. Readers see the last commit and are never blocked by the writer."""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import Event, Lock
from typing import TypeVar
from weakref import WeakValueDictionary, finalize

from slice_os.errors import LocationError
from slice_os.host import thread_pool
from slice_os.spans import PassageBlock, scan_passages
from slice_os.storage.contract import (
    Candidate,
    IndexStatus,
    MiningQuery,
    Reader,
    SearchQuery,
    StoredDocument,
    StoredPassage,
)
from slice_os.storage.local.candidates import candidates, fetch, unseen
from slice_os.storage.local.compaction import segment_file
from slice_os.storage.local.database import (
    DATABASE,
    Database,
    as_error,
    connect,
    is_outdated,
    load_meta,
    load_roots,
    reading,
    recorded_segments,
    segment_missing,
)
from slice_os.storage.local.filter_bits import field_names, has_field, key_clause
from slice_os.storage.local.postings import Places
from slice_os.storage.local.segments import Segment
from slice_os.text.filters import Filter
from slice_os.types import DocumentInfo, Metadata, OnProgress, Passage

T = TypeVar("T")
RETRIES = 10
PAGE = 1000
"""Passages, or documents, that are listed at once."""


class LocalReader(Reader):
    """Reads the index in a folder; see `Reader` for the contract. Threads may share it."""

    ranks_at_once = 1000  # words are mapped: nothing is read until it is used

    def __init__(self, location: str, folder: Path) -> None:
        self.location, self._folder = location, folder
        database = connect(folder)
        self.meta = load_meta(database, folder)
        # A search takes one, or opens one, and puts it back for the next.
        self._idle: list[Database] = [database]
        self._lock = Lock()
        self._closed = False
        self._segments: dict[int, Segment] = {}
        # A former generation ends with the last search of it: it has no other end.
        finalize(self, _close_all, self._idle).atexit = False
        _readers[id(self)] = self

    def close_idle(self) -> None:
        """Close the databases that nobody is using."""
        with self._lock:
            _close_all(self._idle)

    @contextmanager
    def _snapshot(self) -> Iterator[Database]:
        """Give a database in a read transaction: one state of the index, however long it takes."""
        if self._closed:
            raise LocationError(f"The index {self._folder} was closed: open it again.")
        with self._lock:
            database = self._idle.pop() if self._idle else None
        if database is not None and is_outdated(database, self._folder):
            database.close()
            database = None
        if database is None:
            database = connect(self._folder)
        process = os.getpid()
        try:
            with reading(database, self._folder):
                try:
                    database.execute("BEGIN")
                    yield database
                finally:
                    with suppress(sqlite3.Error):
                        database.execute("COMMIT")
        finally:
            with self._lock:
                if process == os.getpid() and not self._closed:
                    self._idle.append(database)
                else:
                    database.close()

    def _map_segments(self, database: sqlite3.Connection) -> dict[int, Segment]:
        recorded, known = recorded_segments(database), self._segments
        try:
            mapped = {
                n: known.get(n) or Segment.open(segment_file(self._folder, n), row)
                for n, row in recorded.items()
            }
        except FileNotFoundError:
            raise  # replaced by a merge: the caller looks again
        except OSError as exc:  # too many open files, for one
            raise as_error(self._folder, exc) from exc
        self._segments = mapped
        return mapped

    def status(self) -> IndexStatus:
        with self._snapshot() as database:
            documents, incomplete, passages, words = database.execute(
                "SELECT (SELECT count(*) FROM documents WHERE hash IS NOT NULL),"
                " (SELECT count(*) FROM documents WHERE hash IS NULL),"
                " count(*), ifnull(sum(words), 0) FROM passages WHERE NOT pending"
            ).fetchone()
            segments, deleted, stored = database.execute(
                "SELECT (SELECT count(*) FROM segments), ifnull((SELECT sum(words) FROM hidden h"
                " WHERE NOT EXISTS (SELECT 1 FROM passages p WHERE p.segment = h.segment"
                " AND p.ordinal = h.ordinal)), 0), ifnull(sum(words), 0) FROM passages"
            ).fetchone()
            roots = load_roots(database)
        return IndexStatus(
            self.location,
            "local",
            self.meta,
            documents,
            passages,
            words,
            size_of(self._folder),
            {
                "incomplete_documents": incomplete,
                "segments": segments,
                "stored_words": stored + deleted,
                "roots": roots,
            },
        )

    def count(self) -> int:
        with self._snapshot() as database:
            query = "SELECT count(*) FROM documents WHERE hash IS NOT NULL"
            return int(database.execute(query).fetchone()[0])

    def roots(self) -> dict[str, str]:
        with self._snapshot() as database:
            return load_roots(database)

    def sources(self) -> Iterator[tuple[str, str]]:
        query = "SELECT key, id, source FROM documents WHERE key > ? ORDER BY key LIMIT ?"
        last = 0
        while True:
            with self._snapshot() as database:
                rows = database.execute(query, (last, PAGE)).fetchall()
            if not rows:
                return
            yield from ((name, source) for _, name, source in rows)
            last = rows[-1][0]

    def stored(self, documents: Sequence[str]) -> dict[str, StoredDocument]:
        documents_stored = {}
        with self._snapshot() as database:
            for document in documents:
                row = database.execute(
                    "SELECT key, hash FROM documents WHERE id = ?", (document,)
                ).fetchone()
                if row is not None:
                    query = "SELECT hash FROM passages WHERE document = ?"
                    hashes = Counter(h for (h,) in database.execute(query, row[:1]))
                    documents_stored[document] = StoredDocument(row[1], hashes)
        return documents_stored

    def matching(self, filters: Sequence[Filter]) -> list[str]:
        with self._snapshot() as database:
            condition, parameters = key_clause(database, filters)
            query = f"SELECT d.id FROM documents d WHERE {condition} ORDER BY d.key"
            return [name for (name,) in database.execute(query, parameters)]

    def documents(
        self, filters: Sequence[Filter], size: int, offset: int = 0
    ) -> list[DocumentInfo]:
        seen = "FROM passages p WHERE p.document = d.key AND NOT p.pending"
        with self._snapshot() as database:
            condition, parameters = key_clause(database, filters)
            query = (
                f"SELECT d.id, d.title, (SELECT sum(p.words) {seen}), (SELECT count(*) {seen}),"
                f" d.metadata FROM documents d WHERE {condition} AND EXISTS (SELECT 1 {seen})"
                " ORDER BY d.id LIMIT ? OFFSET ?"
            )
            rows = database.execute(query, [*parameters, size, offset]).fetchall()
        return [
            DocumentInfo(name, title, words, passages, json.loads(metadata))
            for name, title, words, passages, metadata in rows
        ]

    def read(self, document: str, numbers: range | None = None) -> tuple[Metadata, list[Passage]]:
        first, last = (numbers.start, numbers.stop) if numbers else (0, 1 << 62)
        query = (
            "SELECT d.metadata, d.id, p.number, p.start, p.end, p.text, p.title FROM documents d"
            " JOIN passages p ON p.document = d.key AND NOT p.pending"
            " WHERE d.id = ? AND p.number >= ? AND p.number < ? ORDER BY p.number"
        )
        name = document.encode("utf-8", "replace").decode()
        with self._snapshot() as database:
            rows = database.execute(query, (name, first, last)).fetchall()
        metadata: Metadata = json.loads(rows[0][0]) if rows else {}
        return metadata, [Passage(*row) for _, *row in rows]

    def passages(
        self,
        filters: Sequence[Filter] = (),
        after: tuple[str, int] | None = None,
        documents: Sequence[str] | None = None,
    ) -> Iterator[StoredPassage]:
        with self._mapped_state() as (database, segments):
            condition, parameters = key_clause(database, filters)
            if documents is not None:
                condition += " AND d.id IN (SELECT value FROM json_each(?))"
                parameters.append(json.dumps(documents))
            query = (
                "SELECT p.segment, p.ordinal FROM documents d JOIN passages p ON p.document = d.key"
                f" AND NOT p.pending WHERE {condition} AND (d.id, p.number) > (?, ?)"
                " ORDER BY d.id, p.number"
            )
            rows = database.execute(query, [*parameters, *(after or ("", -1))])
            while refs := rows.fetchmany(PAGE):
                yield from fetch(database, segments, refs)

    def has_field(self, name: str) -> bool:
        with self._snapshot() as database:
            return has_field(database, name)

    def fields(self) -> list[str]:
        with self._snapshot() as database:
            return field_names(database)

    def candidates(self, queries: Sequence[SearchQuery]) -> list[list[Candidate]]:
        with self._mapped_state() as (database, segments):
            return candidates(database, segments, _scan_threads(os.getpid()), queries)

    def scan(
        self, query: MiningQuery, on_progress: OnProgress = lambda share: None
    ) -> Iterator[tuple[StoredPassage, list[int]]]:
        left = Event()

        def reached(segment: Segment) -> list[tuple[int, list[int]]]:
            def read(first: int, last: int) -> PassageBlock:
                if left.is_set():  # with thousands of phrases a segment takes seconds
                    raise CancelledError
                return segment.block(first, last)

            return list(scan_passages(segment.bounds, read, query.phrases))

        with self._mapped_state() as (database, segments), ExitStack() as stack:
            places = Places(segments)
            left_out = unseen(database, places, query.filters)
            # Threads of its own do not keep searches waiting.
            pool = _pool()
            stack.callback(pool.shutdown, cancel_futures=True)
            stack.callback(left.set)
            results = pool.map(reached, segments.values())
            done, words = 0, sum(len(segment) for segment in segments.values())
            for (number, segment), passages in zip(segments.items(), results, strict=True):
                for k, (ordinal, phrases) in enumerate(passages):
                    if not left_out[places.of([(number, ordinal)])]:
                        (stored,) = fetch(database, segments, [(number, ordinal)])
                        yield stored, phrases
                    on_progress((done + len(segment) * k / len(passages)) / words)
                done += len(segment)
                on_progress(done / words)

    @contextmanager
    def _mapped_state(self) -> Iterator[tuple[Database, dict[int, Segment]]]:
        """Give a database and its segments in one state of the index."""
        for _ in range(RETRIES):
            with self._snapshot() as database:
                try:
                    segments = self._map_segments(database)
                except FileNotFoundError:  # a merge has just replaced one
                    continue
                yield database, segments
                return
        raise segment_missing(self._folder)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._segments = {}
            _close_all(self._idle)


def _close_all(databases: list[Database]) -> None:
    while databases:
        databases.pop().close()


_readers: WeakValueDictionary[int, LocalReader] = WeakValueDictionary()


def _before_fork() -> None:
    """Close what a forked process must not share with its parent; both open it again on use."""
    for reference in _readers.valuerefs():
        if (reader := reference()) is not None:
            reader.close_idle()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork)


@cache
def _scan_threads(process: int) -> ThreadPoolExecutor:
    """Return the threads that scan for all searches of a process: a forked one has none yet."""
    return _pool()


def _pool() -> ThreadPoolExecutor:
    return thread_pool(os.cpu_count() or 1, "slice-os-scan")


def size_of(folder: Path) -> int:
    """Return the bytes of a generation; files may come and go meanwhile."""
    total = 0
    for file in (*folder.glob(f"{DATABASE}*"), *(folder / "segments").glob("*")):
        with suppress(FileNotFoundError):
            total += file.stat().st_size
    return total

"""Reading an embedded index. Readers see the last commit and are never blocked by the writer."""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from threading import Event, Lock
from typing import Any, TypeVar
from weakref import finalize

from filelock import FileLock, Timeout

from slice_os.errors import LocationError
from slice_os.files import write_whole
from slice_os.host import Forkable, whole_at_fork
from slice_os.spans import PassageBlock, scan_passages
from slice_os.storage.contract import (
    BEGUN,
    Backend,
    Candidate,
    Generation,
    IndexMeta,
    IndexStatus,
    MiningQuery,
    SearchQuery,
    StoredDocument,
    StoredPassage,
    Writer,
)
from slice_os.storage.local.candidates import candidates, fetch, unseen
from slice_os.storage.local.compaction import segment_file
from slice_os.storage.local.database import (
    DATABASE,
    Database,
    as_error,
    connect,
    create,
    is_outdated,
    load_meta,
    load_roots,
    reading,
    recorded_segments,
    segment_missing,
)
from slice_os.storage.local.filter_bits import field_names, has_field, key_clause, meeting_of
from slice_os.storage.local.generations import (
    BUILD,
    drop,
    folder_of,
    live_folder,
    live_number,
    make_live,
    numbers,
    read_build,
)
from slice_os.storage.local.lexical import Places
from slice_os.storage.local.segments import Segment
from slice_os.storage.local.write import LOCK, LocalWriter, in_use, lock
from slice_os.text.filters import Filter
from slice_os.types import DocumentInfo, Metadata, Passage, Reject

T = TypeVar("T")
RETRIES = 10
PAGE = 1000
"""Passages that are listed at once."""


class LocalBackend(Backend, Forkable):
    """An embedded index in a folder; see `Backend` for the contract. Threads may share it."""

    ranks_at_once = 1000  # words are mapped: nothing is read until it is used

    def __init__(self, root: Path, number: int | None = None) -> None:
        """Open the live generation of the index at `root`, or another, which exists."""
        self._root = root
        self._number = live_number(root) if number is None else number
        self._live = number is None
        self._folder = folder = folder_of(root, self._number)
        self.location = str(root)
        database = connect(folder)
        self.meta: IndexMeta = load_meta(database, folder)
        # One for each search that is under way, kept for the next.
        self._idle: list[Database] = [database]
        self._lock = Lock()
        self._closed = Event()
        self._segments: dict[int, Segment] = {}
        self._pool = _pool()
        # A former generation ends with the last search of it: it has no other end.
        finalize(self, _close_all, self._idle).atexit = False
        self.watch_forks()

    def before_fork(self) -> None:
        """Close the databases that no thread is using: SQLite's do not cross a fork."""
        self._lock.acquire()
        self._close_idle()

    def after_fork(self) -> None:
        """Let other threads go on."""
        self._lock.release()

    def forked(self) -> None:
        """Begin without threads, and with a lock that no thread holds."""
        self._lock = Lock()
        self._pool = _pool()

    def _close_idle(self) -> None:
        _close_all(self._idle)

    @classmethod
    def open(cls, location: str, **options: Any) -> LocalBackend | None:
        _no_cluster(location, options)
        folder = Path(location).expanduser()
        if (live_folder(folder) / DATABASE).is_file():
            return cls(folder)
        if folder.is_file() or (folder.is_dir() and _foreign(folder)):
            raise LocationError(f"{folder} exists and is not a slice-os index: name a new folder.")
        return None

    @classmethod
    def create(cls, location: str, meta: IndexMeta, **options: Any) -> LocalBackend:
        _no_cluster(location, options)
        folder = Path(location).expanduser()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with FileLock(folder / LOCK, timeout=60):
                if not (folder / DATABASE).is_file():
                    create(folder, meta)
        except Timeout:
            raise in_use(folder) from None
        except (OSError, sqlite3.Error) as exc:
            raise LocationError(f"The index {folder} cannot be made: {exc}.") from exc
        return cls(folder)

    @contextmanager
    def _snapshot(self) -> Iterator[Database]:
        """Give a database in a read transaction: one state of the index for a whole search."""
        with whole_at_fork():
            with self._lock:
                if self._closed.is_set():
                    raise LocationError(f"The index {self._folder} was closed: open it again.")
                database = self._idle.pop() if self._idle else None
            if database is not None and is_outdated(database, self._folder):
                database.close()
                database = None
            if database is None:
                database = connect(self._folder)
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
                    self._idle.append(database)
                    if self._closed.is_set():
                        self._close_idle()

    def _in_snapshot(self, work: Callable[[Database], T]) -> T:
        """Run `work`, again if a merge has just replaced a segment it names."""
        for _ in range(RETRIES):
            with suppress(FileNotFoundError), self._snapshot() as database:
                return work(database)
        raise segment_missing(self._folder)

    def _map_segments(self, database: sqlite3.Connection) -> dict[int, Segment]:
        recorded, known = recorded_segments(database), self._segments
        try:
            mapped = {
                n: known.get(n) or Segment.open(segment_file(self._folder, n), one)
                for n, one in recorded.items()
            }
        except FileNotFoundError:
            raise  # replaced by a merge: the caller looks again
        except OSError as exc:  # too many open files, for one
            raise as_error(self._folder, exc) from exc
        self._segments = mapped
        return mapped

    def check_settings(self, settings: Mapping[str, Any]) -> None:
        _no_cluster(self.location, {"settings": settings})

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
            roots = load_roots(database) or {}
        return IndexStatus(
            self.location,
            "local",
            self.meta,
            documents,
            passages,
            words,
            _size(self._folder),
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

    def roots(self) -> dict[str, str] | None:
        with self._snapshot() as database:
            return load_roots(database)

    def sources(self) -> Iterator[tuple[str, str]]:
        with closing(connect(self._folder)) as database, reading(database, self._folder):
            yield from database.execute("SELECT id, source FROM documents ORDER BY key")

    def stored(self, documents: Sequence[str]) -> dict[str, StoredDocument]:
        found = {}
        with self._snapshot() as database:
            for document in documents:
                row = database.execute(
                    "SELECT key, hash FROM documents WHERE id = ?", (document,)
                ).fetchone()
                if row is not None:
                    query = "SELECT hash FROM passages WHERE document = ?"
                    hashes = Counter(h for (h,) in database.execute(query, row[:1]))
                    found[document] = StoredDocument(row[1], hashes)
        return found

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
        with self._own_state() as (database, segments):
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
        return self._in_snapshot(
            lambda database: candidates(database, self._map_segments(database), self._pool, queries)
        )

    def scan(
        self, query: MiningQuery, on_progress: Callable[[float], object] = lambda share: None
    ) -> Iterator[tuple[StoredPassage, list[int]]]:
        left = Event()

        def reached(segment: Segment) -> list[tuple[int, list[int]]]:
            def read(first: int, last: int) -> PassageBlock:
                if left.is_set():  # with thousands of phrases a segment takes seconds
                    raise CancelledError
                return segment.block(first, last)

            return list(scan_passages(segment.bounds, read, query.phrases))

        with self._own_state() as (database, segments), ExitStack() as stack:
            places = Places(segments)
            left_out = unseen(database, places, meeting_of(database), query.filters)
            # Threads of its own do not keep searches waiting.
            pool = _pool()
            stack.callback(pool.shutdown, cancel_futures=True)
            stack.callback(left.set)
            found = pool.map(reached, segments.values())
            done, words = 0, sum(len(segment.starts) for segment in segments.values())
            for (number, segment), passages in zip(segments.items(), found, strict=True):
                for ordinal, phrases in passages:
                    if not left_out[places.of([(number, ordinal)])]:
                        (stored,) = fetch(database, segments, [(number, ordinal)])
                        yield stored, phrases
                done += len(segment.starts)
                on_progress(done / words)

    @contextmanager
    def _own_state(self) -> Iterator[tuple[Database, dict[int, Segment]]]:
        """Give a database and its segments in one state of the index, for as long as it takes."""
        with closing(connect(self._folder)) as database, reading(database, self._folder):
            for _ in range(RETRIES):
                database.execute("BEGIN")
                try:
                    segments = self._map_segments(database)
                except FileNotFoundError:
                    database.execute("COMMIT")
                else:
                    yield database, segments
                    return
        raise segment_missing(self._folder)

    def writer(
        self,
        on_reject: Callable[[Reject], None] = lambda reject: None,
        former: Writer | None = None,
    ) -> LocalWriter:
        # A former one has seen nothing: while one writes, no other generation is made live.
        return LocalWriter(self._folder, None if not self._live else self.is_live)

    def is_live(self) -> bool:
        return live_number(self._root) == self._number

    def generations(self) -> list[Generation]:
        live, found = live_number(self._root), []
        for number in numbers(self._root):
            folder = folder_of(self._root, number)
            build = read_build(folder)
            with closing(connect(folder)) as database, reading(database, folder):
                meta = load_meta(database, folder)
                query = "SELECT count(*) FROM documents WHERE hash IS NOT NULL"
                (documents,) = database.execute(query).fetchone()
            state = "live" if number == live else build.get("state", "retired")
            made = datetime.fromtimestamp((folder / "segments").stat().st_ctime, tz=timezone.utc)
            found.append(
                Generation(
                    number, state, meta, {}, documents, _size(folder),
                    made.isoformat(timespec="seconds"), build,
                )
            )  # fmt: skip
        return found

    def generation(self, number: int) -> LocalBackend:
        return LocalBackend(self._root, number)

    def next_generation(self, meta: IndexMeta, settings: Mapping[str, Any]) -> LocalBackend:
        _no_cluster(self.location, {"settings": settings})
        number = max(numbers(self._root)) + 1
        folder = folder_of(self._root, number)
        with _mapped(self._root):
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(folder / BUILD, json.dumps(BEGUN))
            create(folder, meta)
        return LocalBackend(self._root, number)

    def note_build(self, build: Mapping[str, Any] | None, token: object = ...) -> bool:
        with _mapped(self._root), FileLock(self._folder / f"{BUILD}.lock"):
            if token is not ... and read_build(self._folder).get("token") != token:
                return False
            if build is None:
                (self._folder / BUILD).unlink(missing_ok=True)
            else:
                write_whole(self._folder / BUILD, json.dumps(build))
        return True

    def swap(self, number: int) -> None:
        if live_number(self._root) != self._number:  # writers are held off: nobody else moves it
            raise LocationError(
                f"Another generation of {self._root} was made live meanwhile: run this again."
            )
        with _mapped(self._root):
            make_live(self._root, number)

    def drop(self, number: int) -> None:
        drop(self._root, number)

    @contextmanager
    def hold(self, *, wait: bool = True) -> Iterator[None]:
        held = lock(self._folder, wait=wait)
        try:
            yield
        finally:
            held.release()

    def changes(self) -> object:
        return object()  # what a writer has done cannot be told; comparing takes little here

    def close(self) -> None:
        self._pool.shutdown(wait=False)
        with self._lock:
            self._closed.set()
            self._segments = {}
            self._close_idle()


def _close_all(databases: list[Database]) -> None:
    while databases:
        databases.pop().close()


@contextmanager
def _mapped(folder: Path) -> Iterator[None]:
    """Raise what errors of the disk mean."""
    try:
        yield
    except (OSError, sqlite3.Error) as exc:
        raise as_error(folder, exc) from exc


def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 1, "slice-os-scan")


def _no_cluster(location: str, options: Mapping[str, Any]) -> None:
    if any(options.values()):
        raise LocationError(
            f"{location} is a folder: leave out the {', '.join(options)} that are for a cluster."
        )


def _foreign(folder: Path) -> bool:
    """Tell whether a folder holds anything that a broken-off creation would not have left."""
    ours = ("segments", LOCK)
    return any(
        not file.name.startswith(DATABASE) and file.name not in ours for file in folder.iterdir()
    )


def _size(folder: Path) -> int:
    """Return the bytes of a generation; files may come and go meanwhile."""
    total = 0
    for file in (*folder.glob(f"{DATABASE}*"), *(folder / "segments").glob("*")):
        with suppress(FileNotFoundError):
            total += file.stat().st_size
    return total

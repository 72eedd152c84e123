"""Reading an embedded index. Readers see the last commit and are never blocked by the writer."""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

import numpy as np
from filelock import FileLock

from slice_os.backends.base import (
    Backend,
    Candidate,
    ClusterSettings,
    IndexMeta,
    IndexStatus,
    Retrieval,
    StoredDocument,
    StoredPassage,
)
from slice_os.backends.local.lexical import bm25, bm25_of
from slice_os.backends.local.scan import best_cosines, reaching
from slice_os.backends.local.schema import (
    DATABASE,
    as_error,
    connect,
    create,
    filter_clause,
    load_meta,
)
from slice_os.backends.local.segment import Segment
from slice_os.backends.local.tidy import segment_file
from slice_os.backends.local.writer import LOCK, LocalWriter
from slice_os.errors import IndexDamagedError, PlaceError
from slice_os.filters import Filter
from slice_os.fusion import get_fusion
from slice_os.records import Float32, Passage, Reject
from slice_os.spans import degree

T = TypeVar("T")
RETRIES = 10
_PASSAGE = (
    "SELECT d.id, p.number, p.start, p.end, p.text, p.title, d.metadata, p.segment, p.ordinal"
    " FROM passages p JOIN documents d ON d.key = p.document"
)


class LocalBackend(Backend):
    """An embedded index in a folder; see `Backend` for the contract. Threads may share it."""

    def __init__(self, folder: Path) -> None:
        """Open the index in `folder`, which exists."""
        self._folder = folder
        self.place = str(folder)
        self._database = connect(folder)
        self.meta: IndexMeta = load_meta(self._database, folder)
        self._lock = RLock()
        self._segments: dict[int, Segment] = {}
        self._pool = ThreadPoolExecutor(os.cpu_count() or 1, "slice-os-scan")

    @classmethod
    def open(cls, place: str) -> LocalBackend | None:
        folder = Path(place).expanduser()
        if (folder / DATABASE).is_file():
            return cls(folder)
        if folder.is_file() or (folder.is_dir() and _foreign(folder)):
            raise PlaceError(f"{folder} exists and is not a slice-os index: name a new folder.")
        return None

    @classmethod
    def create(
        cls, place: str, meta: IndexMeta, settings: ClusterSettings | None = None
    ) -> LocalBackend:
        folder = Path(place).expanduser()
        if settings:
            raise _no_cluster(place)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with FileLock(folder / LOCK, timeout=60):
                if not (folder / DATABASE).is_file():
                    create(folder, meta)
        except (OSError, sqlite3.Error) as exc:
            raise PlaceError(f"The index {folder} cannot be made: {exc}.") from exc
        return cls(folder)

    @contextmanager
    def _snapshot(self) -> Iterator[sqlite3.Connection]:
        """Give the database in a read transaction: one state of the index for a whole search."""
        with self._lock:
            try:
                self._database.execute("BEGIN")
                yield self._database
            except sqlite3.Error as exc:
                raise as_error(self._folder, exc) from exc
            finally:
                with suppress(sqlite3.Error):
                    self._database.execute("COMMIT")

    def _in_snapshot(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work`, again if a tidying writer has just replaced a segment it names."""
        for _ in range(RETRIES):
            with suppress(FileNotFoundError), self._snapshot() as database:
                return work(database)
        raise _segment_missing(self._folder)

    def _map_segments(self, database: sqlite3.Connection) -> dict[int, Segment]:
        numbers = [n for (n,) in database.execute("SELECT number FROM segments ORDER BY number")]
        known = self._segments
        try:
            mapped = {
                n: known.get(n) or Segment.open(segment_file(self._folder, n)) for n in numbers
            }
        except FileNotFoundError:
            raise  # replaced by a tidying writer: the caller looks again
        except OSError as exc:  # too many open files, for one
            raise as_error(self._folder, exc) from exc
        self._segments = mapped
        return mapped

    def check(self, settings: Mapping[str, Any]) -> None:
        raise _no_cluster(self.place)

    def word_count(self) -> int:
        return self.status().words

    def status(self) -> IndexStatus:
        with self._snapshot() as database:
            documents, incomplete, passages, words = database.execute(
                "SELECT (SELECT count(*) FROM documents WHERE hash IS NOT NULL),"
                " (SELECT count(*) FROM documents WHERE hash IS NULL),"
                " count(*), ifnull(sum(words), 0) FROM passages WHERE NOT pending"
            ).fetchone()
            segments, stored = database.execute(
                "SELECT count(*), ifnull(sum(words), 0) FROM segments"
            ).fetchone()
        return IndexStatus(
            self.place,
            "local",
            self.meta,
            documents,
            passages,
            words,
            _size(self._folder),
            {"incomplete_documents": incomplete, "segments": segments, "stored_words": stored},
        )

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
        condition, parameters = filter_clause(filters)
        with self._snapshot() as database:
            query = f"SELECT d.id FROM documents d WHERE {condition} ORDER BY d.key"
            return [name for (name,) in database.execute(query, parameters)]

    def retrieve(self, retrieval: Retrieval) -> list[Candidate]:
        return self._in_snapshot(lambda database: self._retrieve(database, retrieval))

    def _retrieve(self, database: sqlite3.Connection, wanted: Retrieval) -> list[Candidate]:
        depth = max(wanted.depth, wanted.offset + wanted.size)
        dense: dict[tuple[int, int], float] = {}
        lexical: dict[tuple[int, int], float] = {}
        degrees: dict[int, Float32] = {}
        if wanted.mode != "dense":
            for _, segment, ordinal, score in bm25(database, wanted.text, depth, wanted.filters):
                lexical[segment, ordinal] = score
        if wanted.mode != "lexical":
            degrees = self._degrees(database, wanted)
            dense = _top(degrees, depth)
        if wanted.mode == "hybrid":
            fusion, weight = get_fusion(wanted.fusion, wanted.weight)
            if fusion.whole_corpus:
                if len(lexical) == depth:  # cut off: the best by degree may have a BM25 score too
                    missing = [ref for ref in dense if ref not in lexical]
                    lexical |= bm25_of(database, wanted.text, missing)
                dense |= {(s, o): float(degrees[s][o]) for s, o in lexical}
            scores: Mapping[tuple[int, int], float] = fusion.fuse(dense, lexical, weight)
        else:
            scores = dense or lexical
        ranked = sorted(scores, key=lambda ref: (-scores[ref], ref))
        page = ranked[wanted.offset : wanted.offset + wanted.size]
        segments = self._map_segments(database)
        return [Candidate(scores[ref], self._fetch(database, segments, *ref)) for ref in page]

    def _degrees(self, database: sqlite3.Connection, wanted: Retrieval) -> dict[int, Float32]:
        """Return every passage's degree by segment and ordinal; -1 where it may not be seen."""
        segments = self._map_segments(database)
        cosines = self._pool.map(
            lambda s: best_cosines(s, wanted.vector, wanted.lengths), segments.values()
        )
        degrees = {n: degree(c) for n, c in zip(segments, cosines, strict=True)}
        for number, ordinals in self._unseen(database, wanted.filters).items():
            degrees[number][ordinals] = -1
        return degrees

    def _unseen(
        self, database: sqlite3.Connection, filters: Sequence[Filter]
    ) -> dict[int, list[int]]:
        """Return the ordinals, by segment, that are hidden or that a filter excludes."""
        query = "SELECT segment, ordinal FROM hidden"
        parameters: list[str] = []
        if filters:
            condition, parameters = filter_clause(filters)
            query += (
                " UNION ALL SELECT segment, ordinal FROM passages WHERE document IN"
                f" (SELECT key FROM documents d WHERE NOT ({condition}))"
            )
        unseen: dict[int, list[int]] = {}
        for segment, ordinal in database.execute(query, parameters):
            unseen.setdefault(segment, []).append(ordinal)
        return unseen

    @staticmethod
    def _fetch(
        database: sqlite3.Connection, segments: Mapping[int, Segment], segment: int, ordinal: int
    ) -> StoredPassage:
        row = database.execute(
            f"{_PASSAGE} WHERE p.segment = ? AND p.ordinal = ?", (segment, ordinal)
        ).fetchone()
        words, norms = segments[segment].words(ordinal)
        return StoredPassage(Passage(*row[:6]), json.loads(row[6]), words, norms)

    def scan(
        self,
        vectors: Float32,
        lengths: Sequence[range],
        cosines: Float32,
        filters: Sequence[Filter] = (),
        on_words: Callable[[int], None] = lambda words: None,
        exact: bool = False,
    ) -> Iterator[tuple[StoredPassage, list[int]]]:
        # A connection of its own holds one state of the index for as long as the scan lasts.
        try:
            with closing(connect(self._folder)) as database:
                segments, unseen = self._plan_scan(database, filters)
                for number, segment in segments.items():
                    excluded = set(unseen.get(number, ()))
                    for ordinal, phrases in reaching(segment, vectors, lengths, cosines):
                        if ordinal not in excluded:
                            yield self._fetch(database, segments, number, ordinal), phrases
                    on_words(len(segment.starts))
        except sqlite3.Error as exc:
            raise as_error(self._folder, exc) from exc

    def _plan_scan(
        self, database: sqlite3.Connection, filters: Sequence[Filter]
    ) -> tuple[dict[int, Segment], dict[int, list[int]]]:
        for _ in range(RETRIES):
            database.execute("BEGIN")
            with suppress(FileNotFoundError):
                return self._map_segments(database), self._unseen(database, filters)
            database.execute("COMMIT")
        raise _segment_missing(self._folder)

    def writer(self, on_reject: Callable[[Reject], None] = lambda reject: None) -> LocalWriter:
        return LocalWriter(self._folder)

    def close(self) -> None:
        self._pool.shutdown(wait=False)
        self._segments.clear()
        self._database.close()


def _no_cluster(place: str) -> PlaceError:
    return PlaceError(f"{place} is a folder: leave out the settings that are for a cluster.")


def _segment_missing(folder: Path) -> IndexDamagedError:
    return IndexDamagedError(
        f"The index {folder} misses a segment file: delete the folder and index again."
    )


def _foreign(folder: Path) -> bool:
    """Tell whether a folder holds anything that a broken-off creation would not have left."""
    ours = ("segments", LOCK)
    return any(
        not file.name.startswith(DATABASE) and file.name not in ours for file in folder.iterdir()
    )


def _size(folder: Path) -> int:
    """Return the bytes of an index; files may come and go meanwhile."""
    total = 0
    for file in folder.rglob("*"):
        with suppress(FileNotFoundError):
            total += file.stat().st_size if file.is_file() else 0
    return total


def _top(degrees: dict[int, Float32], depth: int) -> dict[tuple[int, int], float]:
    """Return the `depth` highest degrees by (segment, ordinal)."""
    if not degrees:
        return {}
    numbers = np.repeat(list(degrees), [len(d) for d in degrees.values()])
    ordinals = np.concatenate([np.arange(len(d)) for d in degrees.values()])
    values = np.concatenate(list(degrees.values()))
    if len(values) > depth:
        best = np.argpartition(-values, depth - 1)[:depth]
        numbers, ordinals, values = numbers[best], ordinals[best], values[best]
    seen = values >= 0
    return {
        (int(n), int(o)): float(v)
        for n, o, v in zip(numbers[seen], ordinals[seen], values[seen], strict=True)
    }

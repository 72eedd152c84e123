"""Merging small segments, rewriting those with many deleted words, removing orphans of a crash."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from slice_os.spans import PackedPassage
from slice_os.storage.local.database import (
    DATABASE,
    next_segment,
    record_segment,
    recorded_segments,
    segment_missing,
)
from slice_os.storage.local.segments import Recorded, Segment, write_segment

MANY_SEGMENTS = 8
"""So many segments less than half full are merged into full ones."""
DELETED_RATIO = 0.3
"""Segments are rewritten once this share of all stored words is hidden."""


def segment_file(folder: Path, number: int) -> Path:
    """Return where segment `number` lies."""
    return folder / "segments" / f"{number:08d}.slice"


def remove_orphans(database: sqlite3.Connection, folder: Path) -> None:
    """Remove what was broken off: segments that no committed transaction names, a new database.

    For the writer alone to do.
    """
    _unlink(folder / f"{DATABASE}.new")
    named = {segment_file(folder, number) for number in recorded_segments(database)}
    files = set((folder / "segments").glob("*.slice"))
    for file in files - named:
        _unlink(file)
    if named - files:
        raise segment_missing(folder)


def _unlink(file: Path) -> None:
    with suppress(OSError):  # Windows keeps a file that a reader maps; a later writer removes it
        file.unlink()


def merge_segments(database: sqlite3.Connection, folder: Path, segment_words: int) -> None:
    """Merge small segments and rewrite those with many deleted words; ends the open transaction."""
    old = _to_merge(database, segment_words)
    rewrite(database, folder, old, _survivors(database, folder, old), segment_words)


def rewrite(
    database: sqlite3.Connection,
    folder: Path,
    old: list[int],
    passages: Iterable[tuple[int, int, int, PackedPassage]],
    segment_words: int,
) -> None:
    """Replace segments by new ones, of their `passages`: (key, segment, ordinal, vectors).

    It ends the open transaction; what the new segments hold instead is then committed.
    """
    next_number = next_segment(database)
    batch: list[PackedPassage] = []
    rows: list[tuple[int, int, int]] = []
    words = 0

    def flush() -> None:
        nonlocal next_number, words
        written = write_segment(segment_file(folder, next_number), batch)
        record_segment(database, Recorded(next_number, len(batch), words, *written))
        for ordinal, (key, segment, former) in enumerate(rows):
            place = (next_number, ordinal)
            database.execute(
                "UPDATE passages SET segment = ?, ordinal = ? WHERE key = ?", (*place, key)
            )
            database.execute(
                "UPDATE OR REPLACE hidden SET segment = ?, ordinal = ?"
                " WHERE segment = ? AND ordinal = ?",
                (*place, segment, former),
            )
        next_number += 1
        words = 0
        batch.clear()
        rows.clear()

    for key, segment, ordinal, packed in passages:
        rows.append((key, segment, ordinal))
        batch.append(packed)
        words += len(packed)
        if words >= segment_words:
            flush()
    if batch:
        flush()
    for number in old:
        database.execute("DELETE FROM hidden WHERE segment = ?", (number,))
        database.execute("DELETE FROM segments WHERE number = ?", (number,))
    database.execute("COMMIT")
    for number in old:
        _unlink(segment_file(folder, number))


def _to_merge(database: sqlite3.Connection, segment_words: int) -> list[int]:
    """Return the segments to rewrite: many small ones, or those with many deleted words."""
    sizes = database.execute(
        "SELECT number, words, (SELECT total(h.words) FROM hidden h WHERE h.segment = number"
        " AND NOT EXISTS (SELECT 1 FROM passages p WHERE p.segment = h.segment"
        " AND p.ordinal = h.ordinal)) FROM segments ORDER BY number"
    ).fetchall()
    small = [number for number, words, deleted in sizes if words - deleted < segment_words / 2]
    chosen = set(small) if len(small) >= MANY_SEGMENTS else set()
    if sum(deleted for *_, deleted in sizes) > DELETED_RATIO * sum(words for _, words, _ in sizes):
        chosen |= {number for number, words, deleted in sizes if deleted > DELETED_RATIO * words}
    return [number for number, *_ in sizes if number in chosen]


def _survivors(
    database: sqlite3.Connection, folder: Path, segments: list[int]
) -> Iterator[tuple[int, int, int, PackedPassage]]:
    recorded = recorded_segments(database)
    for number in segments:
        segment = Segment.open(segment_file(folder, number), recorded[number])
        for key, ordinal in database.execute(
            "SELECT key, ordinal FROM passages WHERE segment = ? ORDER BY ordinal", (number,)
        ).fetchall():
            yield key, number, ordinal, segment.passage(ordinal)

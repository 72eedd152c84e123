"""What of an embedded index is damaged, and encoding anew what a lost segment held."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from slice_os.backends.local.compaction import rewrite, segment_file
from slice_os.backends.local.schema import (
    as_error,
    connect,
    load_meta,
    reading,
    recorded_segments,
)
from slice_os.backends.local.segment import Recorded, Segment, is_intact
from slice_os.backends.local.writer import SEGMENT_WORDS, lock
from slice_os.errors import IndexDamagedError
from slice_os.records import Passage, Words
from slice_os.spans import PackedPassage

# With the characters that it shares with its neighbours.
_PASSAGE = """
    d.id, p.number, p.start, p."end", p.text, p.title,
    ifnull((SELECT max(0, b."end" - p.start) FROM passages b WHERE b.document = p.document
        AND b.number = p.number - 1 AND b.pending = p.pending), 0),
    ifnull((SELECT max(0, p."end" - a.start) FROM passages a WHERE a.document = p.document
        AND a.number = p.number + 1 AND a.pending = p.pending), 0)
    FROM passages p JOIN documents d ON d.key = p.document
"""
Encode = Callable[[Iterable[str]], Iterator[Words]]


@dataclass(slots=True)
class Condition:
    """What an examination found.

    Attributes:
        segments: How many there are.
        unchecked: How many of them were written before segments had checksums.
        damaged: Segments that are gone or not what was written, by number, and why.
        altered: Documents with a passage whose text is not what was indexed.
        database: What SQLite finds wrong with the database; empty where that is nothing.
    """

    segments: int = 0
    unchecked: int = 0
    damaged: dict[int, str] = field(default_factory=dict)
    altered: list[str] = field(default_factory=list)
    database: str = ""


def examine(folder: Path, *, deep: bool = False) -> Condition:
    """Open every segment of an index and, if `deep`, read all of it, its database too."""
    found = Condition()
    with closing(connect(folder)) as database, reading(database, folder):
        recorded = recorded_segments(database)
        for number, one in recorded.items():
            if why := _damage(database, segment_file(folder, number), one, deep):
                found.damaged[number] = why
        if deep:
            found.altered = _altered(database)
            said = [line for (line,) in database.execute("PRAGMA integrity_check(3)")]
            found.database = "" if said == ["ok"] else "; ".join(said)
        left = recorded_segments(database)  # a writer may have merged some meanwhile
    found.segments = len(left)
    found.unchecked = sum(one.checksum is None for one in left.values())
    found.damaged = {number: why for number, why in found.damaged.items() if number in left}
    return found


def _damage(database: sqlite3.Connection, file: Path, recorded: Recorded, deep: bool) -> str:
    """Return what is wrong with a segment, nothing if nothing is."""
    try:
        segment = Segment.open(file, recorded)
        whole = not deep or recorded.checksum is None or is_intact(file, recorded)
    except FileNotFoundError:
        return "it is gone"
    except OSError as exc:
        return exc.strerror or str(exc)
    except IndexDamagedError as exc:
        return str(exc.__cause__)
    if not whole:
        return "its checksum is another"
    if deep and recorded.checksum is None:
        # Made before passages shared words, so that each counts all that it has.
        query = "SELECT ordinal, words FROM passages WHERE segment = ?"
        held = np.array(database.execute(query, recorded[:1]).fetchall()).reshape(-1, 2)
        if (np.diff(segment.bounds)[held[:, 0]] != held[:, 1]).any():
            return "it is another one"
    return ""


def _altered(database: sqlite3.Connection) -> list[str]:
    query = f"SELECT d.id, p.hash, {_PASSAGE} ORDER BY d.key"
    wrong = (name for name, known, *said in database.execute(query) if Passage(*said).hash != known)
    return list(dict.fromkeys(wrong))


def repair(folder: Path, segments: Iterable[int], encode: Encode) -> tuple[int, int]:
    """Put new segments, of the texts that the database has, in the place of damaged ones.

    All else stays as it is, and readers are not disturbed.

    Returns:
        How many passages were encoded, and their words.

    Raises:
        IndexLockedError: somebody is writing to the index.
        IndexDamagedError: a text of the database holds no word.
    """
    held = lock(folder)
    try:
        with closing(connect(folder)) as database:
            return _repair(database, folder, list(segments), encode)
    except (OSError, sqlite3.Error) as exc:
        raise as_error(folder, exc) from exc
    finally:
        held.release()


def _repair(
    database: sqlite3.Connection, folder: Path, segments: list[int], encode: Encode
) -> tuple[int, int]:
    max_words = load_meta(database, folder).max_words
    database.execute("BEGIN IMMEDIATE")
    here = recorded_segments(database)
    lost = [number for number in segments if number in here]
    passages = words = 0

    def encoded() -> Iterator[tuple[int, int, int, PackedPassage]]:
        nonlocal passages, words
        for number in lost:
            query = f"SELECT p.key, p.ordinal, {_PASSAGE} WHERE p.segment = ? ORDER BY p.ordinal"
            rows = database.execute(query, (number,)).fetchall()
            said = [Passage(*passage) for _, _, *passage in rows]
            found = encode(one.text for one in said)
            for (key, ordinal, *_), one, own in zip(rows, said, found, strict=True):
                if not len(own):
                    raise IndexDamagedError(
                        f"A passage of {folder} holds no word ({one.text[:40]!r}): delete the "
                        "folder and index again."
                    )
                passages, words = passages + 1, words + len(own)
                yield key, number, ordinal, PackedPassage.pack(own, max_words, one)

    rewrite(database, folder, lost, encoded(), SEGMENT_WORDS)
    return passages, words

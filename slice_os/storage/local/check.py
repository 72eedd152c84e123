"""What of an embedded index is damaged."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from slice_os.errors import IndexDamagedError, LocationError
from slice_os.storage.local.compaction import segment_file
from slice_os.storage.local.database import (
    add_normal_form,
    connect,
    document_digest,
    is_full,
    meta_digest,
    reading,
    recorded_segments,
)
from slice_os.storage.local.filter_bits import make_tokens
from slice_os.storage.local.segments import Recorded, Segment, is_intact
from slice_os.text import text_length
from slice_os.types import OnProgress, Passage

PASSAGE = """
    d.id, p.number, p.start, p."end", p.text, p.title,
    ifnull((SELECT max(0, b."end" - p.start) FROM passages b WHERE b.document = p.document
        AND b.number = p.number - 1 AND b.pending = p.pending), 0),
    ifnull((SELECT max(0, p."end" - a.start) FROM passages a WHERE a.document = p.document
        AND a.number = p.number + 1 AND a.pending = p.pending), 0)
    FROM passages p JOIN documents d ON d.key = p.document
"""
"""The columns of a `Passage`, with how many characters it shares with its neighbours."""
_SPACES = np.array([9, 10, 13, 32], np.uint32)
_SOUND = {
    "passages of no document": (
        "SELECT count(*) FROM passages WHERE document NOT IN (SELECT key FROM documents)"
    ),
    "passages of no segment": (
        "SELECT count(*) FROM passages WHERE segment NOT IN (SELECT number FROM segments)"
    ),
    "passages that are hidden and should not be, or should be and are not": (
        "SELECT count(*) FROM passages p WHERE (pending <> 0) <> EXISTS (SELECT 1 FROM hidden h"
        " WHERE h.segment = p.segment AND h.ordinal = p.ordinal)"
    ),
    "segments with other passages than the texts": (
        "SELECT count(*) FROM segments s WHERE passages <> (SELECT count(*) FROM (SELECT ordinal"
        " FROM passages WHERE segment = s.number UNION SELECT ordinal FROM hidden"
        " WHERE segment = s.number))"
    ),
    "segments with a number yet to come": (
        "SELECT count(*) FROM segments WHERE number >"
        " (SELECT ifnull(max(seq), 0) FROM sqlite_sequence WHERE name = 'segments')"
    ),
    "documents of a run yet to come": (
        "SELECT count(*) FROM documents WHERE run >"
        " (SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'run')"
    ),
}
"""What is not to be found in a database, and how to count it."""


@dataclass(slots=True)
class Condition:
    """What an examination found.

    Attributes:
        segments: How many there are.
        damaged: Segments that are gone or not what was written, by number, and why.
        altered: Documents of which something is not what was indexed.
        postings: Whether the words' postings are those of the texts, and what filters look up is
            the documents' metadata.
        database: What else is wrong with the database; empty where that is nothing.
    """

    segments: int = 0
    damaged: dict[int, str] = field(default_factory=dict)
    altered: list[str] = field(default_factory=list)
    postings: bool = True
    database: str = ""

    @property
    def is_sound(self) -> bool:
        """Whether all that was looked at is what was written."""
        return not (self.damaged or self.altered or self.database) and self.postings


def examine(
    folder: Path, *, deep: bool = False, on_progress: OnProgress = lambda share: None
) -> Condition:
    """Open every segment of an index and, if `deep`, read all of it, its database too.

    One state of it, whoever writes meanwhile. `on_progress` is told what share of the words has
    been read.
    """
    condition = Condition()
    with closing(connect(folder)) as live, reading(live, folder), ExitStack() as stack:
        state: sqlite3.Connection = stack.enter_context(closing(_copy(live))) if deep else live
        try:
            recorded = recorded_segments(state)
            words, done = sum(segment.words for segment in recorded.values()), 0
            for number, segment in recorded.items():
                if why := _damage(state, segment_file(folder, number), segment, deep):
                    condition.damaged[number] = why
                done += segment.words
                on_progress(done / words)
            if deep:
                _examine_database(state, condition)
            left = recorded_segments(live)  # a writer may have merged some meanwhile
        except (sqlite3.Error, AttributeError, TypeError, ValueError) as exc:
            if not deep or is_full(folder, exc):
                raise
            damage = str(exc) if isinstance(exc, sqlite3.Error) else "a row holds what no row can"
            condition.database, left = condition.database or damage, {}
    condition.segments = len(left)
    if not condition.database:
        condition.damaged = {
            number: why for number, why in condition.damaged.items() if number in left
        }
    return condition


def _copy(database: sqlite3.Connection) -> sqlite3.Connection:
    """Return a private copy of the database: in one state, and for FTS5 to write to.

    Text of it that is no UTF-8 any more is read as another text.
    """
    copy = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    copy.text_factory = partial(str, encoding="utf-8", errors="backslashreplace")
    add_normal_form(copy)
    try:
        database.backup(copy)
    except sqlite3.OperationalError as exc:
        copy.close()
        if "full" in str(exc):
            raise LocationError(
                "The folder for temporary files has no room for a copy of the database: name "
                "another in TMPDIR."
            ) from exc
        raise
    return copy


def _damage(database: sqlite3.Connection, file: Path, recorded: Recorded, deep: bool) -> str:
    """Return what is wrong with a segment, nothing if nothing is."""
    try:
        segment = Segment.open(file, recorded)
        whole = not deep or is_intact(file, recorded)
    except FileNotFoundError:
        return "it is gone"
    except OSError as exc:
        return exc.strerror or str(exc)
    except IndexDamagedError as exc:
        return str(exc.__cause__)
    if not whole:
        return "its checksum is another"
    return _strangeness(database, segment, recorded) if deep else ""


def _strangeness(database: sqlite3.Connection, segment: Segment, recorded: Recorded) -> str:
    """Return how the words of a whole segment are not those of the texts that it is said to be of.

    Every word begins and ends within its text, and not with a space.
    """
    query = "SELECT ordinal, text, words FROM passages WHERE segment = ?"
    for ordinal, text, counted in database.execute(query, recorded[:1]):
        if not 0 <= ordinal < recorded.passages:
            return "it is another one"
        starts, ends = segment.offsets(ordinal)
        few = len(starts) < counted
        if few or (starts >= ends).any() or (np.diff(starts) < 0).any() or ends.max() > len(text):
            return "it is another one"
        codes = np.frombuffer(text.encode("utf-32-le"), np.uint32)
        if np.isin(codes[np.concatenate([starts, ends - 1])], _SPACES).any():
            return "it is another one"
    return ""


def _examine_database(database: sqlite3.Connection, condition: Condition) -> None:
    """Look at all of a database that nobody else uses."""
    lines = database.execute("PRAGMA integrity_check(3)")
    messages = [" ".join(line.split()) for (line,) in lines]
    wrong = [line for line in messages if line != "ok" and "inverted index" not in line]
    wrong += [
        f"{number} {what}"
        for what, query in _SOUND.items()
        if (number := database.execute(query).fetchone()[0])
    ]
    noted = database.execute("SELECT value FROM meta WHERE name = 'digest'").fetchone()
    if noted is None or noted[0] != meta_digest(database):
        wrong.append("what it says of itself or its roots has changed")
    condition.database = "; ".join(wrong)
    condition.altered = _altered(database)
    condition.postings = _has_its_tokens(database)
    # Passages of documents that are not complete have no postings.
    database.execute("DELETE FROM passages WHERE pending")
    try:
        database.execute("INSERT INTO postings (postings, rank) VALUES ('integrity-check', 1)")
    except sqlite3.DatabaseError as exc:
        if "full" in str(exc):
            raise
        condition.postings = False


def _has_its_tokens(database: sqlite3.Connection) -> bool:
    """Tell whether filters look up what the metadata of the documents is."""
    try:
        database.execute("CREATE TEMP TABLE noted AS SELECT * FROM tokens")
        make_tokens(database)
        query = "SELECT * FROM (SELECT * FROM {0} EXCEPT SELECT * FROM {1}) LIMIT 1"
        tables = [("noted", "tokens"), ("tokens", "noted")]
        return not any(database.execute(query.format(*two)).fetchone() for two in tables)
    except ValueError:  # metadata that is no JSON any more: its document is altered
        return False


def _altered(database: sqlite3.Connection) -> list[str]:
    """Return the documents that are not what was indexed."""
    query = f'SELECT d.id, p.hash, p."end" - p.start, p.length, {PASSAGE} ORDER BY d.key'
    altered = dict.fromkeys(
        name
        for name, known, characters, words, *passage_row in database.execute(query)
        if (passage := Passage(*passage_row)).hash != known
        or characters != len(passage.text)
        or words != text_length(passage.title, passage.text)
    )
    query = "SELECT key, id, digest FROM documents WHERE hash IS NOT NULL ORDER BY key"
    for key, name, digest in database.execute(query):
        if digest != document_digest(database, key):
            altered[name] = None
    return list(altered)

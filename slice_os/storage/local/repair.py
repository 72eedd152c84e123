"""Encoding anew what a lost or damaged segment of an embedded index held."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path

from slice_os.encoders.phrase_head import PhraseHead
from slice_os.errors import IndexDamagedError
from slice_os.spans import PackedPassage
from slice_os.storage.local.check import PASSAGE
from slice_os.storage.local.compaction import rewrite
from slice_os.storage.local.database import connect, load_meta, mapped_errors, recorded_segments
from slice_os.storage.local.filter_bits import make_tokens
from slice_os.storage.local.write import SEGMENT_WORDS, lock
from slice_os.types import Passage, Words

_POSTINGS = (
    "INSERT INTO postings (postings) VALUES ('delete-all')",
    "INSERT INTO postings (rowid, title, text)"
    " SELECT key, normal_form(title), normal_form(text) FROM passages WHERE NOT pending",
)
Encode = Callable[[Iterable[str]], Iterator[Words]]


def repair(
    folder: Path,
    segments: Iterable[int],
    encode: Encode,
    head: PhraseHead | None,
    *,
    postings: bool = False,
) -> tuple[int, int]:
    """Put new segments, of the texts that the database has, in the place of damaged ones.

    All else stays as it is, and readers are not disturbed. With `postings` those of the words, and
    what filters look up, are made anew, too.

    Returns:
        How many passages were encoded, and their words.

    Raises:
        IndexLockedError: somebody is writing to the index.
        IndexDamagedError: a text of the database holds no word.
    """
    with lock(folder), mapped_errors(folder), closing(connect(folder)) as database:
        encoded = _repair(database, folder, list(segments), encode, head)
        if postings:
            database.execute("BEGIN IMMEDIATE")
            for statement in _POSTINGS:
                database.execute(statement)
            make_tokens(database)
            database.execute("COMMIT")
        return encoded


def _repair(
    database: sqlite3.Connection,
    folder: Path,
    segments: list[int],
    encode: Encode,
    head: PhraseHead | None,
) -> tuple[int, int]:
    max_words = load_meta(database, folder).max_words
    database.execute("BEGIN IMMEDIATE")
    here = recorded_segments(database)
    lost = [number for number in segments if number in here]
    passages = words = 0

    def encoded() -> Iterator[tuple[int, int, int, PackedPassage]]:
        nonlocal passages, words
        for number in lost:
            query = f"SELECT p.key, p.ordinal, {PASSAGE} WHERE p.segment = ? ORDER BY p.ordinal"
            rows = database.execute(query, (number,)).fetchall()
            stored = [Passage(*passage) for _, _, *passage in rows]
            encoded_words = encode(passage.text for passage in stored)
            for (key, ordinal, *_), passage, own in zip(rows, stored, encoded_words, strict=True):
                if not len(own):
                    raise IndexDamagedError(
                        f"A passage of {folder} holds no word ({passage.text[:40]!r}): delete the "
                        "folder and index again."
                    )
                passages, words = passages + 1, words + len(own)
                yield key, number, ordinal, PackedPassage.pack(own, max_words, passage, head)

    rewrite(database, folder, lost, encoded(), SEGMENT_WORDS)
    return passages, words

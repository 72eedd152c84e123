"""What is wrong with an embedded index, and its repair."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

from slice_os.encoders import encoder_info, load_encoder
from slice_os.encoders.phrase_head import PhraseHead
from slice_os.errors import IndexDamagedError
from slice_os.spans import PackedPassage
from slice_os.storage.contract import IndexStatus
from slice_os.storage.findings import Diagnosis, nothing_at
from slice_os.storage.local import LocalBackend
from slice_os.storage.local.check import PASSAGE, Condition, examine
from slice_os.storage.local.compaction import rewrite
from slice_os.storage.local.database import connect, load_meta, mapped_errors, recorded_segments
from slice_os.storage.local.filter_bits import make_tokens
from slice_os.storage.local.generations import live_folder
from slice_os.storage.local.write import SEGMENT_WORDS, lock
from slice_os.types import OnProgress, Passage, Words

DELETED_SHARE = 0.3
"""Of the stored words, the share of deleted ones that is worth a word."""
_POSTINGS = (
    "INSERT INTO postings (postings) VALUES ('delete-all')",
    "INSERT INTO postings (rowid, title, text)"
    " SELECT key, normal_form(title), normal_form(text) FROM passages WHERE NOT pending",
)
Encode = Callable[[Iterable[str]], Iterator[Words]]


def diagnose(
    location: str,
    encoder: str | Path | None,
    *,
    deep: bool = False,
    repair: bool = False,
    **options: Any,
) -> Diagnosis:
    """Examine an index; see `slice_os.doctor`."""
    diagnosis, info = Diagnosis({"index": location, "backend": "local"}), encoder_info(encoder)
    folder, deep = live_folder(Path(location).expanduser()), deep or repair
    try:
        status = _status(location, options)
        if status is None:
            diagnosis.add_error(nothing_at(location))
            return diagnosis
        condition = examine(folder, deep=deep)
    except IndexDamagedError as exc:
        diagnosis.add_error(exc)
        return diagnosis
    stored, words = status.details["stored_words"], status.words
    diagnosis.facts |= {
        "documents": status.documents,
        "passages": status.passages,
        "words": words,
        "bytes": status.bytes,
        "segments": status.details["segments"],
    }
    diagnosis.compare_encoder(status.meta, info)
    diagnosis.count_incomplete(status.documents, status.details["incomplete_documents"])
    fits = status.meta.weights_hash == info.weights_hash
    if repair and _repair(diagnosis, folder, condition, encoder, fits):
        condition = examine(folder, deep=True)
    _add_condition(diagnosis, folder, condition, deep)
    if stored and (stored - words) / stored > DELETED_SHARE:
        diagnosis.add(
            "notice",
            f"{stored - words:,} of {stored:,} stored words are deleted",
            "the next 'slice-os index' merges them away when it ends.",
        )
    return diagnosis


def check(
    location: str,
    *,
    sample: int | None,
    on_progress: OnProgress,
    **options: Any,
) -> Diagnosis:
    """Compare all that an index holds with its hashes; see `slice_os.check`."""
    diagnosis = Diagnosis({"index": location})
    try:
        status = _status(location, options)
        if status is None:
            raise nothing_at(location)
        diagnosis.facts |= {"documents": status.documents, "passages": status.passages}
        folder = live_folder(Path(location).expanduser())
        condition = examine(folder, deep=True, on_progress=on_progress)
    except IndexDamagedError as exc:
        diagnosis.add_error(exc)
    else:
        diagnosis.facts["segments"] = condition.segments
        _add_condition(diagnosis, folder, condition, deep=True)
    return diagnosis


def _status(location: str, options: dict[str, Any]) -> IndexStatus | None:
    backend = LocalBackend.open(location, **options)
    if backend is None:
        return None
    with closing(backend):
        return backend.status()


def _repair(
    diagnosis: Diagnosis,
    folder: Path,
    condition: Condition,
    encoder: str | Path | None,
    fits: bool,
) -> bool:
    """Encode anew what damaged segments held, if the encoder fits; False: nothing to repair."""
    lost = condition.damaged if fits else {}
    postings = not condition.postings and not condition.database
    if not (lost or postings):
        return False
    with load_encoder(encoder) if lost else nullcontext() as loaded:
        encode = loaded.encode_words if loaded else lambda texts: iter(())
        head = loaded.head if loaded else None
        passages, words = repair_folder(folder, lost, encode, head, postings=postings)
    if lost:
        diagnosis.add("ok", f"Repaired: {passages:,} passages ({words:,} words) were encoded anew.")
    if postings:
        diagnosis.add("ok", "Repaired: the postings of BM25 and of filters were made anew.")
    return True


def _add_condition(diagnosis: Diagnosis, folder: Path, condition: Condition, deep: bool) -> None:
    """Add what of a folder's files is not what was written."""
    if condition.database:
        diagnosis.add(
            "error",
            f"The database is damaged ({condition.database})",
            "restore a backup ('slice-os restore'), or index to a new location.",
        )
    if condition.altered:
        names = ", ".join(map(str, condition.altered[:3]))
        diagnosis.add(
            "error",
            "Texts, offsets or metadata are not what was indexed, of documents: "
            f"{len(condition.altered):,} ({names})",
            "delete these with 'slice-os delete' and index them again.",
        )
    if condition.damaged:
        number, why = next(iter(condition.damaged.items()))
        diagnosis.add(
            "error",
            f"Damaged segments: {len(condition.damaged):,} of {condition.segments:,} "
            f"({number}: {why})",
            f"'slice-os doctor --repair --index {folder}' encodes what they held anew.",
        )
    if not condition.postings:
        diagnosis.add(
            "error",
            "The postings of BM25 or of filters are not those of the documents",
            f"'slice-os doctor --repair --index {folder}' makes them anew.",
        )
    if condition.is_sound and condition.segments:
        read = "All files of the index are" if deep else "Sizes and identities of all files are"
        diagnosis.add(
            "ok", f"{read} what was written{'' if deep else ' (--deep reads the files)'}."
        )


def repair_folder(
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
        encoded = _encode_lost(database, folder, list(segments), encode, head)
        if postings:
            database.execute("BEGIN IMMEDIATE")
            for statement in _POSTINGS:
                database.execute(statement)
            make_tokens(database)
            database.execute("COMMIT")
        return encoded


def _encode_lost(
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
            for (key, ordinal, *_), passage, fresh in zip(rows, stored, encoded_words, strict=True):
                if not len(fresh):
                    raise IndexDamagedError(
                        f"A passage of {folder} holds no word ({passage.text[:40]!r}): delete the "
                        "folder and index again."
                    )
                passages, words = passages + 1, words + len(fresh)
                yield (
                    key,
                    number,
                    ordinal,
                    PackedPassage.pack(fresh, max_words, passage, head),
                )

    rewrite(database, folder, lost, encoded(), SEGMENT_WORDS)
    return passages, words

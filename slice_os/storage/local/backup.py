"""Copying an index folder that is in use, and making an index of a copy.

A copy is an index folder: it opens, searches and checks as it is, and a second one needs only the
segments that are new. It holds one state of the index: the database is copied in one read
transaction, and the copy names the segments, files that never change. It is filled under another
name, checked, and renamed at the end.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from slice_os.errors import IndexDamagedError, LocationError
from slice_os.files import sync_folder
from slice_os.storage.contract import IndexMeta
from slice_os.storage.local.check import examine
from slice_os.storage.local.compaction import remove_orphans, segment_file
from slice_os.storage.local.database import (
    DATABASE,
    connect,
    load_meta,
    make_folder,
    mapped_errors,
    reading,
    recorded_segments,
    segment_missing,
)
from slice_os.storage.local.generations import (
    drop,
    folder_of,
    live_folder,
    live_number,
    make_live,
    numbers,
)
from slice_os.storage.local.segments import is_intact
from slice_os.storage.local.write import lock
from slice_os.types import OnProgress

RETRIES = 10


def backup(root: Path, target: Path, link: bool, on_progress: OnProgress) -> None:
    """Copy the live generation of an index to a new folder."""
    source = live_folder(root)
    _read_meta(source)
    _copy(source, target, link, on_progress)


def restore(backup: Path, root: Path, overwrite: bool, on_progress: OnProgress) -> None:
    """Copy a backup to a new folder, or to the next generation of an index and make it live.

    The generation that was live is deleted then: the backup replaces it.
    """
    source, former = live_folder(backup), live_number(root)
    meta = _read_meta(source)
    folder = folder_of(root, former)
    if not (folder / DATABASE).is_file():
        return _copy(source, root, False, on_progress)
    if not overwrite:
        raise LocationError(
            f"There is an index at {root}",
            hint=(
                "give --overwrite (overwrite=True) to have it replaced, or restore to a new folder."
            ),
        )
    if folder.resolve() == source.resolve():
        raise LocationError(f"{root} is the backup itself: name another folder.")
    with lock(folder):
        with suppress(IndexDamagedError):  # that is what a backup is for
            if _read_meta(folder) != meta:
                raise LocationError(
                    f"The backup {backup} has another encoder or other settings than the index "
                    f"{root}: restore it to a new folder."
                )
        number = max(numbers(root)) + 1
        target = folder_of(root, number)
        try:
            _copy(source, target, False, on_progress)
        except LocationError:  # the disk is full, say
            shutil.rmtree(_part(target), ignore_errors=True)
            raise
        with mapped_errors(root):
            target.chmod(root.stat().st_mode & 0o777)  # who may read the index still may
            make_live(root, number)
    drop(root, former)
    return None


def _read_meta(folder: Path) -> IndexMeta:
    if not (folder / DATABASE).is_file():
        raise LocationError(f"There is no index at {folder}: check the path.")
    with closing(connect(folder)) as database:
        return load_meta(database, folder)


def _copy(source: Path, target: Path, link: bool, on_progress: OnProgress) -> None:
    """Fill a folder beside the target, check it, and give it the target's name."""
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise LocationError(f"{target} exists: name a new folder.")
    part = _part(target)
    with mapped_errors(part):
        make_folder(part)
        (part / "segments").mkdir(exist_ok=True)
        with lock(part):
            database, fresh = part / DATABASE, part / f"{DATABASE}.new"
            _remove_database(database)
            _copy_state(source, fresh, part, link, on_progress)
            fresh.rename(database)
            with closing(connect(part)) as opened:
                remove_orphans(opened, part)  # of what was broken off
            if not examine(part, deep=True).is_sound:
                raise IndexDamagedError(
                    f"The index {source} is damaged, and nothing was made of it",
                    hint=f"'slice-os check --index {source}' says what is.",
                )
            for folder in (part / "segments", part):
                sync_folder(folder)
        part.rename(target)
        sync_folder(target.parent)


def _part(target: Path) -> Path:
    return target.with_name(f"{target.name}.part")


def _copy_state(
    source: Path, database: Path, folder: Path, link: bool, on_progress: OnProgress
) -> None:
    """Copy one state: the database to a file, the segments that it names to those of a folder.

    Segments that are there, whole, are not copied again.
    """
    for _ in range(RETRIES):
        _remove_database(database)
        with (
            closing(connect(source)) as original,
            reading(original, source),
            closing(sqlite3.connect(database, isolation_level=None)) as copy,
        ):
            original.backup(copy)
            recorded = recorded_segments(copy)
        words, done = sum(segment.words for segment in recorded.values()), 0
        with suppress(FileNotFoundError):  # a merge has just replaced it
            for number, segment in recorded.items():
                file = segment_file(folder, number)
                if not (file.exists() and is_intact(file, segment)):
                    _copy_file(segment_file(source, number), file, link)
                done += segment.words
                on_progress(done / words)
            return
    raise segment_missing(source)


def _copy_file(source: Path, target: Path, link: bool) -> None:
    target.unlink(missing_ok=True)
    if link:
        try:
            os.link(source, target)
        except FileNotFoundError:
            raise
        except OSError as exc:
            raise LocationError(
                f"{target.parent} cannot share files with {source.parent} ({exc.strerror})",
                hint="leave --link out.",
            ) from exc
        return
    shutil.copyfile(source, target)
    with target.open("r+b") as stream:
        os.fsync(stream.fileno())


def _remove_database(file: Path) -> None:
    for ending in ("", "-wal", "-shm", "-journal"):
        file.with_name(f"{file.name}{ending}").unlink(missing_ok=True)

"""Copies of an embedded index that is in use, and their way back.

A copy is an index folder: it opens, searches and verifies as it is, and a second one needs only the
segments that are new. It holds one state of the index: the database is copied in one read
transaction, and the copy names the segments, files that never change. It is filled under another
name, checked as `slice_os.check` does, and renamed at the end.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from slice_os.errors import IndexDamagedError, LocationError
from slice_os.files import sync_folder
from slice_os.storage.contract import IndexMeta, IndexStatus
from slice_os.storage.local.check import examine
from slice_os.storage.local.compaction import remove_orphans, segment_file
from slice_os.storage.local.database import (
    DATABASE,
    as_error,
    connect,
    load_meta,
    next_segment,
    reading,
    recorded_segments,
    segment_missing,
)
from slice_os.storage.local.generations import live_folder
from slice_os.storage.local.read import LocalBackend
from slice_os.storage.local.segments import Recorded, is_intact
from slice_os.storage.local.write import lock

RETRIES = 10
OnProgress = Callable[[float], object]


def backup(
    location: str | Path,
    to: str | Path,
    *,
    link: bool = False,
    on_progress: OnProgress = lambda share: None,
) -> IndexStatus:
    """Copy the last committed state of an embedded index to a new folder, whoever writes to it.

    That is the live generation; those to go back to are not copied.
    Broken off, it leaves the folder ``TO.part``, and the next run goes on from there.

    Args:
        location: The folder of the index.
        to: The folder that comes into being, on the disk and whole, with the last step.
        link: Share the segments' files with the index by hard links, on the same file system. That
            takes no room, and guards against what is deleted or overwritten by mistake; it does not
            guard against the disk.
        on_progress: Is told now and then what share of the work is done.

    Returns:
        The state of the copy.

    Raises:
        LocationError: there is no index, `to` is there, or a disk is full.
        IndexDamagedError: the index is not what was written to it; nothing is made then.
        IndexLockedError: another backup to the same place is under way.
    """
    source, target = _folder(location), Path(to).expanduser()
    _check_source(source)
    return _copy(source, target, link, on_progress)


def restore(
    backup: str | Path,
    location: str | Path,
    *,
    overwrite: bool = False,
    on_progress: OnProgress = lambda share: None,
) -> IndexStatus:
    """Make an index of a backup; the backup is read, checked, and left as it is.

    In the place of an index that is there, if told to `overwrite` it, it comes in one step: until
    then, and whatever interrupts, that index stays as it was. Searches go on meanwhile, those under
    way end on the former one. Its encoder and settings have to be those of the backup.

    Returns:
        The state of the index.

    Raises:
        LocationError: there is no backup, or something is in the place of the index.
        IndexDamagedError: the backup is damaged; nothing is changed then.
        IndexLockedError: somebody is writing to the index.
    """
    source, folder = _folder(backup), _folder(location)
    _check_source(source)
    if not (folder / DATABASE).is_file():
        return _copy(source, folder, False, on_progress)
    if not overwrite:
        raise LocationError(
            f"There is an index at {folder}: give --overwrite (overwrite=True) to have it "
            "replaced, or restore to a new folder."
        )
    if folder.resolve() == source.resolve():
        raise LocationError(f"{folder} is the backup itself: name another folder.")
    with _mapped_errors(folder):
        held = lock(folder)
        try:
            _replace(source, folder, on_progress)
        finally:
            held.release()
    return _status(folder)


def _folder(location: str | Path) -> Path:
    named = os.fspath(location)
    if "://" in named:
        raise LocationError(
            f"{named} is in a cluster, which backs its indexes up itself: use its snapshot API, as "
            "docs/operations.md shows under Backup."
        )
    return live_folder(Path(named).expanduser())


def _check_source(folder: Path) -> None:
    opened = LocalBackend.open(str(folder))
    if opened is None:
        raise LocationError(f"There is no index at {folder}: check the path.")
    opened.close()


def _status(folder: Path) -> IndexStatus:
    with closing(LocalBackend(folder)) as opened:
        return opened.status()


@contextmanager
def _mapped_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, sqlite3.Error) as exc:
        raise as_error(folder, exc) from exc


def _copy(source: Path, target: Path, link: bool, on_progress: OnProgress) -> IndexStatus:
    """Fill a folder beside the target, check it, and give it the target's name."""
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise LocationError(f"{target} exists: name a new folder.")
    part = target.with_name(f"{target.name}.part")
    with _mapped_errors(part):
        (part / "segments").mkdir(parents=True, exist_ok=True)
        held = lock(part)
        try:
            database, fresh = part / DATABASE, part / f"{DATABASE}.new"
            _remove_database(database)
            _copy_state(source, fresh, part, 0, link, on_progress)
            fresh.rename(database)
            with closing(connect(part)) as opened:
                remove_orphans(opened, part)  # of what was broken off
            _check(part, source)
            for folder in (part / "segments", part):
                sync_folder(folder)
        finally:
            held.release()
        part.rename(target)
        sync_folder(target.parent)
    return _status(target)


def _replace(source: Path, folder: Path, on_progress: OnProgress) -> None:
    """Put what a backup holds into the index of a folder, by one transaction of SQLite."""
    _check(source, source)
    fresh = folder / f"{DATABASE}.new"
    try:
        with closing(connect(folder)) as live:
            if live.refused is not None:
                raise live.refused
            last = _last_number(live, folder)
            _check_same(source, live, folder)
            recorded = _copy_state(source, fresh, folder, last, False, on_progress)
            for number, one in recorded.items():
                if one.checksum and not is_intact(segment_file(folder, number + last), one):
                    raise IndexDamagedError(f"{source} changed while it was read: run this again.")
            sync_folder(folder / "segments")
            with closing(sqlite3.connect(fresh)) as staged:
                readable = _put(staged, live)
        if not readable:  # nobody can have it open
            for ending in ("-wal", "-shm"):
                (folder / f"{DATABASE}{ending}").unlink(missing_ok=True)
            fresh.replace(folder / DATABASE)
            sync_folder(folder)
    finally:
        _remove_database(fresh)
        # Those of the former index, or of the new one if it did not come to be.
        with suppress(LocationError, sqlite3.Error), closing(connect(folder)) as live:
            remove_orphans(live, folder)


def _put(staged: sqlite3.Connection, live: sqlite3.Connection) -> bool:
    """Make a database what another is, in one transaction; False if it is no database any more."""
    try:
        staged.backup(live)
    except sqlite3.DatabaseError as exc:
        if "not a database" in str(exc) or "malformed" in str(exc):
            return False
        raise
    return True


def _copy_state(
    source: Path, database: Path, folder: Path, offset: int, link: bool, on_progress: OnProgress
) -> dict[int, Recorded]:
    """Copy one state: to a file the database, to the segments of a folder those that it names.

    Their numbers rise by `offset`. Segments that are there, whole, are not copied again.
    """
    for _ in range(RETRIES):
        _remove_database(database)
        with (
            closing(connect(source)) as read,
            reading(read, source),
            closing(sqlite3.connect(database, isolation_level=None)) as written,
        ):
            read.backup(written)
            recorded = recorded_segments(written)
            if offset:
                _renumber(written, offset)
        words, done = sum(one.words for one in recorded.values()), 0
        with suppress(FileNotFoundError):  # a merge has just replaced it
            for number, one in recorded.items():
                file = segment_file(folder, number + offset)
                if not (one.checksum and file.exists() and is_intact(file, one)):
                    _copy_file(segment_file(source, number), file, link)
                done += one.words
                on_progress(done / words)
            return recorded
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
                f"{target.parent} cannot share files with {source.parent} ({exc.strerror}): leave "
                "--link out."
            ) from exc
        return
    shutil.copyfile(source, target)
    with target.open("r+b") as stream:
        os.fsync(stream.fileno())


def _renumber(database: sqlite3.Connection, offset: int) -> None:
    """Give segments numbers that their new folder has not used: readers go by them."""
    database.execute("PRAGMA journal_mode = DELETE")
    database.execute("BEGIN")
    for table, column in (("segments", "number"), ("passages", "segment"), ("hidden", "segment")):
        # From above, so that no number is there twice on the way.
        numbers = database.execute(f"SELECT DISTINCT {column} FROM {table} ORDER BY 1 DESC")
        for (number,) in numbers.fetchall():
            database.execute(
                f"UPDATE {table} SET {column} = ? WHERE {column} = ?", (number + offset, number)
            )
    database.execute("UPDATE sqlite_sequence SET seq = seq + ? WHERE name = 'segments'", (offset,))
    database.execute("COMMIT")
    database.execute("PRAGMA journal_mode = WAL")


def _last_number(live: sqlite3.Connection, folder: Path) -> int:
    """Return the highest number that a segment of a folder has ever had, as far as can be known."""
    last = max(
        (int(file.stem) for file in (folder / "segments").glob("*.slice") if file.stem.isdecimal()),
        default=0,
    )
    with suppress(sqlite3.DatabaseError, TypeError, ValueError):  # damaged
        last = max(last, next_segment(live) - 1)
    return last


def _check_same(source: Path, live: sqlite3.Connection, folder: Path) -> None:
    """Raise LocationError if what has the index open would not know its encoder or settings."""
    with closing(connect(source)) as read:
        wanted = load_meta(read, source)
    has: IndexMeta | None = None
    with suppress(LocationError):  # damaged: that is what a backup is for
        has = load_meta(live, folder)
    if has not in (None, wanted):
        raise LocationError(
            f"The backup {source} has another encoder or other settings than the index {folder}: "
            "restore it to a new folder."
        )


def _check(folder: Path, source: Path) -> None:
    """Raise IndexDamagedError unless all in a folder is what was written."""
    if not examine(folder, deep=True).is_sound:
        raise _damaged(source)


def _damaged(folder: Path) -> IndexDamagedError:
    return IndexDamagedError(
        f"The index {folder} is damaged, and nothing was made of it: 'slice-os check --index "
        f"{folder}' says what is."
    )


def _remove_database(file: Path) -> None:
    for ending in ("", "-wal", "-shm", "-journal"):
        file.with_name(f"{file.name}{ending}").unlink(missing_ok=True)

"""Copies of an index that is in use, and their way back."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from slice_os.storage import backend_for
from slice_os.storage.contract import IndexStatus

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
    source, target = _expanded(location), _expanded(to)
    return backend_for(source).backup(source, target, link=link, on_progress=on_progress)


def restore(
    backup: str | Path,
    location: str | Path,
    *,
    overwrite: bool = False,
    on_progress: OnProgress = lambda share: None,
) -> IndexStatus:
    """Make an index of a backup; the backup is read, checked, and left as it is.

    In the place of an index that is there, if told to `overwrite` it, it becomes the live
    generation in one step: until then, and whatever interrupts, that index stays as it was.
    Searches go on meanwhile. Its encoder and settings have to be those of the backup.

    Returns:
        The state of the index.

    Raises:
        LocationError: there is no backup, or something is in the place of the index.
        IndexDamagedError: the backup is damaged; nothing is changed then.
        IndexLockedError: somebody is writing to the index.
    """
    source, target = _expanded(backup), _expanded(location)
    kind = backend_for(source if "://" in source else target)
    return kind.restore(source, target, overwrite=overwrite, on_progress=on_progress)


def _expanded(location: str | Path) -> str:
    named = os.fspath(location)
    return named if "://" in named else str(Path(named).expanduser())

"""Copies of an index that is in use, and their way back."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import Any

from slice_os.errors import LocationError
from slice_os.storage import backend_for, module_for
from slice_os.storage.contract import IndexStatus
from slice_os.types import OnProgress


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
    _module(source).backup(Path(source), Path(target), link, on_progress)
    return _status(target)


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
    module = _module(source if "://" in source else target)
    module.restore(Path(source), Path(target), overwrite, on_progress)
    return _status(target)


def _module(location: str) -> Any:
    module = module_for(location, "backup")
    if module is None:
        raise LocationError(
            f"{location} is in a cluster, which backs its indexes up itself: use its snapshot API, "
            "as docs/operations.md shows under Backup."
        )
    return module


def _status(location: str) -> IndexStatus:
    index = backend_for(location).open(location)
    if index is None:
        raise LocationError(f"The index {location} was removed meanwhile: run this again.")
    with closing(index):
        return index.status()


def _expanded(location: str | Path) -> str:
    named = os.fspath(location)
    return named if "://" in named else str(Path(named).expanduser())

"""Files that are whole or not there: written under another name, synced, renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Give a path beside `path`, with its suffix, whose file takes its place at the end."""
    partial = path.with_name(f".partial-{path.name}")
    try:
        yield partial
        with partial.open("r+b") as stream:
            os.fsync(stream.fileno())
        partial.replace(path)
        sync_folder(path.parent)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """Write a text file such that it is either as it was, or whole."""
    with whole(path) as partial:
        partial.write_text(text, encoding="utf-8")


def sync_folder(folder: Path) -> None:
    """Make renames and new files in a folder durable."""
    if os.name == "nt":  # a folder cannot be opened there
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

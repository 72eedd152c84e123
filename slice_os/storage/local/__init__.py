"""The embedded index: a folder with SQLite (documents, BM25) and vector segments beside it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from slice_os.errors import LocationError
from slice_os.files import write_whole
from slice_os.storage.contract import BEGUN, Backend, IndexMeta
from slice_os.storage.local.database import DATABASE, create, make_folder, mapped_errors
from slice_os.storage.local.generations import (
    BUILD,
    LocalGenerations,
    folder_of,
    live_folder,
    live_number,
    numbers,
)
from slice_os.storage.local.write import LOCK, LocalWriter, in_use
from slice_os.types import Reject

__all__ = ["LocalBackend"]


class LocalBackend(LocalGenerations, Backend):
    """An embedded index in a folder; see `Backend` for the contract. Threads may share it."""

    def __init__(self, root: Path, number: int | None = None) -> None:
        """Open the live generation of the index at `root`, or another, which exists."""
        self._was_opened_live = number is None
        super().__init__(root, live_number(root) if number is None else number)

    @classmethod
    def open(cls, location: str, **options: Any) -> LocalBackend | None:
        _check_no_cluster(location, options)
        folder = Path(location).expanduser()
        if (live_folder(folder) / DATABASE).is_file():
            return cls(folder)
        if folder.is_file() or (folder.is_dir() and _is_foreign(folder)):
            raise LocationError(f"{folder} exists and is not a slice-os index: name a new folder.")
        return None

    @classmethod
    def create(cls, location: str, meta: IndexMeta, **options: Any) -> LocalBackend:
        _check_no_cluster(location, options)
        folder = Path(location).expanduser()
        try:
            make_folder(folder)
            with FileLock(folder / LOCK, timeout=60):
                if not (folder / DATABASE).is_file():
                    create(folder, meta)
        except Timeout:
            raise in_use(folder) from None
        except (OSError, sqlite3.Error) as exc:
            raise LocationError(f"The index {folder} cannot be made: {exc}.") from exc
        return cls(folder)

    def check_settings(self, settings: Mapping[str, Any]) -> None:
        _check_no_cluster(self.location, {"settings": settings})

    def writer(
        self,
        on_reject: Callable[[Reject], None] = lambda reject: None,
        partition: tuple[int, int] | None = None,
    ) -> LocalWriter:
        return LocalWriter(self._folder, self.is_live if self._was_opened_live else None)

    def generation(self, number: int) -> LocalBackend:
        return LocalBackend(self._root, number)

    def next_generation(self, meta: IndexMeta, settings: Mapping[str, Any]) -> LocalBackend:
        _check_no_cluster(self.location, {"settings": settings})
        number = max(numbers(self._root)) + 1
        folder = folder_of(self._root, number)
        with mapped_errors(self._root):
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(folder / BUILD, json.dumps(BEGUN))
            create(folder, meta)
        return LocalBackend(self._root, number)


def _check_no_cluster(location: str, options: Mapping[str, Any]) -> None:
    if any(options.values()):
        raise LocationError(
            f"{location} is a folder: leave out the {', '.join(options)} that are for a cluster."
        )


def _is_foreign(folder: Path) -> bool:
    """Tell whether a folder holds anything that a broken-off creation would not have left."""
    ours = ("segments", LOCK)
    return any(
        not file.name.startswith(DATABASE) and file.name not in ours for file in folder.iterdir()
    )

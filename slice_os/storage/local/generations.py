"""Generations of an embedded index: the folder itself is the first, others lie below it.

The file `live` names the one that is searched; where there is none, it is the first.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from filelock import FileLock

from slice_os.errors import IndexDamagedError, LocationError
from slice_os.files import write_whole
from slice_os.storage.contract import Generation, Generations
from slice_os.storage.local.database import (
    DATABASE,
    Database,
    connect,
    load_meta,
    mapped_errors,
    reading,
)
from slice_os.storage.local.read import LocalReader, size_of
from slice_os.storage.local.write import lock
from slice_os.types import content_hash

LIVE, BELOW, BUILD = "live", "generations", "build.json"


def folder_of(root: Path, number: int) -> Path:
    """Return the folder of a generation."""
    return root if number == 1 else root / BELOW / f"{number:06d}"


def live_number(root: Path) -> int:
    """Return the number of the generation that is searched.

    Raises:
        IndexDamagedError: the file that names it is not what was written.
    """
    try:
        text = (root / LIVE).read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return 1
    number = text.partition(" ")[0]
    if text != _line(number):
        raise IndexDamagedError(
            f"The file {root / LIVE}, which names the live generation, is damaged: remove it for "
            f"the first, or restore a backup; 'generations' in {root} holds the others."
        )
    return int(number)


def make_live(root: Path, number: int) -> None:
    """Let the index be that of a generation."""
    write_whole(root / LIVE, _line(str(number)))


def _line(number: str) -> str:
    return f"{number} {content_hash(number)}\n"


def live_folder(root: Path) -> Path:
    """Return the folder of the generation that is searched."""
    return folder_of(root, live_number(root))


def numbers(root: Path) -> list[int]:
    """Return the numbers of the generations that exist, in order."""
    below = root / BELOW
    names = [folder.name for folder in below.iterdir()] if below.is_dir() else []
    later = sorted(int(name) for name in names if name.isdecimal())
    return [n for n in (1, *later) if (folder_of(root, n) / DATABASE).is_file()]


def read_build(folder: Path) -> dict[str, Any]:
    """Return the note of who builds a generation; nothing if nobody does.

    Raises:
        IndexDamagedError: it is not what was written.
    """
    try:
        build: dict[str, Any] = json.loads((folder / BUILD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as exc:
        raise IndexDamagedError(
            f"{folder / BUILD}, which says who builds the generation, is damaged: remove it for "
            "the generation to count as a retired one."
        ) from exc
    return build


def drop(root: Path, number: int) -> None:
    """Delete a generation, its database first: what is left of it is none."""
    folder = folder_of(root, number)
    for file in (folder / DATABASE, *folder.glob(f"{DATABASE}*"), folder / BUILD):
        with suppress(FileNotFoundError):
            file.unlink()
    shutil.rmtree(folder / "segments" if number == 1 else folder, ignore_errors=True)


class LocalGenerations(LocalReader, Generations):
    """The generations of an embedded index; see `Generations` for the contract."""

    def __init__(self, root: Path, number: int) -> None:
        super().__init__(str(root), folder_of(root, number))
        self._root, self._number = root, number

    def is_live(self) -> bool:
        return live_number(self._root) == self._number

    def generations(self) -> list[Generation]:
        live, generations = live_number(self._root), []
        for number in numbers(self._root):
            folder = folder_of(self._root, number)
            build = read_build(folder)
            with self._database_of(number) as database:
                meta = load_meta(database, folder)
                query = "SELECT count(*) FROM documents WHERE hash IS NOT NULL"
                (documents,) = database.execute(query).fetchone()
            state = "live" if number == live else build.get("state", "retired")
            made = datetime.fromtimestamp((folder / "segments").stat().st_ctime, tz=timezone.utc)
            generations.append(
                Generation(
                    number, state, meta, {}, documents, size_of(folder),
                    made.isoformat(timespec="seconds"), build,
                )
            )  # fmt: skip
        return generations

    @contextmanager
    def _database_of(self, number: int) -> Iterator[Database]:
        if number == self._number:
            with self._snapshot() as database:
                yield database
            return
        folder = folder_of(self._root, number)
        with closing(connect(folder)) as database, reading(database, folder):
            yield database

    def note_build(self, build: Mapping[str, Any] | None, token: object = ...) -> bool:
        folder = folder_of(self._root, self._number)
        with mapped_errors(self._root), FileLock(folder / f"{BUILD}.lock"):
            if token is not ... and read_build(folder).get("token") != token:
                return False
            if build is None:
                (folder / BUILD).unlink(missing_ok=True)
            else:
                write_whole(folder / BUILD, json.dumps(build))
        return True

    def swap(self, number: int) -> None:
        if not self.is_live():  # writers are held off: nobody else moves it
            raise LocationError(
                f"Another generation of {self._root} was made live meanwhile: run this again."
            )
        with mapped_errors(self._root):
            make_live(self._root, number)

    def drop(self, number: int) -> None:
        drop(self._root, number)

    @contextmanager
    def hold(self, *, wait: bool = True) -> Iterator[None]:
        with lock(folder_of(self._root, self._number), wait=wait):
            yield

    def changes(self) -> object:
        return object()  # never equal: comparing all documents takes little here

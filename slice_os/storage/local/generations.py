"""Generations of an embedded index: the folder itself is the first, others lie below it.

The file `live` names the one that is searched; where there is none, it is the first.
"""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from slice_os.errors import IndexDamagedError
from slice_os.files import write_whole
from slice_os.storage.local.database import DATABASE
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
    names = [one.name for one in below.iterdir()] if below.is_dir() else []
    found = sorted(int(name) for name in names if name.isdecimal())
    return [n for n in (1, *found) if (folder_of(root, n) / DATABASE).is_file()]


def read_build(folder: Path) -> dict[str, Any]:
    """Return the note of who builds a generation; nothing if nobody does.

    Raises:
        IndexDamagedError: it is not what was written.
    """
    try:
        found: dict[str, Any] = json.loads((folder / BUILD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as exc:
        raise IndexDamagedError(
            f"{folder / BUILD}, which says who builds the generation, is damaged: remove it for "
            "the generation to count as a retired one."
        ) from exc
    return found


def drop(root: Path, number: int) -> None:
    """Delete a generation, its database first: what is left of it is none."""
    folder = folder_of(root, number)
    for file in (folder / DATABASE, *folder.glob(f"{DATABASE}*"), folder / BUILD):
        with suppress(FileNotFoundError):
            file.unlink()
    shutil.rmtree(folder / "segments" if number == 1 else folder, ignore_errors=True)

"""Folders and text files of results."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from slice_os.errors import EvaluationError
from slice_os.files import write_whole


def make_folder(folder: Path) -> None:
    """Make a folder for results where there is none.

    Raises:
        EvaluationError: It cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise EvaluationError(
            f"{folder} cannot be made ({exc.strerror or exc}): give another output folder."
        ) from exc


def write_lines(file: Path, lines: Iterable[str]) -> None:
    """Write a text file, whole or not at all.

    Raises:
        EvaluationError: It cannot be written.
    """
    try:
        write_whole(file, "".join(f"{line}\n" for line in lines))
    except OSError as exc:
        raise EvaluationError(
            f"{file} cannot be written ({exc.strerror or exc}): give another output folder, or "
            "make room."
        ) from exc

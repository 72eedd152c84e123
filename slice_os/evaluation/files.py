"""Result files, written under another name and renamed, so that none is ever half written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from slice_os.errors import EvaluationError


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Give a path beside `path`, with its suffix, that is renamed to it at the end."""
    partial = path.with_name(f".partial-{path.name}")
    try:
        yield partial
        partial.replace(path)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


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
        with whole(file) as partial:
            partial.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as exc:
        raise EvaluationError(
            f"{file} cannot be written ({exc.strerror or exc}): give another output folder, or "
            "make room."
        ) from exc

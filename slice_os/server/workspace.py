"""The folder of a server's taught phrases: the only place that a server writes to."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from slice_os.errors import LocationError
from slice_os.server.failures import RequestError
from slice_os.teaching.record import SUFFIX, TaughtPhrase, read_taught

_NAME = re.compile(r"\w[\w .-]{0,99}")


class Workspace:
    """Taught phrases by name, each a file.

    Args:
        folder: Where; it is made if it is not there. None: nothing is kept.

    Raises:
        LocationError: the folder cannot be made or written to.
    """

    def __init__(self, folder: str | None) -> None:
        self._folder = None if folder is None else Path(folder)
        if self._folder is None:
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise LocationError(
                f"The workspace {folder} cannot be made ({exc.strerror}): give another folder."
            ) from exc
        if not os.access(self._folder, os.W_OK):
            raise LocationError(f"The workspace {folder} cannot be written to: give another.")

    @property
    def is_kept(self) -> bool:
        """Whether there is a folder."""
        return self._folder is not None

    def names(self) -> list[str]:
        """Return the names of what is kept, in their order."""
        if self._folder is None:
            return []
        names = (file.stem for file in self._folder.glob(f"*{SUFFIX}"))
        return sorted(name for name in names if _NAME.fullmatch(name))

    def file(self, name: str) -> Path:
        """Return the file of a name.

        Raises:
            RequestError: there is no workspace, or it is no name.
        """
        if self._folder is None:
            raise RequestError(
                "This server keeps no taught phrases",
                hint="start it with --workspace FOLDER.",
            )
        if not _NAME.fullmatch(name) or name != name.strip():
            raise RequestError(
                f"{name[:60]!r} cannot name a taught phrase: use up to 100 letters, digits, "
                "spaces, points, - and _, the first a letter or digit."
            )
        return self._folder / f"{name}{SUFFIX}"

    def read(self, name: str) -> TaughtPhrase:
        """Return what is kept under a name.

        Raises:
            RequestError: there is nothing.
            TeachingError: it is damaged.
        """
        file = self.file(name)
        if not file.is_file():
            raise RequestError(
                f"There is no taught phrase {name!r} here", 404, hint="GET /api/taught names them."
            )
        return read_taught(file)

    def read_all(self, names: Iterable[str]) -> dict[str, TaughtPhrase]:
        """Return what is kept under names, by what their matches are called."""
        phrases = [self.read(name) for name in dict.fromkeys(names)]
        return {phrase.name: phrase for phrase in phrases}

    def check(self, name: str, phrases: tuple[str, ...]) -> Path:
        """Return the file to save phrases in; RequestError if it holds others."""
        file = self.file(name)
        if file.is_file() and (former := read_taught(file).phrases) != phrases:
            raise RequestError(
                f"{name!r} is of {', '.join(map(repr, former))} already: save it under another "
                "name.",
                409,
            )
        return file

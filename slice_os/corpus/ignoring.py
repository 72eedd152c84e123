"""What of a folder is left out: by .gitignore, and by patterns of its kind."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from pathspec import GitIgnoreSpec

from slice_os.records import Match

REJECTS = ".rejects.jsonl"
"""The ending of the files that list what indexing skipped, which are never read."""
_RULES = ".gitignore"
_MATCHES = [field.name for field in fields(Match)]
_BEGINNING = 1 << 13


class Ignored:
    """Tells what the .gitignore files of a folder leave out, and those above it in its repository.

    They hold where there is no repository, too; what the user names is never left out.
    """

    def __init__(self, folder: Path) -> None:
        self._given = Path(os.path.realpath(folder))
        above = (self._given, *self._given.parents)
        self._top = next((one for one in above if (one / ".git").exists()), self._given)
        self._specs: dict[Path, GitIgnoreSpec | None] = {}
        self._folders: dict[Path, bool] = {self._given: False}

    def leaves_out(self, folder: Path, name: str, *, is_folder: bool) -> bool:
        """Tell whether the file or folder of this name in a folder is left out."""
        folder = Path(os.path.realpath(folder))
        return self._is_left_out(folder) or self._decides(folder, name, is_folder)

    def _is_left_out(self, folder: Path) -> bool:
        if folder not in self._folders:
            parent = folder.parent
            self._folders[folder] = self._given in folder.parents and (
                self._is_left_out(parent) or self._decides(parent, folder.name, True)
            )
        return self._folders[folder]

    def _decides(self, folder: Path, name: str, is_folder: bool) -> bool:
        path = f"{name}/" if is_folder else name
        while folder == self._top or self._top in folder.parents:
            spec = self._spec(folder)
            decided = spec.check_file(path).include if spec else None
            if decided is not None:
                return decided
            path, folder = f"{folder.name}/{path}", folder.parent
        return False

    def _spec(self, folder: Path) -> GitIgnoreSpec | None:
        if folder not in self._specs:
            try:
                rules = (folder / _RULES).read_bytes().decode("utf-8", "replace")
            except OSError:
                self._specs[folder] = None
            else:
                self._specs[folder] = spec_of(rules.splitlines())
        return self._specs[folder]


def spec_of(patterns: Sequence[str]) -> GitIgnoreSpec:
    """Return patterns as .gitignore has them; those that are none are passed over."""
    good = []
    for pattern in patterns:
        try:
            GitIgnoreSpec.from_lines([pattern])
        except ValueError:
            continue
        good.append(pattern)
    return GitIgnoreSpec.from_lines(good)


def is_index(names: Sequence[str]) -> bool:
    """Tell by the names in a folder whether it is an index."""
    return "index.sqlite" in names and ("segments" in names or "writer.lock" in names)


def is_ours(path: Path) -> bool:
    """Tell whether a file is one that slice-os wrote: rejects, or the matches of mining."""
    if path.name.endswith(REJECTS):
        return True
    if path.suffix.lower() not in (".csv", ".jsonl") or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            begin = file.readline(_BEGINNING).decode("utf-8", "replace").strip()
        if path.suffix.lower() == ".csv":
            return next(csv.reader([begin]), []) == _MATCHES
        row = json.loads(begin)
    except (OSError, ValueError, csv.Error, RecursionError):
        return False
    return isinstance(row, dict) and list(row) == _MATCHES

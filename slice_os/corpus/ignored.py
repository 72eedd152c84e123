"""What .gitignore files, and patterns as they have them, leave out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pathspec import GitIgnoreSpec


class Ignored:
    """Tells what the .gitignore files of a folder leave out, and those above it in its repository.

    They hold where there is no repository, too; what the user names is never left out, and of a
    folder that those above leave out only its own hold.
    """

    def __init__(self, folder: Path) -> None:
        real = Path(os.path.realpath(folder))
        above = (real, *real.parents)
        self._top = next((folder for folder in above if (folder / ".git").exists()), real)
        self._specs: dict[Path, GitIgnoreSpec] = {}
        if self.leaves_out(real, is_folder=True):
            self._top = real

    def leaves_out(self, path: Path, *, is_folder: bool) -> bool:
        """Tell whether a file or folder is left out, of a folder that is not."""
        folder = Path(os.path.realpath(path.parent))
        below = f"{path.name}/" if is_folder else path.name
        while folder.is_relative_to(self._top):
            if folder not in self._specs:
                self._specs[folder] = _rules(folder)
            decided = self._specs[folder].check_file(below).include
            if decided is not None:
                return decided
            below, folder = f"{folder.name}/{below}", folder.parent
        return False


def _rules(folder: Path) -> GitIgnoreSpec:
    try:
        rules = (folder / ".gitignore").read_bytes().decode("utf-8", "replace")
    except OSError:
        rules = ""
    return patterns_of(rules.splitlines())


def patterns_of(patterns: Sequence[str]) -> GitIgnoreSpec:
    """Return patterns as .gitignore has them; those that are none are passed over."""
    good = []
    for pattern in patterns:
        try:
            GitIgnoreSpec.from_lines([pattern])
        except ValueError:
            continue
        good.append(pattern)
    return GitIgnoreSpec.from_lines(good)

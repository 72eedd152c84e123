"""Ids of files: the path under a root, a folder, behind the root's prefix.

An index remembers its roots, ``{prefix: folder}``, so that a file has one id however it is named.
Roots do not nest, and an id belongs to the root with the longest prefix that it begins with: so
two files never share one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from typing import NamedTuple

from slice_os.errors import CorpusError

Roots = Mapping[str, str]


def claim(
    known: Roots, folders: Iterable[Path], root: str | None, prefix: str | None
) -> dict[str, str]:
    """Return the roots that hold from now on: those known, and the one that a run asks for.

    The default root is the folder that all of `folders` have in common, if none is known.

    Raises:
        CorpusError: the root asked for does not exist, or would give a file two ids or two files
            one.
    """
    folder = _asked(known, list(folders), root, prefix)
    if folder is None:
        return dict(known)
    if prefix is None:
        prefix = next((one for one, at in known.items() if at == folder), "")
    for other, at in known.items():
        if other == prefix:
            if at != folder and Path(at).is_dir():
                raise CorpusError(
                    f"{_prefix(prefix)} belong to the root {at} of this index: give an --id-prefix "
                    f"of its own with --root {folder}."
                )
        elif at == folder:
            raise CorpusError(
                f"The root {folder} has the --id-prefix {other!r} in this index: give that, or "
                "none."
            )
        elif _is_within(folder, at) or _is_within(at, folder):
            raise CorpusError(
                f"The root {folder} overlaps with {at}, which this index has: leave out --root and "
                "--id-prefix, or name another folder."
            )
    return {**known, prefix: folder}


def _asked(known: Roots, folders: list[Path], root: str | None, prefix: str | None) -> str | None:
    """Return the folder that is to be a root, None if those known are to do."""
    if root is not None:
        if not Path(root).is_dir():
            raise CorpusError(f"The root {root!r} is not a folder: give one that holds the paths.")
        return os.path.realpath(root)
    if prefix is None and known:
        return None
    if prefix is not None and prefix in known:
        return known[prefix]
    if not folders:
        return None
    try:
        return os.path.commonpath([os.path.realpath(folder) for folder in folders])
    except ValueError as exc:  # drives of Windows
        raise CorpusError(
            "The paths have no folder in common: index them in runs of their own, each with "
            "--root and --id-prefix."
        ) from exc


def _is_within(folder: str, other: str) -> bool:
    return PurePath(folder).is_relative_to(other)


def _prefix(prefix: str) -> str:
    return f"Ids that begin with {prefix!r}" if prefix else "Ids without a prefix"


class RootedPath(NamedTuple):
    """A path under the root that has the prefix; `path` is empty for the root itself."""

    prefix: str
    path: str

    @property
    def id(self) -> str:
        """The id of a file there."""
        return self.prefix + self.path


class Locator:
    """Finds where paths lie under some roots."""

    def __init__(self, roots: Roots) -> None:
        self.roots = roots
        self._folders: dict[Path, RootedPath | None] = {}

    def locate(self, path: Path) -> RootedPath | None:
        """Return where a file or folder lies, None if no root holds it.

        A link is what it leads to, if that lies in a root; else it is itself.
        """
        path = path.absolute()
        if path.is_symlink() or path.name in ("", ".."):
            return self._folder(path)
        return _inside(self._folder(path.parent), path.name) or self._folder(path)

    def owner(self, id_: str) -> str:
        """Return the prefix of the root that has ids like this one."""
        return max((prefix for prefix in self.roots if id_.startswith(prefix)), key=len, default="")

    def _folder(self, folder: Path) -> RootedPath | None:
        if folder not in self._folders:
            real = PurePath(os.path.realpath(folder))
            for prefix, root in self.roots.items():
                if real.is_relative_to(root):
                    path = real.relative_to(root).as_posix()
                    found: RootedPath | None = RootedPath(prefix, "" if path == "." else path)
                    break
            else:
                known = folder.name not in ("", "..")
                found = _inside(self._folder(folder.parent), folder.name) if known else None
            self._folders[folder] = found
        return self._folders[folder]


def _inside(folder: RootedPath | None, name: str) -> RootedPath | None:
    if folder is None:
        return None
    return folder._replace(path=f"{folder.path}/{name}" if folder.path else name)

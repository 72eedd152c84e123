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

from slice_os.corpus.paths import Given
from slice_os.errors import CorpusError

Roots = Mapping[str, str]


class RootedPath(NamedTuple):
    """A path under the root that has the prefix; `path` is empty for the root itself."""

    prefix: str
    path: str

    @property
    def id(self) -> str:
        """The id of a file there."""
        return self.prefix + self.path


def claim(
    known: Roots, given: Iterable[Given], root: str | None, prefix: str | None
) -> dict[str, str]:
    """Return the roots of an index that has those `known` and takes in what is `given`.

    The first root is the folder `root`, or the one that all paths have in common (of a folder the
    one that it lies in). What lies in no root gets one of its own, whose prefix is its name.

    Raises:
        CorpusError: the root asked for does not exist, or would give a file two ids or two files
            one.
    """
    if root is not None and not Path(root).is_dir():
        raise CorpusError(f"The root {root!r} is not a folder: give one that holds the paths.")
    if root is not None:
        folder = os.path.realpath(root)
    elif prefix is not None or not known:
        folder = known.get(prefix or "") or _common(path.folder for path in given)
    else:
        outside = [path for path in given if locate(known, path.path) is None]
        folder = _common(path.path if path.path.is_dir() else path.folder for path in outside)
        prefix = f"{PurePath(folder).name}/" if folder else None
        gone = [at for at in known.values() if not Path(at).is_dir()]
        if folder and gone:
            raise CorpusError(
                f"{folder} is not in {gone[0]}, from which this index was made and which is gone",
                hint="if that was moved, give --root and its new place.",
            )
    if not folder:
        return dict(known)
    if prefix is None:
        prefix = next((name for name, at in known.items() if at == folder), "")
    for name, at in known.items():
        if name == prefix and at != folder and Path(at).is_dir():
            ids = f"Ids that begin with {name!r}" if name else "Ids without a prefix"
            raise CorpusError(
                f"{ids} belong to the folder {at} in this index",
                hint="give an --id-prefix of its own, such as --id-prefix "
                f"{PurePath(folder).name}-2/.",
            )
        if name != prefix and (_is_in(folder, at) or _is_in(at, folder)):
            raise CorpusError(
                f"The folder {folder} overlaps with {at}, whose ids begin with {name!r} in this "
                "index",
                hint="leave out --root and --id-prefix, or name folders that do not overlap.",
            )
    return {**known, prefix: folder}


def _common(folders: Iterable[Path]) -> str:
    places = [os.path.realpath(folder) for folder in folders]
    try:
        return os.path.commonpath(places) if places else ""
    except ValueError as exc:  # drives of Windows
        raise CorpusError(
            "The paths have no folder in common",
            hint="index them in runs of their own, each with --root and --id-prefix.",
        ) from exc


def _is_in(folder: str, other: str) -> bool:
    return PurePath(folder).is_relative_to(other)


def locate(roots: Roots, path: Path) -> RootedPath | None:
    """Return where a file or folder lies under some roots, None if no root holds it.

    A link is what it leads to, if that lies in a root; else it is itself.
    """
    path = path.absolute()
    for above in (path, *path.parents):
        real = PurePath(os.path.realpath(above))
        for prefix, root in roots.items():
            if real.is_relative_to(root):
                below = (real.relative_to(root) / path.relative_to(above)).as_posix()
                return RootedPath(prefix, "" if below == "." else below)
    return None


def owner(roots: Roots, id_: str) -> str:
    """Return the prefix of the root that has ids like this one."""
    return max((prefix for prefix in roots if id_.startswith(prefix)), key=len, default="")

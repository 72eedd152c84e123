"""Ids of files: the path under a root, a folder or its URL, behind the root's prefix.

An index remembers its roots, ``{prefix: folder}``, so that a file has one id however it is named.
Roots do not nest, and an id belongs to the root with the longest prefix that it begins with: so
two files never share one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from typing import NamedTuple

from slice_os.corpus import urls
from slice_os.corpus.paths import Given
from slice_os.corpus.urls import is_url, public
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
    if root is not None and not _exists(root):
        raise CorpusError(f"The root {root!r} is not a folder: give one that holds the paths.")
    if root is not None:
        folder = _real(root)
    elif prefix is not None or not known:
        folder = known.get(prefix or "") or _common(path.folder for path in given)
    else:
        outside = [path for path in given if locate(known, path.path) is None]
        folder = _common(path.folder if _is_file(path) else path.path for path in outside)
        prefix = f"{PurePath(folder).name}/" if folder else None
        gone = [at for at in known.values() if not _exists(at)]
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
        if name == prefix and at != folder and _exists(at):
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


def _exists(folder: str) -> bool:
    return is_url(folder) or Path(folder).is_dir()


def _real(folder: Path | str) -> str:
    return public(str(folder)) if is_url(str(folder)) else os.path.realpath(folder)


def _is_file(given: Given) -> bool:
    return given.is_file if isinstance(given.path, str) else not given.path.is_dir()


def _common(folders: Iterable[Path | str]) -> str:
    places = [_real(folder) for folder in folders]
    try:
        if any(map(is_url, places)):
            return urls.common(places)
        return os.path.commonpath(places) if places else ""
    except ValueError as exc:  # drives of Windows, paths and URLs
        raise CorpusError(
            "The paths have no folder in common",
            hint="index them in runs of their own, each with --root and --id-prefix.",
        ) from exc


def _is_in(folder: str, other: str) -> bool:
    if is_url(folder) or is_url(other):
        return urls.below(folder, other) is not None
    return PurePath(folder).is_relative_to(other)


def locate(roots: Roots, path: Path | str) -> RootedPath | None:
    """Return where a file or folder lies under some roots, None if no root holds it.

    A link is what it leads to, if that lies in a root; else it is itself.
    """
    if isinstance(path, str):
        places = ((prefix, urls.below(path, root)) for prefix, root in roots.items())
        return next((RootedPath(prefix, at) for prefix, at in places if at is not None), None)
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

"""Paths, folders, globs and URLs -> the files to read."""

from __future__ import annotations

import csv
import fnmatch
import glob
import json
import os
import stat
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path, PurePath
from urllib.request import url2pathname

from pathspec import GitIgnoreSpec

from slice_os.corpus import remote, urls
from slice_os.corpus.formats import format_of
from slice_os.corpus.ignored import Ignored, patterns_of
from slice_os.corpus.remote import RemoteFile
from slice_os.corpus.urls import is_url, parent, public
from slice_os.errors import CorpusError
from slice_os.types import Match

REJECTS = ".rejects.jsonl"
"""The ending of the files that list what indexing skipped, which are never read."""
STDIN = "-"
_FILE = "file://"
_DATASET = "dataset_info.json"
"""What is in the folder of a data set of Hugging Face, beside its .arrow files."""
_MATCHES = [field.name for field in fields(Match)]
_FIRST_LINE = 1 << 13


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read, or standard input where `path` is None; `problem`: why it is not read.

    `size` is None where it is not known.
    """

    path: Path | RemoteFile | None
    size: int | None = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Given:
    """One of the paths that `read` was given; `pattern`: the parts of a glob below `path`.

    `folder` is what the default root is made of. Both are public URLs where they are no paths.
    """

    path: Path | str
    folder: Path | str
    pattern: tuple[str, ...] = ()
    is_file: bool = False

    def covers(self, path: str) -> bool:
        """Tell whether a path below this one would be read, were it there."""
        return not self.pattern or _matches(path.split("/"), self.pattern)


@dataclass(slots=True)
class Plan:
    """Everything that `read` was given, in order.

    `types` counts the endings of files that have no known format, `left_out` what .gitignore and
    patterns leave out; `unfollowed` links lead out of the tree. `exclude` holds the files and
    folders, as they are without links, that are passed over where they are found; of the others
    those that `excluded` names are, and all but those that `included` names, if it is given.
    """

    exclude: frozenset[str] = frozenset()
    excluded: GitIgnoreSpec | None = None
    included: GitIgnoreSpec | None = None
    gitignore: bool = True
    follow: bool = False
    sources: list[Source] = field(default_factory=list)
    given: list[Given] = field(default_factory=list)
    types: Counter[str] = field(default_factory=Counter)
    left_out: int = 0
    unfollowed: int = 0

    def unreadable(self, exc: OSError) -> None:
        """Reject what an error names."""
        self.sources.append(Source(Path(str(exc.filename)), problem=exc.strerror or str(exc)))

    def bytes_total(self) -> int | None:
        """Return the size of all files, None where it is not known, as of standard input."""
        sizes = [None if source.path is None else source.size for source in self.sources]
        return None if None in sizes else sum(size or 0 for size in sizes)


def plan(
    arguments: list[str],
    exclude: Sequence[str | os.PathLike[str]] = (),
    include: Sequence[str] = (),
    follow: bool = False,
    gitignore: bool = True,
) -> Plan:
    """List the files of all arguments; a `CorpusError` names one that leads to nothing.

    A text of `exclude` that is no file or folder is a pattern as .gitignore has them.
    """
    patterns = [
        name
        for name in exclude
        if isinstance(name, str) and not is_url(name) and not os.path.lexists(name)
    ]
    made = Plan(
        frozenset(
            public(path) if isinstance(path, str) and is_url(path) else os.path.realpath(path)
            for path in exclude
            if path not in patterns
        ),
        patterns_of(patterns) if patterns else None,
        patterns_of(include) if include else None,
        gitignore,
        follow,
    )
    for argument in arguments:
        try:
            _add_argument(made, argument)
        except OSError as exc:
            raise CorpusError(f"{argument!r} cannot be read: {exc.strerror}.") from exc
    return made


def _add_argument(made: Plan, argument: str) -> None:
    path = Path(url2pathname(argument[len(_FILE) :]) if argument.startswith(_FILE) else argument)
    if argument == STDIN:
        made.sources.append(Source(None))
    elif is_url(argument) and not argument.startswith(_FILE):
        _add_url(made, argument)
    elif argument and path.is_dir():
        # Not path.parent, which of "." is "." again.
        made.given.append(Given(path, Path(os.path.realpath(path)).parent))
        _walk(made, made.given[-1])
    elif argument and path.exists():
        made.given.append(Given(path, path.parent))
        _add(made, path, named=True)
    elif glob.has_magic(argument):
        plain, pattern = _parted(path.parts)
        base = Path(*plain)
        made.given.append(Given(base, base, pattern))
        if not _walk(made, made.given[-1]):
            raise CorpusError(f"The pattern {argument!r} matches no file.")
    else:
        raise CorpusError(f"There is no file or folder {argument!r}.")


def _parted(parts: Sequence[str]) -> tuple[Sequence[str], tuple[str, ...]]:
    """Return the parts of a path before the first that is a pattern, and those from there."""
    first = next(n for n, part in enumerate(parts) if glob.has_magic(part))
    pattern = tuple(parts[first:])
    return parts[:first], (*pattern, "*") if pattern[-1] == "**" else pattern


def _add_url(made: Plan, argument: str) -> None:
    """Add the file at a URL, or the files of a folder or pattern."""
    place = remote.at(argument)
    try:
        if place.is_folder():
            made.given.append(Given(place.url, parent(place.url)))
            _list(made, place, made.given[-1])
            return
        file = place.about()
    except FileNotFoundError as exc:
        if not glob.has_magic(place.url):
            raise CorpusError(f"There is no file or folder {place.url!r}.") from exc
    else:
        made.given.append(Given(file.url, parent(file.url), is_file=True))
        if any(source.path == file for source in made.sources):
            raise CorpusError(
                f"{file.url!r} is given twice: what differs behind a question mark is no part of "
                "ids, so index those files in runs of their own, each with --id-prefix."
            )
        made.sources.append(Source(file, file.size))
        return
    plain, pattern = _parted(place.url.split("/"))
    folder = remote.at("/".join(plain) + "/")
    made.given.append(Given(folder.url, folder.url, pattern))
    if not _list(made, folder, made.given[-1]):
        raise CorpusError(f"The pattern {place.url!r} matches no file.")


def _list(made: Plan, folder: RemoteFile, given: Given) -> int:
    """Add the files of a folder behind a URL as `_walk` does; return how many were met."""
    depth = None if not given.pattern or "**" in given.pattern else len(given.pattern)
    try:
        files = [*folder.files(depth)]
    except FileNotFoundError:
        return 0
    hidden = any(part.startswith(".") for part in given.pattern)
    datasets = {parent(file.url) for file in files if file.name == _DATASET}
    met = 0
    for file in files:
        path = urls.below(file.url, folder.url) or ""
        is_hidden = not hidden and any(part.startswith(".") for part in path.split("/"))
        if is_hidden or not given.covers(path):
            continue
        met += 1
        is_left = any(urls.below(file.url, left) is not None for left in made.exclude)
        is_note = _is_note(file.name, parent(file.url) in datasets)
        if not is_left and not is_note and _fits(made, file, path):
            made.sources.append(Source(file, file.size))
    return met


def _walk(made: Plan, given: Given) -> int:
    """Add the files of a folder, sorted, each real folder once; return how many were met.

    Links, which may form a circle, are followed only if they are asked to be. Of a pattern, the
    files that match it are met; hidden ones only if it asks for them.
    """
    met, seen = 0, set()
    within = os.path.realpath(given.path)
    hidden = any(part.startswith(".") for part in given.pattern)
    assert isinstance(given.path, Path)
    ignored = Ignored(given.path) if made.gitignore else None
    for root, folders, files in os.walk(
        given.path, onerror=made.unreadable, followlinks=made.follow
    ):
        here = Path(root)
        try:
            status = here.stat()
        except OSError as exc:  # it has gone meanwhile
            made.unreadable(exc)
            continue
        if (status.st_dev, status.st_ino) in seen or _is_index([*folders, *files]):
            folders.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        below = here.relative_to(given.path)
        folders[:] = [
            name
            for name in sorted(folders)
            if (hidden or not name.startswith("."))
            and (not given.pattern or _matches((below / name).parts, given.pattern, partly=True))
            and _is_entered(made, ignored, here / name, f"{(below / name).as_posix()}/", within)
        ]
        is_dataset = _DATASET in files
        for name in sorted(files):
            if _is_note(name, is_dataset):
                continue
            if (hidden or not name.startswith(".")) and given.covers((below / name).as_posix()):
                met += 1
                if ignored and ignored.leaves_out(here / name, is_folder=False):
                    made.left_out += 1
                else:
                    _add_found(made, here / name, (below / name).as_posix(), within)
    return met


def _matches(parts: Sequence[str], pattern: Sequence[str], *, partly: bool = False) -> bool:
    """Tell whether a path matches a glob, or, with `partly`, may hold what does."""
    if not parts or not pattern:
        return partly if pattern else not parts
    if pattern[0] == "**":
        rests = (parts[n:] for n in range(len(parts) + 1))
        return any(_matches(rest, pattern[1:], partly=partly) for rest in rests)
    first = fnmatch.fnmatch(parts[0], pattern[0])
    return first and _matches(parts[1:], pattern[1:], partly=partly)


def _is_entered(made: Plan, ignored: Ignored | None, folder: Path, below: str, within: str) -> bool:
    """Tell whether a folder that was found is read, and count it if not."""
    real = os.path.realpath(folder)
    if real in made.exclude:
        return False
    if folder.is_symlink() and not made.follow:
        made.unfollowed += not PurePath(real).is_relative_to(within)
        return False
    excluded = made.excluded is not None and made.excluded.match_file(below)
    if excluded or (ignored is not None and ignored.leaves_out(folder, is_folder=True)):
        made.left_out += 1
        return False
    return True


def _add_found(made: Plan, path: Path, below: str, within: str) -> None:
    """Add a file that was found in the real folder `within`, unless it is left out."""
    real = os.path.realpath(path)
    if real in made.exclude:
        return
    if path.is_symlink() and not made.follow and not PurePath(real).is_relative_to(within):
        made.unfollowed += 1
    elif _fits(made, path, below) and not _is_ours(path):
        _add(made, path, named=False)


def _fits(made: Plan, path: Path | RemoteFile, below: str) -> bool:
    """Tell whether a file that was found is read, by its name, and count it if not."""
    excluded = made.excluded and made.excluded.match_file(below)
    if excluded or (made.included and not made.included.match_file(below)):
        made.left_out += 1
    elif format_of(path.name) is None:
        made.types[path.suffix.lower() or "without an ending"] += 1
    else:
        return not path.name.endswith(REJECTS)
    return False


def _is_note(name: str, is_dataset: bool) -> bool:
    """Tell whether a file only describes a data set of Hugging Face, or is a cache of it."""
    beside = is_dataset and (name in (_DATASET, "state.json") or name.startswith("cache-"))
    return beside or name == "dataset_dict.json"


def _add(made: Plan, path: Path, *, named: bool) -> None:
    try:
        status = path.stat()
    except OSError as exc:
        made.unreadable(exc)
        return
    if stat.S_ISREG(status.st_mode):
        made.sources.append(Source(path, status.st_size))
    elif named:
        problem = "is not a regular file; pipe it to '-' instead"
        made.sources.append(Source(path, problem=problem))
    else:  # opening a pipe or a device might wait for ever
        made.types["no regular file"] += 1


def _is_index(names: Sequence[str]) -> bool:
    """Tell by the names in a folder whether it is an index."""
    return "index.sqlite" in names and ("segments" in names or "writer.lock" in names)


def _is_ours(path: Path) -> bool:
    """Tell whether a file is one that slice-os wrote: the matches of mining."""
    if path.suffix.lower() not in (".csv", ".jsonl") or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            first = file.readline(_FIRST_LINE).decode("utf-8", "replace").strip()
        if path.suffix.lower() == ".csv":
            return next(csv.reader([first]), []) == _MATCHES
        row = json.loads(first)
    except (OSError, ValueError, csv.Error, RecursionError):
        return False
    return isinstance(row, dict) and list(row) == _MATCHES

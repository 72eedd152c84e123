"""Paths, folders and globs -> the files to read."""

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

from pathspec import GitIgnoreSpec

from slice_os.corpus.formats import format_of
from slice_os.errors import CorpusError
from slice_os.types import Match

REJECTS = ".rejects.jsonl"
"""The ending of the files that list what indexing skipped, which are never read."""
STDIN = "-"
_MATCHES = [field.name for field in fields(Match)]
_FIRST_LINE = 1 << 13


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read, or standard input where `path` is None; `problem`: why it is not read."""

    path: Path | None
    size: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Given:
    """One of the paths that `read` was given; `pattern`: the parts of a glob below `path`.

    `folder` is what the default root is made of.
    """

    path: Path
    folder: Path
    pattern: tuple[str, ...] = ()

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
        """Return the size of all files, None where standard input makes it unknown."""
        if any(source.path is None for source in self.sources):
            return None
        return sum(source.size for source in self.sources)


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
    patterns = [name for name in exclude if isinstance(name, str) and not os.path.lexists(name)]
    made = Plan(
        frozenset(os.path.realpath(path) for path in exclude if path not in patterns),
        _spec(patterns) if patterns else None,
        _spec(include) if include else None,
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
    path = Path(argument)
    if argument == STDIN:
        made.sources.append(Source(None))
    elif argument and path.is_dir():
        # Not path.parent, which of "." is "." again.
        made.given.append(Given(path, Path(os.path.realpath(path)).parent))
        _walk(made, made.given[-1])
    elif argument and path.exists():
        made.given.append(Given(path, path.parent))
        if format_of(path.name) is None:
            problem = f"unknown format {path.suffix or path.name!r}"
            made.sources.append(Source(path, problem=problem))
        else:
            _add(made, path, named=True)
    elif glob.has_magic(argument):
        plain = next(n for n, part in enumerate(path.parts) if glob.has_magic(part))
        base, pattern = Path(*path.parts[:plain]), path.parts[plain:]
        if pattern[-1] == "**":
            pattern = (*pattern, "*")
        made.given.append(Given(base, base, pattern))
        if not _walk(made, made.given[-1]):
            raise CorpusError(f"The pattern {argument!r} matches no file.")
    else:
        raise CorpusError(f"There is no file or folder {argument!r}.")


def _walk(made: Plan, given: Given) -> int:
    """Add the files of a folder, sorted, each real folder once; return how many were met.

    Links, which may form a circle, are followed only if they are asked to be. Of a pattern, the
    files that match it are met; hidden ones only if it asks for them.
    """
    met, seen = 0, set()
    within = os.path.realpath(given.path)
    hidden = any(part.startswith(".") for part in given.pattern)
    ignored = Ignored(given.path) if made.gitignore else None
    for root, folders, files in os.walk(
        given.path, onerror=made.unreadable, followlinks=made.follow
    ):
        here = Path(root)
        status = here.stat()
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
        for name in sorted(files):
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
    excluded = made.excluded and made.excluded.match_file(below)
    if excluded or (made.included and not made.included.match_file(below)):
        made.left_out += 1
    elif path.is_symlink() and not made.follow and not PurePath(real).is_relative_to(within):
        made.unfollowed += 1
    elif format_of(path.name) is None:
        made.types[path.suffix.lower() or "without an ending"] += 1
    elif not _is_ours(path):
        _add(made, path, named=False)


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


class Ignored:
    """Tells what the .gitignore files of a folder leave out, and those above it in its repository.

    They hold where there is no repository, too; what the user names is never left out.
    """

    def __init__(self, folder: Path) -> None:
        real = Path(os.path.realpath(folder))
        above = (real, *real.parents)
        self._top = next((folder for folder in above if (folder / ".git").exists()), real)
        self._specs: dict[Path, GitIgnoreSpec] = {}

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
    return _spec(rules.splitlines())


def _spec(patterns: Sequence[str]) -> GitIgnoreSpec:
    """Return patterns as .gitignore has them; those that are none are passed over."""
    good = []
    for pattern in patterns:
        try:
            GitIgnoreSpec.from_lines([pattern])
        except ValueError:
            continue
        good.append(pattern)
    return GitIgnoreSpec.from_lines(good)


def _is_index(names: Sequence[str]) -> bool:
    """Tell by the names in a folder whether it is an index."""
    return "index.sqlite" in names and ("segments" in names or "writer.lock" in names)


def _is_ours(path: Path) -> bool:
    """Tell whether a file is one that slice-os wrote: rejects, or the matches of mining."""
    if path.name.endswith(REJECTS):
        return True
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

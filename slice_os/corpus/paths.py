"""Paths, folders and globs -> the files to read."""

from __future__ import annotations

import csv
import fnmatch
import glob
import json
import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path, PurePath

from pathspec import GitIgnoreSpec

from slice_os.corpus.formats import format_of
from slice_os.errors import CorpusError
from slice_os.types import Match

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


STDIN = "-"


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
    patterns = [one for one in exclude if isinstance(one, str) and not os.path.lexists(one)]
    made = Plan(
        frozenset(os.path.realpath(path) for path in exclude if path not in patterns),
        spec_of(patterns) if patterns else None,
        spec_of(include) if include else None,
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
        _add_folder(made, path)
    elif argument and path.exists():
        _add_named(made, path)
    elif glob.has_magic(argument):
        _add_glob(made, argument)
    else:
        raise CorpusError(f"There is no file or folder {argument!r}.")


def _add_named(made: Plan, path: Path) -> None:
    made.given.append(Given(path, path.parent))
    if format_of(path.name) is None:
        problem = f"unknown format {path.suffix or path.name!r}"
        made.sources.append(Source(path, problem=problem))
    else:
        _add(made, path, named=True)


def _add_folder(made: Plan, folder: Path) -> None:
    # Not folder.parent, which of "." is "." again.
    made.given.append(Given(folder, Path(os.path.realpath(folder)).parent))
    within = os.path.realpath(folder)
    for path in _walk(made, folder):
        _add_found(made, path, folder, within)


def _add_glob(made: Plan, pattern: str) -> None:
    parts = Path(pattern).parts
    plain = next(place for place, part in enumerate(parts) if glob.has_magic(part))
    base, rest = Path(*parts[:plain]), list(parts[plain:])
    if rest[-1] == "**":
        rest.append("*")  # before Python 3.13, ** alone finds folders only
    _report_unreadable(made, base, rest)
    try:
        matches = sorted(set(base.glob("/".join(rest))))
    except ValueError as exc:
        raise CorpusError(f"The pattern {pattern!r} cannot be used: {exc}.") from exc
    files = [path for path in matches if not path.is_dir() and not _is_hidden(path, base, rest)]
    if not files:
        raise CorpusError(f"The pattern {pattern!r} matches no file.")
    made.given.append(Given(base, base, tuple(rest)))
    within = os.path.realpath(base)
    inside = {
        folder: made.follow or _is_within(folder, within)
        for folder in {path.parent for path in files}
    }
    made.unfollowed += len(inside) - sum(inside.values())
    ignored = Ignored(base) if made.gitignore else None
    for path in files:
        if not inside[path.parent]:
            continue
        if ignored and ignored.leaves_out(path.parent, path.name, is_folder=False):
            made.left_out += 1
        else:
            _add_found(made, path, base, within)


def _matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_matches(parts[n:], pattern[1:]) for n in range(len(parts) + 1))
    found = bool(parts) and fnmatch.fnmatch(parts[0], pattern[0])
    return found and _matches(parts[1:], pattern[1:])


def _is_within(folder: Path, other: str) -> bool:
    return PurePath(os.path.realpath(folder)).is_relative_to(other)


def _report_unreadable(made: Plan, base: Path, rest: list[str]) -> None:
    """Reject the folders that a pattern leads into and that glob, unable to, does not read."""
    for root, folders, _ in os.walk(base, onerror=made.unreadable):
        depth = len(Path(root).relative_to(base).parts)
        if "**" in rest[: depth + 1]:
            asked = folders
        else:
            asked = fnmatch.filter(folders, rest[depth]) if depth + 1 < len(rest) else []
        folders[:] = [one for one in asked if not _is_hidden(Path(root, one), base, rest)]


def _is_hidden(path: Path, base: Path, rest: list[str]) -> bool:
    """Tell whether `path` has a hidden part that the pattern does not ask for."""
    asked = any(part.startswith(".") for part in rest)
    return not asked and any(part.startswith(".") for part in path.relative_to(base).parts)


def _add_found(made: Plan, path: Path, base: Path, within: str) -> None:
    """Add a file that was found below `base`, which is `within` without links, unless left out."""
    real = os.path.realpath(path)
    if real in made.exclude:
        return
    below = path.relative_to(base).as_posix()
    excluded = made.excluded and made.excluded.match_file(below)
    if excluded or (made.included and not made.included.match_file(below)):
        made.left_out += 1
    elif path.is_symlink() and not made.follow and not PurePath(real).is_relative_to(within):
        made.unfollowed += 1
    elif format_of(path.name) is None:
        made.types[path.suffix.lower() or "without an ending"] += 1
    elif not is_ours(path):
        _add(made, path, named=False)


def _add(made: Plan, path: Path, *, named: bool) -> None:
    try:
        status = path.stat()
    except OSError as exc:
        made.sources.append(Source(path, problem=exc.strerror or str(exc)))
        return
    if stat.S_ISREG(status.st_mode):
        made.sources.append(Source(path, status.st_size))
    elif named:
        problem = "is not a regular file; pipe it to '-' instead"
        made.sources.append(Source(path, problem=problem))
    else:  # opening a pipe or a device might wait for ever
        made.types["no regular file"] += 1


def _walk(made: Plan, folder: Path) -> Iterator[Path]:
    """Give the folder's files, sorted, each real folder once: links may form a circle."""
    seen = set()
    within = os.path.realpath(folder)
    ignored = Ignored(folder) if made.gitignore else None
    for root, folders, files in os.walk(folder, onerror=made.unreadable, followlinks=made.follow):
        here = Path(root)
        status = here.stat()
        if (status.st_dev, status.st_ino) in seen or is_index([*folders, *files]):
            folders.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        visible = sorted(name for name in folders if not name.startswith("."))
        folders[:] = [name for name in visible if not _is_shut(made, ignored, here, name, folder)]
        if not made.follow:
            links = [here / name for name in folders if (here / name).is_symlink()]
            made.unfollowed += sum(not _is_within(link, within) for link in links)
        for name in sorted(files):
            if name.startswith("."):
                continue
            if ignored and ignored.leaves_out(here, name, is_folder=False):
                made.left_out += 1
            else:
                yield here / name


def _is_shut(made: Plan, ignored: Ignored | None, root: Path, name: str, top: Path) -> bool:
    """Tell whether a folder is left out with all that is in it."""
    path = root / name
    if os.path.realpath(path) in made.exclude:
        return True
    below = f"{path.relative_to(top).as_posix()}/"
    shut = bool(made.excluded and made.excluded.match_file(below)) or bool(
        ignored and ignored.leaves_out(root, name, is_folder=True)
    )
    made.left_out += shut
    return shut

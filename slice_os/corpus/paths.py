"""What the user names -> the files to read, with ids that no working directory changes."""

from __future__ import annotations

import fnmatch
import glob
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from slice_os.corpus.formats import format_of
from slice_os.errors import CorpusError
from slice_os.records import Reject

STDIN = "-"


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read, or standard input where `path` is None."""

    path: Path | None
    id: str
    size: int = 0


@dataclass(slots=True)
class Plan:
    """Everything that `read` was given, in order; `ignored` files have no known format.

    `exclude` holds the files, as they are without links, that are passed over where they are found.
    """

    exclude: frozenset[str] = frozenset()
    entries: list[Source | Reject] = field(default_factory=list)
    ignored: int = 0

    def unreadable(self, exc: OSError) -> None:
        """Reject what an error names."""
        self.entries.append(Reject(str(exc.filename), exc.strerror or str(exc)))

    def bytes_total(self) -> int | None:
        """Return the size of all files, None where standard input makes it unknown."""
        sources = [entry for entry in self.entries if isinstance(entry, Source)]
        if any(source.path is None for source in sources):
            return None
        return sum(source.size for source in sources)


def plan(arguments: list[str], exclude: Sequence[str | os.PathLike[str]] = ()) -> Plan:
    """List the files of all arguments; a `CorpusError` names one that leads to nothing."""
    made = Plan(frozenset(os.path.realpath(path) for path in exclude))
    for argument in arguments:
        try:
            _add_argument(made, argument)
        except OSError as exc:
            raise CorpusError(f"{argument!r} cannot be read: {exc.strerror}.") from exc
    return made


def _add_argument(made: Plan, argument: str) -> None:
    path = Path(argument)
    if argument == STDIN:
        made.entries.append(Source(None, "stdin"))
    elif argument and path.is_dir():
        _add_folder(made, path)
    elif argument and path.exists():
        _add_named(made, path)
    elif glob.has_magic(argument):
        _add_glob(made, argument)
    else:
        raise CorpusError(f"There is no file or folder {argument!r}.")


def _add_named(made: Plan, path: Path) -> None:
    if format_of(path.name) is None:
        made.entries.append(Reject(str(path), f"unknown format {path.suffix or path.name!r}"))
    else:
        _add(made, path, path.name, named=True)


def _add_folder(made: Plan, folder: Path) -> None:
    name = _name(folder)
    for path in _walk(made, folder):
        _add_found(made, path, folder, name)


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
    for path in files:
        _add_found(made, path, base, _name(base))


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


def _name(folder: Path) -> str:
    return Path(os.path.abspath(folder)).name  # noqa: PTH100  # resolve() would follow a link


def _add_found(made: Plan, path: Path, base: Path, name: str) -> None:
    if made.exclude and os.path.realpath(path) in made.exclude:
        return
    if format_of(path.name) is None:
        made.ignored += 1
    else:
        _add(made, path, (Path(name) / path.relative_to(base)).as_posix(), named=False)


def _add(made: Plan, path: Path, identity: str, *, named: bool) -> None:
    try:
        status = path.stat()
    except OSError as exc:
        made.entries.append(Reject(str(path), exc.strerror or str(exc)))
        return
    if stat.S_ISREG(status.st_mode):
        made.entries.append(Source(path, identity, status.st_size))
    elif named:
        made.entries.append(Reject(str(path), "is not a regular file; pipe it to '-' instead"))
    else:  # opening a pipe or a device might wait for ever
        made.ignored += 1


def _walk(made: Plan, folder: Path) -> Iterator[Path]:
    """Give the folder's files, sorted, each real folder once: links may form a circle."""
    seen = set()
    for root, folders, files in os.walk(folder, onerror=made.unreadable, followlinks=True):
        status = Path(root).stat()
        if (status.st_dev, status.st_ino) in seen:
            folders.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if not name.startswith("."):
                yield Path(root) / name

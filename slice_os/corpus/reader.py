"""Files -> documents, one at a time, with everything that was skipped counted and named."""

from __future__ import annotations

import gzip
import io
import logging
import os
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain, groupby
from pathlib import Path
from typing import BinaryIO, cast

from slice_os.corpus.encodings import as_utf8, check_encoding, guess_note, open_as
from slice_os.corpus.file_metadata import about_file, modified_at
from slice_os.corpus.formats import FORMATS, Row, Rows, Whole, format_by, format_of, is_compressed
from slice_os.corpus.limits import PACKED_BYTES, check_text, read_all
from slice_os.corpus.parse_process import parse_apart, rows_apart
from slice_os.corpus.paths import STDIN, Plan, Source, plan
from slice_os.corpus.remote import RemoteFile
from slice_os.corpus.roots import RootedPath, Roots, claim, locate, owner
from slice_os.corpus.rows import Fields, clean, to_document
from slice_os.errors import CorpusError, MissingExtraError
from slice_os.text.filters import as_utc
from slice_os.text.normal_form import without_typesetting
from slice_os.types import Document, Reject, content_hash

_log = logging.getLogger(__name__)

OnReject = Callable[[Reject], None]
_ROWS_LOOKED_AT = 100
"""Rows by which it is told which field is the text,"""
_CHARACTERS_LOOKED_AT = 1 << 21
"""or fewer, if they are long."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How files are read; see `read`."""

    fields: Fields
    encoding: str = ""
    whole_page: bool = False
    id_global: bool = False
    on_reject: OnReject | None = None
    root: str | None = None
    id_prefix: str | None = None
    stdin_id: str | None = None


class Corpus:
    """The documents that `read` found, to be iterated; the attributes change as it goes.

    `rejects` counts what should have been a document and is none, `ignored` the files of a folder
    or pattern that have no known format (`types` by their endings), `left_out` the files and
    folders that .gitignore, `exclude` or `include` leave out, `unfollowed` the links out of the
    tree, `repaired` the documents in which bytes that are not of their encoding became U+FFFD
    (logged as a warning too). `bytes_total` is None with standard input. Each iteration reads, and
    counts, from the start.
    """

    def __init__(self, made: Plan, reading: Reading) -> None:
        self._plan, self._reading = made, reading
        self.bytes_total = made.bytes_total()
        self.types: Counter[str] = made.types
        self.ignored = sum(made.types.values())
        self.unfollowed, self.left_out = made.unfollowed, made.left_out
        self._wanted: Callable[[str], bool] = bool
        self.under({})
        self._reset()

    def under(self, known: Roots) -> dict[str, str]:
        """Take the ids from now on from an index's roots; return its roots, a new one included.

        Raises:
            CorpusError: a path lies outside of them, or the root asked for cannot be one.
        """
        given = self._plan.given
        roots = claim(known, given, self._reading.root, self._reading.id_prefix)
        self._roots = roots
        located = [(path, locate(roots, path.path)) for path in given]
        self._given = [(path, _cleaned(at)) for path, at in located if at is not None]
        paths: list[Path | RemoteFile | str] = [path.path for path in given if not path.pattern]
        paths += [source.path for source in self._plan.sources if source.path is not None]
        self._located = {path: self._locate(path) for path in paths}
        return roots

    def _locate(self, path: Path | RemoteFile | str) -> RootedPath:
        place = locate(self._roots, path.url if isinstance(path, RemoteFile) else path)
        if place is None:
            raise CorpusError(
                f"{clean(str(path))!r} is not in {' or '.join(self._roots.values())}",
                hint="leave out --root and --id-prefix, or give --root FOLDER with a folder that "
                "holds it.",
            )
        return place

    def covers(self, source: str) -> bool:
        """Tell whether a file of this id, were it there, would have been read and not rejected.

        What an index has of it, and this corpus has not, is gone.
        """
        prefix = owner(self._roots, source)
        path = source.removeprefix(prefix)
        if not source or any(RootedPath(prefix, part) in self._failed for part in _upwards(path)):
            return False
        return any(
            at.prefix == prefix
            and (at.path in ("", path) or path.startswith(f"{at.path}/"))
            and given.covers(path.removeprefix(at.path).lstrip("/"))
            for given, at in self._given
        )

    def parts(self, most: int) -> list[Corpus]:
        """Return corpora that are this one together, of some files each; they can be pickled.

        Raises:
            CorpusError: standard input is part of it.
        """
        by_place: dict[RootedPath, Source] = {}
        for source in self._plan.sources:
            if source.path is None:
                raise CorpusError("Standard input is read here alone: give files or URLs.")
            by_place.setdefault(self._located[source.path], source)
        sources = list(by_place.values())
        parts = []
        for start in range(min(most, len(sources))):
            part = copy(self)
            part._plan = replace(self._plan, sources=sources[start::most])
            part._reading = replace(self._reading, on_reject=None)
            parts.append(part)
        return parts

    def reject_to(self, on_reject: OnReject) -> None:
        """Hand what is rejected from now on to another function."""
        self._reading = replace(self._reading, on_reject=on_reject)

    def only(self, wanted: Callable[[str], bool]) -> None:
        """Pass over files that are one document each, unless their ids are `wanted`."""
        self._wanted = wanted

    def _reset(self) -> None:
        self.bytes_done = self.documents = self.rejects = self.repaired = 0
        self._failed: set[RootedPath] = set()

    def __iter__(self) -> Iterator[Document]:
        self._reset()
        seen: set[RootedPath] = set()
        for source in self._plan.sources:
            at = self._located[source.path] if source.path is not None else None
            if at in seen:  # the same file by another name
                continue
            before, rejects = self.bytes_done, self.rejects
            documents = self._stdin() if at is None else self._file(source, at)
            for document in documents:
                self.documents += 1
                yield document
            self.bytes_done = before + (source.size or 0)
            if at is not None:
                seen.add(at)
                if self.rejects > rejects:
                    self._failed.add(_cleaned(at))

    def _reject(self, place: str, reason: str | Exception) -> None:
        self.rejects += 1
        if self._reading.on_reject is not None:
            reason = " ".join(clean(str(reason)).split())
            self._reading.on_reject(Reject(clean(place), reason))

    def _stdin(self) -> Iterator[Document]:
        try:
            data = read_all(sys.stdin.buffer)
            document = self._whole(STDIN, data, cast(Whole, FORMATS[".txt"]), "stdin")
        except CorpusError as exc:
            self._reject("stdin", exc)
        else:
            name = self._reading.stdin_id or f"stdin-{content_hash(document.text)}"
            yield replace(document, id=(self._reading.id_prefix or "") + name)

    def _file(self, source: Source, at: RootedPath) -> Iterator[Document]:
        assert source.path is not None
        place, identity = str(source.path), clean(at.id)
        if not self._wanted(identity) and not isinstance(format_of(place), Rows):
            return
        if source.problem:
            self._reject(place, source.problem)
        elif (other := owner(self._roots, at.id)) != at.prefix:
            root = self._roots[other]
            self._reject(place, f"its id {at.id!r} would be one of the root {root}: rename it")
        else:
            try:
                with source.path.open("rb") as file:
                    modified = modified_at(source.path, file)
                    for document in self._opened(file, modified, place, identity, at.prefix):
                        yield replace(document, source=identity)
            except (EOFError, zlib.error, gzip.BadGzipFile) as exc:
                self._reject(place, f"the .gz is cut off or damaged: {exc}")
            except OSError as exc:
                self._reject(place, exc.strerror or exc)
            except (CorpusError, MissingExtraError, RecursionError) as exc:
                self._reject(place, exc if format_of(place) else f"unknown format: {exc}")

    def _opened(
        self, file: BinaryIO, modified: float | None, place: str, identity: str, prefix: str
    ) -> Iterator[Document]:
        stream = cast(BinaryIO, gzip.GzipFile(fileobj=file)) if is_compressed(place) else file
        kind = format_of(place)
        if not isinstance(kind, Rows):
            data = read_all(stream, kind.largest) if kind else read_all(stream)
            about = about_file(identity, modified)
            document = self._whole(identity, data, kind or format_by(data), place)
            yield replace(document, metadata={**about, **document.metadata})
        else:
            before = self.bytes_done
            for within, rows in groupby(
                self._rows(kind, stream, is_compressed(place)), lambda row: row.within
            ):
                for document in self._table(kind, rows, identity, prefix, f"{place}#{within}"):
                    yield document
                    if not file.closed:  # at its end it is
                        self.bytes_done = before + file.tell()

    def _whole(self, identity: str, data: bytes, kind: Whole, place: str) -> Document:
        """Return the document that a file is."""
        if self._reading.encoding and kind.encoded:
            data = as_utf8(data, self._reading.encoding)
        parse = (self._reading.whole_page and kind.whole_page) or kind.parse
        parsed = parse_apart(parse, data) if kind.apart else parse(data)
        check_text(parsed.text)
        # Of files whose source is the text it stays, so that offsets are those of the file.
        text = clean(without_typesetting(parsed.text) if kind.apart else parsed.text)
        if not text.strip():
            raise CorpusError("no text")
        if parsed.guess:
            _log.warning("%s: %s", clean(place), guess_note(parsed.guess))
        if parsed.broken:
            self.repaired += 1
            _log.warning("%s: %d broken places became U+FFFD.", clean(place), parsed.broken)
        title = clean(parsed.title).strip()
        about_it = {"title": title, "author": parsed.author, "date": as_utc(parsed.date)}
        about_it = {name: clean(value).strip() for name, value in about_it.items() if parsed.says}
        return Document(
            identity,
            text,
            title,
            {**parsed.metadata, **{name: value for name, value in about_it.items() if value}},
        )

    def _rows(self, kind: Rows, stream: BinaryIO, is_packed: bool) -> Iterator[Row]:
        if kind.apart:
            if kind.largest or is_packed:
                stream = io.BytesIO(read_all(stream, kind.largest or PACKED_BYTES))
            return rows_apart(kind.parse, getattr(stream, "raw", stream))
        if self._reading.encoding and kind.encoded:
            return kind.parse(cast(BinaryIO, open_as(stream, self._reading.encoding)))
        return kind.parse(stream)

    def _table(
        self, kind: Rows, rows: Iterator[Row], source: str, prefix: str, place: str
    ) -> Iterator[Document]:
        """Yield the documents of a table, which is a file or a sheet of one."""
        first, rows = _first(rows)
        values = [row.values for row in first if not row.problem]
        fields, note = self._reading.fields.guessed(values)
        if note:
            _log.warning("%s: %s", clean(place.removesuffix("#")), note)
        elif kind.columns and values and (lack := fields.lacking(values)):
            raise CorpusError(lack)
        for row in chain(first, rows):
            if row.problem:
                self._reject(f"{place}{row.number}", row.problem)
                continue
            try:
                document = to_document(row.values, fields, "")
            except (CorpusError, RecursionError) as exc:
                self._reject(f"{place}{row.number}", exc)
                continue
            if document.id and self._reading.id_global:
                identity = prefix + document.id
            else:
                identity = f"{source}#{row.within}{document.id or row.number}"
            about = {"path": source, **({"sheet": row.within[:-1]} if row.within else {})}
            kept = document.metadata
            if kind.columns:
                kept = {name: value for name, value in kept.items() if value != ""}
            yield replace(document, id=clean(identity), metadata={**about, **kept})


def _first(rows: Iterator[Row]) -> tuple[list[Row], Iterator[Row]]:
    """Return the first of some rows, and those that follow, or the error that follows."""
    first: list[Row] = []
    size = 0
    try:
        for row in rows:
            first.append(row)
            size += sum(len(value) for value in row.values.values() if isinstance(value, str))
            if len(first) == _ROWS_LOOKED_AT or size > _CHARACTERS_LOOKED_AT:
                break
    except Exception as exc:  # what was read before it is good
        return first, map(_raise, [exc])
    return first, rows


def _raise(exc: Exception) -> Row:
    raise exc


def _cleaned(location: RootedPath) -> RootedPath:
    return location._replace(path=clean(location.path))


def _upwards(path: str) -> Iterator[str]:
    """Yield a path, the folders that hold it and, empty, the root."""
    while path:
        yield path
        path = path.rpartition("/")[0]
    yield ""


def read(
    *paths: str | os.PathLike[str],
    root: str | os.PathLike[str] | None = None,
    id_prefix: str | None = None,
    id: str | None = None,
    id_field: str | None = None,
    id_global: bool = False,
    title_field: str | None = None,
    text_fields: Sequence[str] | str | None = None,
    follow: bool = False,
    on_reject: OnReject | None = None,
    exclude: Sequence[str | os.PathLike[str]] = (),
    include: Sequence[str] = (),
    gitignore: bool = True,
    encoding: str | None = None,
    whole_page: bool = False,
) -> Corpus:
    """Return the documents of files, folders, globs, URLs and ``-`` (plain text on standard input).

    URLs are those of fsspec (``s3://bucket/folder``, ``gs://``, ``az://``, ``https://``), globs of
    them included; credentials are those of the environment.

    >>> [document.id for document in slice_os.read("notes")]
    ['notes/call-1.txt', 'notes/call-2.txt']

    A file's id is its path under a root, with ``/`` between the parts. The root is the folder
    `root`, or the one that all paths have in common (of a folder the one that it lies in); an index
    remembers it. `id_prefix` stands before the ids. The id of standard input is `id`, or made of a
    hash of its text.

    Each row of a table, line of a .jsonl, member of a .json, message of an .mbox and some sentences
    of .srt and .vtt are a document; docs/formats.md says which fields make its text. `text_fields`
    names them (``*`` for all, ``messages[].content`` for a field of each object of a list),
    `title_field` its title, and `id_field` its id, which begins with the id of its file unless
    `id_global` is true. All other fields are metadata.

    The metadata of any other file are its path, folder, name, extension and when it was modified
    (UTC, ``2026-01-31T12:00:00Z``); and, where it says so, its title, author and date, and the
    front matter of a .md. Of web pages navigation and cookie banners are left out unless
    `whole_page` is true. `encoding` is that of all texts that do not tell theirs.

    What cannot be read is handed to `on_reject` when it is met. A file of unknown format is read as
    text if it is named, and left out of folders and globs. Of these, `exclude` leaves out files,
    folders and patterns as in a .gitignore, and `include` all that fit none of its patterns; what
    .gitignore names is left out unless `gitignore` is false, links out of the folder unless
    `follow` is true, and what slice-os wrote always.

    Raises:
        CorpusError: a path does not exist or lies outside of the root.
    """
    names = (text_fields,) if isinstance(text_fields, str) else text_fields
    reading = Reading(
        Fields(id_field, title_field, tuple(names) if names else None),
        check_encoding(encoding) if encoding else "",
        whole_page,
        id_global,
        on_reject,
        None if root is None else os.fspath(root),
        id_prefix,
        id,
    )
    made = plan([os.fspath(path) for path in paths], exclude, include, follow, gitignore)
    return Corpus(made, reading)

"""Files -> documents, one at a time, with everything that was skipped counted and named."""

from __future__ import annotations

import gzip
import logging
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, cast

from slice_os.corpus.cleaning import clean
from slice_os.corpus.formats import Rows, format_of, is_compressed, plain
from slice_os.corpus.formats.parsed import Parsed
from slice_os.corpus.paths import Plan, Source, plan
from slice_os.corpus.rows import Fields, Row, to_document
from slice_os.errors import CorpusError, MissingExtraError
from slice_os.records import Document, Reject

_log = logging.getLogger(__name__)

OnReject = Callable[[Reject], None]


class Corpus:
    """The documents that `read` found, to be iterated; the attributes change as it goes.

    `rejects` counts what should have been a document and is none, `ignored` the files of a folder
    or pattern that have no known format, `repaired` the documents in which bytes that are not of
    their encoding became U+FFFD (logged as a warning too). `bytes_total` is None with standard
    input. Each iteration reads, and counts, from the start.
    """

    def __init__(self, made: Plan, fields: Fields, on_reject: OnReject | None) -> None:
        self._plan = made
        self._fields = fields
        self._on_reject = on_reject
        self.bytes_total = made.bytes_total()
        self.ignored = made.ignored
        self._reset()

    def _reset(self) -> None:
        self.bytes_done = 0
        self.documents = 0
        self.rejects = 0
        self.repaired = 0

    def __iter__(self) -> Iterator[Document]:
        self._reset()
        for entry in self._plan.entries:
            if isinstance(entry, Reject):
                self._reject(entry.place, entry.reason)
                continue
            before = self.bytes_done
            for document in self._read(entry):
                self.documents += 1
                yield document
            self.bytes_done = before + entry.size

    def _reject(self, place: str, reason: str) -> None:
        self.rejects += 1
        if self._on_reject is not None:
            self._on_reject(Reject(clean(place), " ".join(clean(reason).split())))

    def _read(self, source: Source) -> Iterator[Document]:
        if source.path is None:
            yield from self._whole(source.id, sys.stdin.buffer.read(), plain.parse, source.id)
            return
        place = str(source.path)
        try:
            with source.path.open("rb") as file:
                yield from self._read_file(source, place, file)
        except (EOFError, zlib.error, gzip.BadGzipFile) as exc:
            self._reject(place, f"the .gz is cut off or damaged: {exc}")
        except OSError as exc:
            self._reject(place, exc.strerror or str(exc))
        except CorpusError as exc:
            self._reject(place, str(exc))

    def _read_file(self, source: Source, place: str, file: BinaryIO) -> Iterator[Document]:
        stream = cast(BinaryIO, gzip.GzipFile(fileobj=file)) if is_compressed(place) else file
        kind = format_of(place)
        if isinstance(kind, Rows):
            before = self.bytes_done
            for row in kind.parse(stream):
                yield from self._row(source, place, row)
                self.bytes_done = before + file.tell()
        elif kind is not None:
            yield from self._whole(source.id, stream.read(), kind.parse, place)

    def _whole(
        self, identity: str, data: bytes, parse: Callable[[bytes], Parsed], place: str
    ) -> Iterator[Document]:
        try:
            parsed = parse(data)
        except (CorpusError, MissingExtraError, RecursionError) as exc:
            self._reject(place, str(exc))
            return
        text = clean(parsed.text)
        if not text.strip():
            self._reject(place, "no text")
            return
        if parsed.broken:
            self.repaired += 1
            _log.warning("%s: %d broken places became U+FFFD.", clean(place), parsed.broken)
        yield Document(clean(identity), text, clean(parsed.title).strip())

    def _row(self, source: Source, place: str, row: Row) -> Iterator[Document]:
        if row.problem:
            self._reject(f"{place}#{row.number}", row.problem)
            return
        try:
            yield to_document(row.values, self._fields, f"{clean(source.id)}#{row.number}")
        except (CorpusError, RecursionError) as exc:
            self._reject(f"{place}#{row.number}", str(exc))


def read(
    *paths: str | os.PathLike[str],
    id_field: str | None = None,
    title_field: str | None = None,
    text_fields: Sequence[str] | str | None = None,
    on_reject: OnReject | None = None,
    exclude: Sequence[str | os.PathLike[str]] = (),
) -> Corpus:
    """Return the documents of files, folders, globs and ``-`` (plain text on standard input).

    A row of a .jsonl, .csv or .tsv is a document: its text is that of `text_fields`, joined by
    line ends (else the first of text, content, contents, body, passage, message that holds one),
    its title that of `title_field` (else title), its id that of `id_field` (else id or _id, else
    ``<file>#<row>``); fields of objects are named ``object.field``, and the fields left over are
    metadata. A title is also the first line of the text, unless it is one of its fields.
    What cannot be read is handed to `on_reject` when it is met; a path that does not exist is a
    `CorpusError` at once. Files of `exclude` are passed over where a folder or a glob holds them.
    """
    names = (text_fields,) if isinstance(text_fields, str) else text_fields
    fields = Fields(id_field, title_field, tuple(names) if names else None)
    return Corpus(plan([os.fspath(path) for path in paths], exclude), fields, on_reject)

"""The formats that can be read: one row each here, one module each beside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import BinaryIO

from slice_os.corpus.formats import (
    delimited,
    docx,
    html,
    json_lines,
    json_whole,
    markdown,
    pdf,
    plain,
    xlsx,
)
from slice_os.corpus.formats.parsed import Parsed
from slice_os.corpus.limits import PACKED_BYTES, TEXT_BYTES
from slice_os.corpus.rows import Row


@dataclass(frozen=True, slots=True)
class Whole:
    """A format of which a file is one document, of at most so many bytes."""

    parse: Callable[[bytes], Parsed]
    largest: int = TEXT_BYTES


@dataclass(frozen=True, slots=True)
class Rows:
    """A format of which a file is read row by row, each a document.

    With `columns`, what one row lacks all of them lack.
    """

    parse: Callable[[BinaryIO], Iterator[Row]]
    columns: bool = False


Format = Whole | Rows

FORMATS: dict[str, Format] = {
    ".txt": Whole(plain.parse),
    ".md": Whole(markdown.parse),
    ".html": Whole(html.parse),
    ".htm": Whole(html.parse),
    ".pdf": Whole(pdf.parse, PACKED_BYTES),
    ".docx": Whole(docx.parse, PACKED_BYTES),
    ".xlsx": Rows(xlsx.parse),
    ".json": Rows(json_whole.parse),
    ".jsonl": Rows(json_lines.parse),
    ".ndjson": Rows(json_lines.parse),
    ".csv": Rows(delimited.parse_csv, columns=True),
    ".tsv": Rows(delimited.parse_tsv, columns=True),
}


def format_of(name: str) -> Format | None:
    """Return the format that a file's name tells, with or without ``.gz``, or None."""
    path = PurePath(name.lower())
    return FORMATS.get(PurePath(path.stem).suffix if is_compressed(name) else path.suffix)


def is_compressed(name: str) -> bool:
    """Tell whether a file of this name is read through gzip."""
    return name.lower().endswith(".gz")

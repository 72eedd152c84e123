"""The formats that can be read: one row each here, one module each beside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import BinaryIO

from slice_os.corpus.formats import delimited, docx, html, json_lines, markdown, pdf, plain
from slice_os.corpus.formats.parsed import Parsed
from slice_os.corpus.rows import Row


@dataclass(frozen=True, slots=True)
class Whole:
    """A format of which a file is one document."""

    parse: Callable[[bytes], Parsed]


@dataclass(frozen=True, slots=True)
class Rows:
    """A format of which a file is read row by row, each a document."""

    parse: Callable[[BinaryIO], Iterator[Row]]


Format = Whole | Rows

FORMATS: dict[str, Format] = {
    ".txt": Whole(plain.parse),
    ".md": Whole(markdown.parse),
    ".html": Whole(html.parse),
    ".htm": Whole(html.parse),
    ".pdf": Whole(pdf.parse),
    ".docx": Whole(docx.parse),
    ".jsonl": Rows(json_lines.parse),
    ".ndjson": Rows(json_lines.parse),
    ".csv": Rows(delimited.parse_csv),
    ".tsv": Rows(delimited.parse_tsv),
}


def format_of(name: str) -> Format | None:
    """Return the format that a file's name tells, with or without ``.gz``, or None."""
    path = PurePath(name.lower())
    return FORMATS.get(PurePath(path.stem).suffix if is_compressed(name) else path.suffix)


def is_compressed(name: str) -> bool:
    """Tell whether a file of this name is read through gzip."""
    return name.lower().endswith(".gz")

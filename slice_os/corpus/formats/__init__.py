"""The formats that can be read: a module each beside, and a row each in `FORMATS`.

Another one is added from outside: ``FORMATS[".ext"] = Whole(parse)`` or ``Rows(parse)``.
"""

from __future__ import annotations

from pathlib import PurePath

from slice_os.corpus.formats import delimited, docx, html, json, pdf, text, xlsx
from slice_os.corpus.formats.base import Format, Parsed, Row, Rows, Whole
from slice_os.corpus.limits import PACKED_BYTES

__all__ = ["FORMATS", "Format", "Parsed", "Row", "Rows", "Whole", "format_of", "is_compressed"]

FORMATS: dict[str, Format] = {
    ".txt": Whole(text.parse_plain),
    ".md": Whole(text.parse_markdown),
    ".html": Whole(html.parse),
    ".htm": Whole(html.parse),
    ".pdf": Whole(pdf.parse, PACKED_BYTES),
    ".docx": Whole(docx.parse, PACKED_BYTES),
    ".xlsx": Rows(xlsx.parse),
    ".json": Rows(json.parse),
    ".jsonl": Rows(json.parse_lines),
    ".ndjson": Rows(json.parse_lines),
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

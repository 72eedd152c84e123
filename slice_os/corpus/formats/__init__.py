"""The formats that can be read: a module each beside, and a row each in `FORMATS`.

Another one is added from outside: ``FORMATS[".ext"] = Whole(parse)`` or ``Rows(parse)``.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import cast

from slice_os.corpus.formats import (
    columnar,
    delimited,
    epub,
    html,
    json,
    mail,
    notebook,
    office,
    pdf,
    subtitles,
    text,
    xlsx,
)
from slice_os.corpus.formats.base import Format, Parsed, Row, Rows, Whole
from slice_os.corpus.limits import PACKED_BYTES

__all__ = [
    "FORMATS",
    "Format",
    "Parsed",
    "Row",
    "Rows",
    "Whole",
    "format_by",
    "format_of",
    "is_compressed",
]

_FORMATS: list[tuple[str, Format]] = [
    (".txt", Whole(text.parse_plain, encoded=True)),
    (".md .markdown", Whole(text.parse_markdown, encoded=True)),
    (".rst", Whole(text.parse_rst, encoded=True)),
    (".adoc .asciidoc", Whole(text.parse_asciidoc, encoded=True)),
    (".org", Whole(text.parse_org, encoded=True)),
    (
        ".html .htm .xhtml",
        Whole(html.parse, apart=True, encoded=True, whole_page=html.parse_whole_page),
    ),
    (".pdf", Whole(pdf.parse, PACKED_BYTES, apart=True)),
    (".docx .docm", Whole(office.parse_docx, PACKED_BYTES, apart=True)),
    (".doc", Whole(office.parse_doc, PACKED_BYTES, apart=True)),
    (".rtf", Whole(office.parse_rtf, PACKED_BYTES, apart=True)),
    (".odt .odp", Whole(office.parse_open, PACKED_BYTES, apart=True)),
    (".pptx .pptm", Whole(office.parse_pptx, PACKED_BYTES, apart=True)),
    (".ppt", Whole(office.parse_ppt, PACKED_BYTES, apart=True)),
    (".epub", Whole(epub.parse, PACKED_BYTES, apart=True)),
    (".ipynb", Whole(notebook.parse, apart=True, encoded=True)),
    (".eml", Whole(mail.parse, apart=True)),
    (".msg", Whole(office.parse_msg, PACKED_BYTES, apart=True)),
    (".mbox", Rows(mail.parse_mbox)),
    (".srt .vtt", Rows(subtitles.parse, encoded=True)),
    (".xlsx .xlsm .xls .ods", Rows(xlsx.parse, PACKED_BYTES, columns=True, apart=True)),
    (".json", Rows(json.parse, encoded=True)),
    (".jsonl .ndjson", Rows(json.parse_lines, encoded=True)),
    (".csv", Rows(delimited.parse_csv, columns=True, encoded=True)),
    (".tsv", Rows(delimited.parse_tsv, columns=True, encoded=True)),
    (".parquet", Rows(columnar.parse_parquet, columns=True, apart=True)),
    (".arrow .feather", Rows(columnar.parse_arrow, columns=True, apart=True)),
]
FORMATS = {ending: kind for endings, kind in _FORMATS for ending in endings.split()}


def format_of(name: str) -> Format | None:
    """Return the format that a file's name tells, with or without ``.gz``, or None."""
    path = PurePath(name.lower())
    return FORMATS.get(PurePath(path.stem).suffix if is_compressed(name) else path.suffix)


def format_by(data: bytes) -> Whole:
    """Return the format of a file whose name tells none: a page that begins as one, or text."""
    is_page = re.match(rb"(\xef\xbb\xbf)?\s*<(!doctype\s+html|html)\b", data, re.IGNORECASE)
    return cast(Whole, FORMATS[".html" if is_page else ".txt"])


def is_compressed(name: str) -> bool:
    """Tell whether a file of this name is read through gzip."""
    return name.lower().endswith(".gz")

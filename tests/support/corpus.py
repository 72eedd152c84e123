"""Files as a corpus reads them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from openpyxl import Workbook

from slice_os.corpus import read
from slice_os.types import Document, Reject


def read_file(
    folder: Path, name: str, data: str | bytes, **options: Any
) -> tuple[list[Document], list[Reject]]:
    """Return the documents of a file that is written to a folder, and what is rejected of it."""
    (folder / name).write_bytes(data.encode() if isinstance(data, str) else data)
    rejects: list[Reject] = []
    return list(read(folder / name, on_reject=rejects.append, **options)), rejects


def read_all(folder: Path, name: str, data: str | bytes) -> list[Document]:
    """Return the documents of a file of which nothing is rejected."""
    documents, rejects = read_file(folder, name, data)
    assert rejects == []
    return documents


def read_one(folder: Path, name: str, data: str | bytes) -> Document:
    """Return the one document of a file."""
    (document,) = read_all(folder, name, data)
    return document


def read_rows(
    folder: Path, name: str, data: str | bytes, **fields: Any
) -> tuple[list[Document], list[tuple[str, str]]]:
    """Return the rows of a file without what all have of it, and places and reasons of rejects."""
    found, rejects = read_file(folder, name, data, **fields)
    documents = []
    for document in found:
        about = dict(document.metadata)
        assert about.pop("path") == name == document.source
        documents.append(replace(document, metadata=about, source=""))
    return documents, [(reject.place.rpartition("#")[2], reject.reason) for reject in rejects]


def read_sound(folder: Path, name: str, data: str | bytes, **fields: Any) -> list[Document]:
    """Return the rows of a file in which nothing is rejected."""
    documents, rejects = read_rows(folder, name, data, **fields)
    assert rejects == []
    return documents


def workbook(**sheets: Sequence[Sequence[object]]) -> bytes:
    """Return an .xlsx file of some sheets with their rows."""
    book = Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()

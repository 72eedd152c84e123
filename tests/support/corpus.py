"""Files of rows as a corpus reads them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from openpyxl import Workbook

from slice_os.corpus import read
from slice_os.types import Document, Reject


def read_rows(
    folder: Path, name: str, data: str | bytes, **fields: Any
) -> tuple[list[Document], list[tuple[str, str]]]:
    (folder / name).write_bytes(data.encode() if isinstance(data, str) else data)
    rejects: list[Reject] = []
    documents = []
    for found in read(folder / name, on_reject=rejects.append, **fields):
        about = dict(found.metadata)
        assert about.pop("path") == name == found.source
        documents.append(replace(found, metadata=about, source=""))
    return documents, [(r.place.rpartition("#")[2], r.reason) for r in rejects]


def read_sound(folder: Path, name: str, data: str | bytes, **fields: Any) -> list[Document]:
    """Return the documents of a file in which nothing is rejected."""
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

"""Workbooks, by python-calamine of the extra `documents`: a header row, then a document a row."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from typing import Any, BinaryIO

from slice_os.corpus.formats.base import Row, readable
from slice_os.corpus.formats.tables import Cells, table_rows
from slice_os.errors import MissingExtraError


def parse(stream: BinaryIO) -> Iterator[Row]:
    """Give the rows of all sheets, within ``Sheet!``; empty columns and rows are left out."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError as exc:
        raise MissingExtraError("Reading workbooks", "documents") from exc
    with readable("workbook", (CalamineError, ValueError, OSError)):
        book = CalamineWorkbook.from_filelike(stream)
        for name in book.sheet_names:
            rows = book.get_sheet_by_name(name).iter_rows()
            cells = [Cells(n, list(map(_value, row))) for n, row in enumerate(rows, start=1)]
            if filled := _columns(cells):
                yield from table_rows(iter(filled), f"{name}!")


def _columns(cells: list[Cells]) -> list[Cells]:
    """Return rows that are not empty, without the columns that are empty in all of them."""
    rows = [row for row in cells if any(value != "" for value in row.values)]
    kept = sorted({n for row in rows for n, value in enumerate(row.values) if value != ""})
    return [
        row._replace(values=[row.values[n] if n < len(row.values) else "" for n in kept])
        for row in rows
    ]


def _value(cell: Any) -> Any:
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return int(cell)
    if isinstance(cell, date | datetime | time):
        return cell.isoformat()
    if isinstance(cell, timedelta):
        return str(cell)
    return cell

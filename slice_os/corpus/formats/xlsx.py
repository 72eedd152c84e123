"""Workbooks, by python-calamine of the extra `documents`: a header row, then a document a row."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from typing import Any, BinaryIO

from slice_os.corpus.formats.base import Row
from slice_os.corpus.formats.tables import Cells, table_rows
from slice_os.errors import CorpusError, MissingExtraError


def parse(stream: BinaryIO) -> Iterator[Row]:
    """Give the rows of all sheets, within ``Sheet!``; empty columns and rows are left out."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError as exc:
        raise MissingExtraError("Reading workbooks", "documents") from exc
    try:
        book = CalamineWorkbook.from_filelike(stream)
        for name in book.sheet_names:
            rows = book.get_sheet_by_name(name).iter_rows()
            cells = [Cells(n, list(map(_value, row))) for n, row in enumerate(rows, start=1)]
            filled = _columns(cells)
            if filled:
                yield from table_rows(iter(filled), f"{name}!")
    except CorpusError:
        raise
    except (CalamineError, ValueError, OSError) as exc:
        raise CorpusError(f"is not a readable workbook: {exc or type(exc).__name__}") from exc


def _columns(cells: list[Cells]) -> list[Cells]:
    """Return rows that are not empty, without the columns that are empty in all of them."""
    cells = [one for one in cells if any(value != "" for value in one.values)]
    kept = sorted({n for one in cells for n, value in enumerate(one.values) if value != ""})
    return [
        one._replace(values=[one.values[n] if n < len(one.values) else "" for n in kept])
        for one in cells
    ]


def _value(cell: Any) -> Any:
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return int(cell)
    if isinstance(cell, date | datetime | time):
        return cell.isoformat()
    if isinstance(cell, timedelta):
        return str(cell)
    return cell

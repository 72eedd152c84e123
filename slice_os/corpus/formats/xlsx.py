"""Excel workbooks, by openpyxl of the extra `documents`: a header row, then a document a row."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from typing import Any, BinaryIO

from slice_os.corpus.formats.base import Row
from slice_os.corpus.formats.delimited import column_names
from slice_os.corpus.limits import PACKED_BYTES, open_zip, read_all
from slice_os.errors import CorpusError, MissingExtraError


def parse(stream: BinaryIO) -> Iterator[Row]:
    """Give the rows of all sheets as ``Sheet!row``; empty columns and rows are left out."""
    try:
        from openpyxl import load_workbook
    except ImportError as exc:
        raise MissingExtraError("Reading .xlsx files", "documents") from exc
    file = read_all(stream, PACKED_BYTES)
    try:
        book = load_workbook(
            open_zip(file, "xl/worksheets/"), read_only=True, data_only=True, keep_links=False
        )
        for sheet in book.worksheets:
            yield from _rows(sheet)
    except CorpusError:
        raise
    except Exception as exc:  # broken files come up as any error there is
        raise CorpusError(f"is not a readable .xlsx: {exc or type(exc).__name__}") from exc


def _rows(sheet: Any) -> Iterator[Row]:
    sheet.reset_dimensions()  # which are what the file says, not what it has
    header: dict[int, str] = {}
    for number, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
        values = {place: _value(cell) for place, cell in enumerate(cells) if cell is not None}
        if not values:
            continue
        if not header:
            header = dict(zip(values, column_names([str(v) for v in values.values()]), strict=True))
            continue
        named = {name: values.get(place, "") for place, name in header.items()}
        yield Row(number, named, label=f"{sheet.title}!{number}")


def _value(cell: Any) -> Any:
    if isinstance(cell, date | datetime):
        return cell.isoformat()
    return cell if isinstance(cell, str | int | float) else str(cell)

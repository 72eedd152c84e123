"""Matches and hits of the page as a Parquet file."""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec

from slice_os.answers import to_json
from slice_os.errors import needs
from slice_os.server.bodies import ColumnsBody
from slice_os.server.failures import RequestError
from slice_os.types import Hit, Match

NUMBERS = {"int": "int64", "float": "float64"}
TYPES = {
    field.name: NUMBERS[str(field.type).partition(" ")[0]]
    for record in (Hit, Match)
    for field in dataclasses.fields(record)
    if str(field.type).partition(" ")[0] in NUMBERS
}
"""Fields that are numbers, and Arrow's names of their types; all else is text."""


def columns_of(content: bytes) -> ColumnsBody:
    """Return the body of a request; RequestError if it is none."""
    try:
        return msgspec.json.decode(content, type=ColumnsBody)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(f"The request holds no columns ({error}): send some.") from error


def parquet(body: ColumnsBody) -> bytes:
    """Return columns as a Parquet file: numbers as such, texts as texts, what is neither as JSON.

    Raises:
        RequestError: columns differ in length, or one of numbers holds something else.
        MissingExtraError: the extra ``parquet`` is not installed.
    """
    with needs("Parquet", "parquet"):
        import pyarrow
        import pyarrow.parquet

    def column(name: str, values: list[Any]) -> Any:
        if name in TYPES:
            return pyarrow.array(values, pyarrow.type_for_alias(TYPES[name]))
        texts = [each if isinstance(each, str | None) else to_json(each) for each in values]
        return pyarrow.array(texts, pyarrow.string())

    sink = pyarrow.BufferOutputStream()
    try:
        table = pyarrow.table({name: column(name, of) for name, of in body.columns.items()})
    except pyarrow.ArrowException as error:
        raise RequestError(f"The columns are no table: {error}.") from error
    pyarrow.parquet.write_table(table, sink, compression="zstd")
    content: bytes = sink.getvalue().to_pybytes()
    return content

"""Parquet and Arrow files, by pyarrow of the extra `parquet`: a document a row, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, BinaryIO

from slice_os.corpus.formats.base import Row, readable
from slice_os.corpus.formats.tables import joined
from slice_os.corpus.limits import ROW_CHARACTERS, too_long
from slice_os.errors import needs

if TYPE_CHECKING:
    import pyarrow

_ROWS = 1024
"""The most rows that are held as Python's values,"""
_BYTES = 1 << 23
"""and about how many bytes of them."""
_AHEAD = 1 << 26
"""Bytes that are read ahead, of all columns together."""
_DAMAGES = (ValueError, OSError, NotImplementedError, LookupError, TypeError)
_ARROW_FILE, _ARROW_STREAM = b"ARROW1", b"\xff" * 4


def parse_parquet(stream: BinaryIO) -> Iterator[Row]:
    """Give the rows of a Parquet file, of which no column of a row group is held whole."""
    with needs("Reading .parquet files", "parquet"):
        from pyarrow.parquet import ParquetFile, read_metadata
    with readable("Parquet file", _DAMAGES):
        about = read_metadata(stream)
        ahead = max(1 << 12, min(1 << 22, _AHEAD // max(about.num_columns, 1)))
        file = ParquetFile(stream, metadata=about, buffer_size=ahead, pre_buffer=False)
        groups = [file.metadata.row_group(n) for n in range(file.num_row_groups)]
        batches = (
            batch
            for n, group in enumerate(groups)
            for batch in file.iter_batches(
                _at_once(group.num_rows, group.total_byte_size), row_groups=[n], use_threads=False
            )
        )
        yield from _rows(batches)


def parse_arrow(stream: BinaryIO) -> Iterator[Row]:
    """Give the rows of an Arrow file or stream, of which one record batch is held."""
    with needs("Reading .arrow and .feather files", "parquet"):
        from pyarrow import ipc
    with readable("Arrow file", _DAMAGES):
        begin = stream.read(len(_ARROW_FILE))
        stream.seek(0)
        if begin == _ARROW_FILE:
            file = ipc.open_file(stream)
            yield from _rows(file.get_batch(n) for n in range(file.num_record_batches))
        elif begin.startswith(_ARROW_STREAM):
            yield from _rows(ipc.open_stream(stream))
        else:
            raise ValueError("it begins as none does, or as a Feather file of version 1")


def _at_once(rows: int, size: int) -> int:
    return max(1, min(_ROWS, rows * _BYTES // max(size, 1)))


def _rows(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[Row]:
    number = 0
    for batch in batches:
        names = [str(name) for name in batch.schema.names]
        columns = [_in_microseconds(column) for column in batch.columns]
        step = _at_once(batch.num_rows, batch.nbytes)
        for start in range(0, batch.num_rows, step):
            for values in _values([column.slice(start, step) for column in columns]):
                number += 1
                yield _row(number, names, values)


def _in_microseconds(column: pyarrow.Array) -> pyarrow.Array:
    """Return a column whose times Python can hold: its own have no nanoseconds."""
    kind = _without_nanoseconds(column.type)
    return column if kind == column.type else column.cast(kind, safe=False)


def _without_nanoseconds(kind: pyarrow.DataType) -> pyarrow.DataType:
    import pyarrow as pa

    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if pa.types.is_duration(kind) and kind.unit == "ns":
        return pa.duration("us")
    if pa.types.is_time64(kind):
        return pa.time64("us")
    if pa.types.is_struct(kind):
        fields = (kind.field(n) for n in range(kind.num_fields))
        return pa.struct([field.with_type(_without_nanoseconds(field.type)) for field in fields])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_without_nanoseconds(kind.value_type)))
    return kind


def _values(columns: Sequence[pyarrow.Array]) -> Iterator[Sequence[Any] | Exception]:
    """Yield the values of each row, or why it has none: a broken text, a time that is none."""
    try:
        yield from zip(*[column.to_pylist() for column in columns], strict=True)
    except (ValueError, OverflowError) as exc:
        if len(columns[0]) == 1:
            yield exc
        else:
            for n in range(len(columns[0])):
                yield from _values([column.slice(n, 1) for column in columns])


def _row(number: int, names: Sequence[str], values: Sequence[Any] | Exception) -> Row:
    if isinstance(values, Exception):
        return Row(number, {}, f"holds a value that cannot be read: {values}")
    plain = [_plain(value) for value in values]
    if sum(map(_characters, plain)) > ROW_CHARACTERS:
        return Row(number, {}, too_long("row"))
    return Row(number, joined(names, plain))


def _characters(value: Any) -> int:
    """Return how many characters a value has, as a text."""
    if isinstance(value, list | dict):
        return sum(map(_characters, value.values() if isinstance(value, dict) else value))
    return len(value) if isinstance(value, str) else 8


def _plain(value: Any) -> Any:
    """Return a value as JSON has them; bytes that are no text are none, as pictures are."""
    match value:
        case str() | int() | float() | None:
            return value
        case dict():
            return {name: _plain(inner) for name, inner in value.items() if inner is not None}
        case [tuple(), *_]:  # a map
            return _plain({str(key): inner for key, inner in value})
        case list():
            return [_plain(inner) for inner in value]
        case date() | time():
            return value.isoformat()
        case Decimal() if value.is_finite():
            return int(value) if value == value.to_integral_value() else float(value)
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                return None
        case timedelta():
            return str(value)
    return str(value)

"""CSV and TSV: a header line, then a document a row."""

from __future__ import annotations

from collections.abc import Iterator
from csv import Error as SniffedError
from csv import Sniffer
from importlib.util import find_spec, module_from_spec
from itertools import chain
from typing import Any, BinaryIO, TextIO

from slice_os.corpus.encodings import BROKEN, open_text
from slice_os.corpus.formats.base import Row
from slice_os.corpus.formats.tables import Cells, table_rows
from slice_os.corpus.limits import ROW_CHARACTERS, too_long
from slice_os.errors import CorpusError

_SNIFFED = 4096


def _own_csv() -> Any:
    """Return Python's csv reader with a limit of our own: its, 128 KiB, is shorter than a contract.

    A second instance of the module: the limit of the first is that of the whole process.
    """
    spec = find_spec("_csv")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    module.field_size_limit(ROW_CHARACTERS)
    return module


csv = _own_csv()


def parse_csv(stream: BinaryIO) -> Iterator[Row]:
    """Give the rows of a CSV file; the separator is ``,`` unless the header has none."""
    return _parse(stream, None)


def parse_tsv(stream: BinaryIO) -> Iterator[Row]:
    """Give the rows of a TSV file."""
    return _parse(stream, "\t")


def _parse(stream: BinaryIO, delimiter: str | None) -> Iterator[Row]:
    with open_text(stream, newline="") as text:
        lines = _Lines(text)
        separator = delimiter or _delimiter(lines.first[:_SNIFFED])
        yield from table_rows(_cells(lines, separator, text.encoding))


def _cells(lines: _Lines, separator: str, encoding: str) -> Iterator[Cells]:
    # Strict, so that a misplaced or unclosed quote is an error of its row, not another text.
    reader = csv.reader(lines, delimiter=separator, strict=True)
    while True:
        lines.length = 0
        line = reader.line_num + 1
        try:
            values = next(reader)
        except StopIteration:
            return
        except csv.Error as exc:
            yield Cells(line, [], f"is not CSV (from line {line} to {reader.line_num}): {exc}")
            continue
        if any(BROKEN in value for value in values):
            yield Cells(line, [], f"holds bytes that are not {encoding} (line {line})")
        elif values:
            yield Cells(line, values)


class _Lines(Iterator[str]):
    """The lines of a file, as many as a row may have: a quote may never be closed."""

    def __init__(self, text: TextIO) -> None:
        self.first = text.readline(ROW_CHARACTERS + 1)
        self._lines = chain([self.first], iter(lambda: text.readline(ROW_CHARACTERS + 1), ""))
        self.length = 0

    def __next__(self) -> str:
        line = next(self._lines)
        self.length += len(line)
        if self.length > ROW_CHARACTERS:
            raise CorpusError(f"{too_long('row')}; what follows it is not read")
        return line.replace("\0", " ")


def _delimiter(header: str) -> str:
    if "," in header:
        return ","
    try:
        return Sniffer().sniff(header, delimiters=";\t|").delimiter
    except SniffedError:  # one column
        return ","

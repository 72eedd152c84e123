"""Tables: their header, which may stand below a title, and their rows as fields and values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

from slice_os.corpus.formats.base import Row
from slice_os.corpus.rows import ID_FIELDS, TABLE_FIELD, TEXT_FIELDS, TITLE_FIELD
from slice_os.errors import CorpusError

_MOST_COLUMNS = 10_000
_LOOKED_AT = 20
"""Lines among which the header is."""
_LONGEST_NAME = 80
_NUMBER = re.compile(r"\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?\s*")


class Cells(NamedTuple):
    """One row of a table as it stands there, or the `problem` for which it cannot be read."""

    line: int
    values: Sequence[Any]
    problem: str = ""


def table_rows(cells: Iterator[Cells], within: str = "") -> Iterator[Row]:
    """Give the rows below the header, which is the first line that is no title.

    Their numbers count from 1 or, of what is `within` a file, are their lines'.
    What several columns of one name hold is joined by line ends; a title is the field ``table``.
    """
    first = list(islice(cells, _LOOKED_AT))
    begin = _header_at(first)
    if begin is None:
        problem = first[0].problem if first else ""
        raise CorpusError(f"its header {problem}" if problem else "has no header line")
    titles = [str(value) for row in first[:begin] for value in row.values if not _is_empty(value)]
    names = _names(first[begin].values)
    about = {TABLE_FIELD: " ".join(titles)} if titles else {}
    number = 0
    for row in chain(first[begin + 1 :], cells):
        if _is_blank(row):
            continue
        number = row.line if within else number + 1
        count, problem = len(row.values), row.problem
        # A cell that was never quoted may go on in the next line: half a row is none.
        if count < len(names) or not all(map(_is_empty, row.values[len(names) :])):
            problem = problem or (f"has {count} columns, the header {len(names)} (line {row.line})")
        values = {} if problem else {**about, **joined(names, row.values)}
        yield Row(number, values, problem, row.line, within)


def joined(names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    """Return the fields of a row; what columns of one name hold is joined by line ends."""
    fields: dict[str, Any] = dict.fromkeys(names, "")
    for name, value in zip(names, values, strict=False):
        if not _is_empty(value):
            fields[name] = value if fields[name] == "" else f"{fields[name]}\n{value}"
    return fields


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _is_blank(row: Cells) -> bool:
    return not row.problem and all(map(_is_empty, row.values))


def _header_at(rows: Sequence[Cells]) -> int | None:
    """Return which of the first rows is the header: the first, or one below a title alone."""
    if not rows or rows[0].problem:
        return None
    filled = [n for n, row in enumerate(rows) if not row.problem and not _is_blank(row)]
    below = next((n for n in filled if not _is_title(rows[n].values)), None)
    if below is not None and _is_header(rows[below].values):
        return below
    return filled[0] if filled else None


def _is_title(values: Sequence[Any]) -> bool:
    known = (*TEXT_FIELDS, TITLE_FIELD, *ID_FIELDS)
    alone = not _is_empty(values[0]) and all(map(_is_empty, values[1:]))
    return alone and str(values[0]).strip().lower() not in known


def _is_header(values: Sequence[Any]) -> bool:
    """Tell whether the values of a row may be names, and are more than one."""
    names = [value for value in values if not _is_empty(value)]
    plain = all(isinstance(name, str) and len(name) <= _LONGEST_NAME for name in names)
    return plain and len(names) > 1 and not any(map(_NUMBER.fullmatch, names))


def _names(header: Sequence[Any]) -> list[str]:
    last = max((n for n, value in enumerate(header) if not _is_empty(value)), default=0)
    if last >= _MOST_COLUMNS:
        raise CorpusError(f"has more than {_MOST_COLUMNS:,} columns")
    return [
        f"column {number}" if _is_empty(name) else str(name).strip()
        for number, name in enumerate(header, start=1)
    ]

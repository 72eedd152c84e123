"""JSON Lines: an object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import BinaryIO

from slice_os.corpus.encoding import BROKEN, open_text
from slice_os.corpus.limits import is_dense, read_line, too_long
from slice_os.corpus.rows import Row


def parse(stream: BinaryIO) -> Iterator[Row]:
    """Give a row for each line that is not blank; a row's number is its line's, from 1."""
    with open_text(stream, newline=None) as lines:
        for number, line in enumerate(iter(lambda: read_line(lines), ""), start=1):
            if line is None or is_dense(line):
                yield Row(number, {}, too_long("line"))
            elif BROKEN in line:
                yield Row(number, {}, f"holds bytes that are not {lines.encoding}")
            elif line.strip():
                yield _row(number, line)


def _row(number: int, line: str) -> Row:
    try:
        value = json.loads(line)
    except json.JSONDecodeError as exc:
        return Row(number, {}, f"is not JSON: {exc.msg} at column {exc.colno}")
    except (ValueError, RecursionError) as exc:  # a number of 5,000 digits, 1,000 brackets
        return Row(number, {}, f"is not usable JSON: {exc}")
    if not isinstance(value, dict):
        return Row(number, {}, f"is {type(value).__name__}, not an object")
    return Row(number, value)

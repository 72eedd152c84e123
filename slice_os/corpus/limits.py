"""Limits of what is held of a file in memory: a file beyond them is rejected by name.

They keep a run below 600 MB, whatever a file holds; a test measures it.
"""

from __future__ import annotations

import sys
from typing import BinaryIO, TextIO

from slice_os.errors import CorpusError

TEXT_BYTES = 1 << 25
"""The most bytes, unpacked, of a file that is one document."""
LINES = 1_000_000
"""The most lines of such a file."""
PACKED_BYTES = 1 << 26
"""The most bytes of a .pdf or an Office file on disk, most of which may be images."""
UNPACKED_BYTES = 1 << 27
"""The most bytes that an Office file unpacks to."""
HTML_BYTES = 1 << 23
"""The most bytes of a web page, without embedded pictures."""
TAGS = 400_000
"""The most tags of a web page."""
ROW_CHARACTERS = 1 << 24
"""The most characters of a .csv row, a .jsonl line, a document of a .json."""
VALUES = 1_000_000
"""The most values of one of those."""
_LONG = 1 << 22


def read_all(stream: BinaryIO, most: int = TEXT_BYTES) -> bytes:
    """Return what is left of a stream, or raise CorpusError if that is more than `most` bytes."""
    data = stream.read(most + 1)
    if len(data) > most:
        raise CorpusError(f"holds more than {megabytes(most)}: split it")
    return data


def check_text(text: str) -> None:
    """Raise CorpusError if a text takes more than twice the bytes allowed, or has many lines."""
    if sys.getsizeof(text) > 2 * TEXT_BYTES:
        raise CorpusError(f"its text takes more than {megabytes(2 * TEXT_BYTES)}: split it")
    if text.count("\n") > LINES:
        raise CorpusError(f"has more than {LINES:,} lines: split it")


def check_html(page: bytes) -> None:
    """Raise CorpusError if the tree of a page would be too large."""
    if len(page) > HTML_BYTES:
        raise CorpusError(f"holds more than {megabytes(HTML_BYTES)} of HTML: split it")
    if page.count(b"<") > TAGS:
        raise CorpusError(f"holds more than {TAGS:,} tags: split it")


def read_line(text: TextIO) -> str | None:
    """Return the next line, empty at the end; None for one that is too long, which is passed."""
    line = text.readline(ROW_CHARACTERS)
    if len(line) < ROW_CHARACTERS or line.endswith("\n"):
        return line
    while line and not line.endswith("\n"):
        line = text.readline(1 << 20)
    return None


def is_dense(text: str, start: int = 0) -> bool:
    """Tell whether a JSON text may hold more values than are read."""
    if len(text) - start < _LONG:
        return False
    return sum(text.count(mark, start) for mark in ",[{") > VALUES


def too_long(what: str) -> str:
    """Return the reason for rejecting a row that has too much."""
    return f"is a {what} of more than {megabytes(ROW_CHARACTERS)} or {VALUES:,} values"


def megabytes(size: int) -> str:
    """Return a number of bytes as people read it."""
    return f"{size >> 20} MB"

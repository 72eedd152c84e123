"""What a format is: a function that reads a whole file, or one that reads its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from slice_os.corpus.limits import TEXT_BYTES
from slice_os.corpus.rows import Values


@dataclass(frozen=True, slots=True)
class Parsed:
    """A file's text and title; `broken` places of it were not of its encoding.

    `says`: the title, author and date are what the file itself says, which makes them metadata.
    """

    text: str
    title: str = ""
    broken: int = 0
    author: str = ""
    date: str = ""
    says: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One row as its format gives it, or the `problem` for which it cannot be read.

    The end of its id, which tells it from the others of its file, is `label`, else `number`.
    `line` is the line of the file that it begins at, where that is not its number.
    """

    number: int
    values: Values
    problem: str = ""
    line: int = 0
    label: str = ""


@dataclass(frozen=True, slots=True)
class Whole:
    """A format of which a file is one document, of at most so many bytes."""

    parse: Callable[[bytes], Parsed]
    largest: int = TEXT_BYTES


@dataclass(frozen=True, slots=True)
class Rows:
    """A format of which a file is read row by row, each a document.

    With `columns`, what one row lacks all of them lack.
    """

    parse: Callable[[BinaryIO], Iterator[Row]]
    columns: bool = False


Format = Whole | Rows

"""What a format is: a function that reads a whole file, or one that reads its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO

from slice_os.corpus.limits import TEXT_BYTES
from slice_os.corpus.rows import Values
from slice_os.errors import CorpusError, MissingExtraError


@dataclass(frozen=True, slots=True)
class Parsed:
    """A file's text and title; `broken` places of it were not of its encoding.

    `says`: the title, author and date are what the file itself says, which makes them metadata.
    `guess` is the encoding, if it was guessed; `metadata` what else the file says of itself.
    """

    text: str
    title: str = ""
    broken: int = 0
    author: str = ""
    date: str = ""
    says: bool = False
    guess: str = ""
    metadata: Values = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Row:
    """One row as its format gives it, or the `problem` for which it cannot be read.

    Its id begins with `within`, the part of the file that it belongs to, and ends with its own id,
    else with its number. `line` is the line of the file that it begins at, where that is not its
    number.
    """

    number: int
    values: Values
    problem: str = ""
    line: int = 0
    within: str = ""


@dataclass(frozen=True, slots=True)
class Whole:
    """A format of which a file is one document, of at most `largest` bytes.

    One that is `apart` is parsed in a process of its own, with limits of memory and time: `parse`
    is then a function of a module. `encoded`: its bytes are a text in some encoding. `whole_page`
    reads it where nothing that stands around the text is to be left out.
    """

    parse: Callable[[bytes], Parsed]
    largest: int = TEXT_BYTES
    apart: bool = False
    encoded: bool = False
    whole_page: Callable[[bytes], Parsed] | None = None


@dataclass(frozen=True, slots=True)
class Rows:
    """A format of which a file is read row by row, each a document.

    One with a `largest`, in bytes, is read at once; of another that is `apart`, what its parser
    asks for. With `columns`, what one row lacks all of them lack, and an empty cell is none.
    `apart` and `encoded` are as for `Whole`.
    """

    parse: Callable[[BinaryIO], Iterator[Row]]
    largest: int | None = None
    columns: bool = False
    apart: bool = False
    encoded: bool = False


Format = Whole | Rows


@contextmanager
def readable(kind: str, errors: tuple[type[Exception], ...] = (Exception,)) -> Iterator[None]:
    """Turn what a library raises for a damaged file into a reject."""
    try:
        yield
    except (CorpusError, MissingExtraError):
        raise
    except errors as exc:
        raise CorpusError(f"is not a readable {kind}: {exc or type(exc).__name__}") from exc

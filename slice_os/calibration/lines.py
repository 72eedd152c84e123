"""Reading text files line by line, decoded as the corpus is, with line numbers in errors."""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from slice_os.corpus.encodings import BROKEN, open_text
from slice_os.corpus.formats import is_compressed
from slice_os.corpus.formats.json import parse_lines
from slice_os.corpus.rows import ID_FIELDS, Values, clean
from slice_os.errors import CorpusError, EvaluationError

LARGEST = 1_000
"""What a grade of relevance may be."""


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """Open a file to read its bytes, unpacked where its name ends in ``.gz``.

    Raises:
        EvaluationError: The file is missing, damaged or cannot be read, or it looks binary.
    """
    try:
        with path.open("rb") as file:
            packed = is_compressed(path.name)
            yield cast(BinaryIO, gzip.GzipFile(fileobj=file)) if packed else file
    except FileNotFoundError as exc:
        raise EvaluationError(f"There is no file {path}: check the path.") from exc
    except (EOFError, zlib.error, gzip.BadGzipFile) as exc:
        raise EvaluationError(
            f"{path} cannot be unpacked ({exc}): download or pack it again."
        ) from exc
    except OSError as exc:
        raise EvaluationError(
            f"{path} cannot be read ({exc.strerror or exc}): give a file that can be."
        ) from exc
    except CorpusError as exc:
        raise EvaluationError(
            f"{path} cannot be used ({exc}): correct it, or give a text file."
        ) from exc


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text file that are not blank, numbered from 1, without their ends.

    Raises:
        EvaluationError: The file cannot be read or holds no line, or a line holds bytes that are
            not of the file's encoding.
    """
    empty = True
    with open_bytes(path) as stream, open_text(stream, newline=None) as lines:
        for number, line in enumerate(lines, start=1):
            if BROKEN in line:
                raise EvaluationError(
                    f"{path}, line {number}, holds bytes that are not {lines.encoding}: convert "
                    "the file to UTF-8."
                )
            if line.strip():
                empty = False
                yield number, clean(line).rstrip("\n")
    if empty:
        raise EvaluationError(f"{path} is empty: give a file with lines.")


def json_rows(path: Path) -> Iterator[tuple[int, str, Values]]:
    """Yield the line number, the id and the fields of each object of a .jsonl file.

    Raises:
        EvaluationError: The file cannot be read or holds no object, or an object has no id
            (``id`` or ``_id``) or no field ``text``.
    """
    empty = True
    with open_bytes(path) as stream:
        for row in parse_lines(stream):
            empty = False
            place = f"{path}, line {row.number},"
            if row.problem:
                raise EvaluationError(f"{place} {row.problem}: correct the line or remove it.")
            ids = [row.values[name] for name in ID_FIELDS if row.values.get(name) not in ("", None)]
            lacking = "_id" if not ids else "text" if "text" not in row.values else ""
            if lacking:
                raise EvaluationError(
                    f"{place} has no field {lacking!r}: add it or remove the line."
                )
            yield row.number, clean(str(ids[0])), row.values
    if empty:
        raise EvaluationError(f"{path} is empty: give a file with an object a line.")


def tsv_rows(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield the line number, the id and the text of each line ``id<TAB>text``.

    Raises:
        EvaluationError: The file cannot be read or is empty, or a line is not so.
    """
    for number, line in numbered_lines(path):
        values = line.split("\t")
        place = f"{path}, line {number},"
        if len(values) != 2:
            raise EvaluationError(
                f"{place} has {columns(values)} instead of 2: make it an id, a tab, a text."
            )
        if not values[0].strip():
            raise EvaluationError(f"{place} has no id: put one before the tab.")
        yield number, values[0].strip(), values[1]


def spaced_rows(path: Path, names: Sequence[str]) -> Iterator[tuple[int, str, list[str]]]:
    """Yield the line number, how an error names the line, and its columns, one for each name.

    Raises:
        EvaluationError: The file cannot be read or is empty, or a line has other columns.
    """
    for number, line in numbered_lines(path):
        place = f"{path}, line {number},"
        values = line.split()
        if len(values) != len(names):
            raise EvaluationError(
                f"{place} has {columns(values)} instead of {len(names)}: make it "
                f"{', '.join(names)}."
            )
        yield number, place, values


def columns(values: Sequence[str]) -> str:
    """Return '1 column', '3 columns'."""
    return f"{len(values)} column{'' if len(values) == 1 else 's'}"


def whole_number(text: str, place: str, what: str) -> int:
    """Return a whole number; `place` begins the sentence about a text that is none."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    # trec_eval makes room for every grade up to the largest
    if "_" in text or not number.is_integer() or abs(number) > LARGEST:
        raise EvaluationError(
            f"{place} has the {what} {text!r}: make it a whole number of at most {LARGEST:,}."
        )
    return int(number)

"""Rows and lines of files with labels: CSV, TSV or JSON lines in any encoding, also gzipped."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from slice_os.corpus.encodings import BROKEN, open_text
from slice_os.corpus.formats import is_compressed
from slice_os.corpus.formats.delimited import parse_csv, parse_tsv
from slice_os.corpus.formats.json import parse_lines
from slice_os.corpus.rows import clean
from slice_os.errors import CorpusError, EvaluationError

_PARSERS = {".csv": parse_csv, ".tsv": parse_tsv, ".jsonl": parse_lines, ".ndjson": parse_lines}


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


def numbered_lines(path: Path, newline: str | None = None) -> Iterator[tuple[int, str]]:
    r"""Yield the lines of a text file that are not blank, numbered from 1, without their ends.

    A carriage return ends a line too, unless `newline` is ``"\n"``.

    Raises:
        EvaluationError: The file cannot be read or holds no line, or a line holds bytes that are
            not of the file's encoding.
    """
    empty = True
    with open_bytes(path) as stream, open_text(stream, newline=newline) as lines:
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


def read_rows(path: str | Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the line number and the values of each row of a .csv, .tsv or .jsonl file (also .gz).

    Raises:
        EvaluationError: The file cannot be read, or a row of it is not what its name says; the
            line is named.
    """
    path = Path(path)
    name = path.stem if is_compressed(path.name) else path.name
    parse = _PARSERS.get(Path(name).suffix.lower())
    if parse is None:
        raise EvaluationError(
            f"{path} is not read by its name: give a file that ends in {', '.join(_PARSERS)}."
        )
    with open_bytes(path) as stream:
        for row in parse(stream):
            line = row.line or row.number
            if row.problem:
                raise EvaluationError(f"{path}, line {line}, {row.problem}: correct it.")
            yield line, row.values


def field(path: str | Path, line: int, values: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """Return the text of the first of `names` that a row has.

    Raises:
        EvaluationError: It has none of them, or no text there.
    """
    name = next((name for name in names if name in values), None)
    if name is None:
        raise EvaluationError(
            f"{path}, line {line}, has no column {' or '.join(names)}, only "
            f"{', '.join(values) or 'none'}: rename its columns."
        )
    text = "" if values[name] is None else str(values[name]).strip()
    if not text:
        raise EvaluationError(f"{path}, line {line}, has nothing in the column {name}: fill it.")
    return text


def score(
    path: str | Path,
    line: int,
    values: Mapping[str, Any],
    names: tuple[str, ...],
    bounds: tuple[float, float],
) -> float:
    """Return the number of the first of `names` that a row has, within `bounds`.

    Raises:
        EvaluationError: It has none of them, or it is no such number.
    """
    text = field(path, line, values, names)
    low, high = bounds
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not low <= number <= high:
        raise EvaluationError(
            f"{path}, line {line}: {text!r} is not a score from {low:g} to {high:g}: correct it."
        )
    return number


def read_unquoted(
    path: Path, columns: tuple[str, str, str], bounds: tuple[float, float]
) -> list[tuple[str, str, float]]:
    """Return two texts and a score of each row of a tab-separated file with a header.

    Quotes mean nothing, as in the files of STS-B, BiRD and PAWS.

    Raises:
        EvaluationError: The file cannot be read, has no row, or a row lacks one of these.
    """
    rows = []
    header: list[str] = []
    for line, text in numbered_lines(path):
        values = text.split("\t")
        if not header:
            header = values
            continue
        row = dict(zip(header, values, strict=False))
        first, second = (field(path, line, row, (name,)) for name in columns[:2])
        rows.append((first, second, score(path, line, row, (columns[2],), bounds)))
    if not rows:
        raise EvaluationError(f"{path} holds no pair: give a file with rows below its header.")
    return rows

"""Rows of an evaluation set: CSV, TSV or JSON lines in any encoding, also gzipped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from slice_os.calibration.lines import open_bytes
from slice_os.corpus.formats import is_compressed
from slice_os.corpus.formats.delimited import parse_csv, parse_tsv
from slice_os.corpus.formats.json import parse_lines
from slice_os.errors import EvaluationError

_PARSERS = {
    ".csv": parse_csv,
    ".tsv": parse_tsv,
    ".jsonl": parse_lines,
    ".ndjson": parse_lines,
}


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

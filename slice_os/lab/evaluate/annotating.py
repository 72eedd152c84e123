"""Sheets on which people confirm that a passage leaves the similarity of its pair as it was.

Orbach et al. (2023), section 4.2: two people looked at every passage, and what changed the
similarity was removed.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slice_os.calibration.labels import read_label
from slice_os.calibration.rows import read_rows
from slice_os.errors import EvaluationError
from slice_os.files import whole
from slice_os.lab.evaluate.files import write_lines

ANSWER = "confirmed"
COLUMNS = ("line", "paraphrase", "passage", "goldsim")


@dataclass(frozen=True, slots=True)
class AnnotationReport:
    """What `read_sheets` found: how many rows everybody confirmed, any refused, or some left."""

    confirmed: int
    refused: int
    unanswered: int


def write_sheet(context: str | Path, sheet: str | Path) -> int:
    """Write the rows of a set of `build_context` to a .csv to answer, and return how many.

    People write yes or no into its first column, `ANSWER`: is the similarity of line and paraphrase
    still goldsim, where the paraphrase stands in the passage?

    Raises:
        EvaluationError: The set cannot be read, or the sheet cannot be written.
    """
    path = Path(sheet)
    if path.suffix.lower() != ".csv":
        raise EvaluationError(f"{path} must end in .csv: people write their answers into it.")
    rows = [[str(values.get(name, "")) for name in COLUMNS] for _, values in read_rows(context)]
    try:
        with whole(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
            out = csv.writer(file)
            out.writerow([ANSWER, *COLUMNS])
            out.writerows(["", *row] for row in rows)
    except OSError as exc:
        raise EvaluationError(f"{path} cannot be written ({exc.strerror}): make room.") from exc
    return len(rows)


def read_sheets(
    context: str | Path, sheets: Sequence[str | Path], out: str | Path
) -> AnnotationReport:
    """Write the rows of a set that are confirmed on all `sheets`, one a person, to a .jsonl.

    Raises:
        EvaluationError: A file cannot be used, a sheet belongs to another set or has no answer, or
            an answer is neither yes nor no; the line is named.
    """
    rows = [dict(values) for _, values in read_rows(context)]
    answers: list[set[bool | None]] = [set() for _ in rows]
    for sheet in sheets:
        given = {}
        for line, values in read_rows(sheet):
            given[_key(values)] = read_label(sheet, line, values, ANSWER)
        if strange := given.keys() - set(map(_key, rows)):
            raise EvaluationError(
                f"{sheet} has {len(strange)} rows that {context} does not have: give the sheet "
                "that was made of it."
            )
        if not any(one is not None for one in given.values()):
            raise EvaluationError(f"{sheet} has no answer: write yes or no into {ANSWER}.")
        for row, found in zip(rows, answers, strict=True):
            found.add(given.get(_key(row)))
    kept = [row for row, found in zip(rows, answers, strict=True) if found == {True}]
    refused = sum(False in found for found in answers)
    write_lines(Path(out), [json.dumps(row, ensure_ascii=False) for row in kept])
    return AnnotationReport(len(kept), refused, len(rows) - len(kept) - refused)


def _key(values: Any) -> tuple[str, ...]:
    return tuple(" ".join(str(values.get(name, "")).split()) for name in COLUMNS[:3])

"""Labelled matches: drawn as a sample to label, read back, or judged by marked spans."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from slice_os.calibration.gold import LABEL, judge, mined, missing, read_gold
from slice_os.corpus.data_files import read_rows, score
from slice_os.errors import EvaluationError
from slice_os.files import whole
from slice_os.teaching.labels import NO, YES
from slice_os.text import sentence_around
from slice_os.types import Match

if TYPE_CHECKING:
    from slice_os.api import Index

COLUMNS = (
    "correct",
    "degree",
    "name",
    "phrase",
    "text",
    "sentence",
    "document",
    "start",
    "end",
    "weight",
)
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Labels:
    """Labelled matches.

    Attributes:
        degrees: float64 ``[n]``.
        correct: bool ``[n]``.
        weights: float64 ``[n]``: how many matches of the index each represents.
        missed: Marked spans that were not mined; 0 where there is no gold.
        missing: How many documents of the gold the index does not hold.
    """

    degrees: Floats
    correct: npt.NDArray[np.bool_]
    weights: Floats
    missed: int = 0
    missing: int = 0


def read_label(path: str | Path, line: int, values: Mapping[str, Any], column: str) -> bool | None:
    """Return what somebody wrote into a column of a row; None where it is empty.

    Raises:
        EvaluationError: That is neither yes nor no.
    """
    answer = str(values.get(column, "-")).strip().lower()
    if answer not in YES + NO:
        raise EvaluationError(
            f"{path}, line {line}: the column {column} says {answer!r}: write yes or no."
        )
    return answer in YES if answer else None


def read_labels(path: str | Path) -> Labels:
    """Read a file that somebody labelled: columns degree, correct (yes or no), perhaps weight.

    Rows without a label are left out.

    Raises:
        EvaluationError: The file is not such a file; the line is named.
    """
    degrees, correct, weights = [], [], []
    for line, values in read_rows(path):
        label = read_label(path, line, values, "correct")
        if label is None:
            continue
        degrees.append(score(path, line, values, ("degree",), (0.0, 1.0)))
        correct.append(label)
        known = "weight" in values
        weights.append(score(path, line, values, ("weight",), (0.0, 1e12)) if known else 1.0)
    if not degrees:
        raise EvaluationError(
            f"{path} has no labelled row: write yes or no into the column correct."
        )
    return Labels(np.array(degrees), np.array(correct), np.array(weights))


def is_labelled(path: str | Path) -> bool:
    """Tell whether a file has a column of labels, as a drawn sample does."""
    return any(LABEL in values for _, values in islice(read_rows(path), 1))


def labels_from_gold(
    file: str | Path,
    index: Index,
    min_degree: float,
    *,
    rescore: bool = True,
    progress: Callable[[float], object] | None = None,
) -> Labels:
    """Mine the queries of marked spans (`slice_os.calibration.gold.read_gold`) and judge them."""
    gold = read_gold(file)
    judged, _ = judge(gold, mined(gold, index, min_degree, rescore, progress))
    kept = [match for match in judged if match.found or not match.correct]
    return Labels(
        np.array([match.match.degree for match in kept]),
        np.array([match.correct for match in kept], bool),
        np.ones(len(kept)),
        len(gold) - sum(match.found for match in kept),
        missing(gold, index),
    )


def draw_sample(
    matches: Iterable[Match],
    path: str | Path,
    size: int = 100,
    *,
    index: Index | None = None,
    seed: int = 0,
) -> int:
    """Write a .csv with a sample of matches to label, spread evenly over degrees; return its size.

    Degrees are cut into ten equal strata, of which equally many matches are drawn; a row's weight
    is how many matches it represents. If the mined `index` is given, the column sentence shows
    each match in its sentence, between « and ». Write yes or no into the column correct.

    Raises:
        EvaluationError: There is no match, or the file exists or cannot be written.
    """
    path = Path(path)
    if path.exists():
        raise EvaluationError(f"{path} exists, perhaps with labels: give another file.")
    by_degree = sorted(matches, key=lambda match: match.degree)
    if not by_degree:
        raise EvaluationError("Nothing was mined: lower the degree.")
    rng = np.random.default_rng(seed)
    edges = np.linspace(by_degree[0].degree, by_degree[-1].degree, 11)[1:-1]
    steps = np.searchsorted(edges, [match.degree for match in by_degree], side="right")
    rows: list[tuple[Match, float]] = []
    groups = [np.flatnonzero(steps == step) for step in np.unique(steps)]
    left = size
    # The smallest first, so that what they lack goes to the others.
    for number, group in enumerate(sorted(groups, key=len)):
        count = min(len(group), -(-left // (len(groups) - number)))
        rows += [(by_degree[k], len(group) / count) for k in rng.permutation(group)[:count]]
        left -= count
    try:
        with whole(path) as partial, partial.open("w", encoding="utf-8", newline="") as stream:
            table = csv.writer(stream)
            table.writerow(COLUMNS)
            for k in rng.permutation(len(rows)):  # in no order, which would tell what is expected
                match, weight = rows[k]
                table.writerow(
                    [
                        "",
                        f"{match.degree:.4f}",
                        match.name,
                        match.phrase,
                        match.text,
                        _sentence(match, index) if index else "",
                        match.document,
                        match.document_start,
                        match.document_end,
                        f"{weight:.4f}",
                    ]
                )
    except OSError as exc:
        raise EvaluationError(f"{path} cannot be written ({exc.strerror}).") from exc
    return len(rows)


def _sentence(match: Match, index: Index) -> str:
    """Return the sentence that a match stands in, on one line, the match marked."""
    shown = index.show(match.document, passage=match.passage)  # with those beside it: a sentence
    start, end = match.document_start - shown.start, match.document_end - shown.start  # may go on
    before, after = sentence_around(shown.text, start, end)
    return " ".join(f"{before}«{shown.text[start:end]}»{after}".split())

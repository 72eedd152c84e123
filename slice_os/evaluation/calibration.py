"""The degree from which matches are right as often, or as completely, as somebody wants."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from slice_os.errors import EvaluationError, MissingExtraError
from slice_os.evaluation.files import whole
from slice_os.evaluation.rows import read_rows, score
from slice_os.evaluation.spans import judge, mined, read_gold
from slice_os.records import Match

if TYPE_CHECKING:
    from slice_os.api import Index

YES, NO = ("1", "yes", "y", "true", "x"), ("0", "no", "n", "false", "")
RESAMPLES = 2000
CONFIDENCE = 0.95
COLUMNS = ("correct", "degree", "phrase", "text", "document", "start", "end", "weight")
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Labels:
    """Matches with what people said of them.

    Attributes:
        degrees: float64 ``[n]``.
        correct: bool ``[n]``.
        weights: float64 ``[n]``: how many matches of the index each stands for.
        missed: What is right but was not mined, known from gold alone.
    """

    degrees: Floats
    correct: npt.NDArray[np.bool_]
    weights: Floats
    missed: int = 0


@dataclass(frozen=True, slots=True)
class Calibration:
    """The threshold, what it reaches on the labels, and 95 % intervals of both by bootstrap.

    Attributes:
        degree: Matches of this degree or more are to be taken.
        degree_interval: Where it would lie with other labels of the kind.
        precision: The share of right ones among them.
        precision_interval: Where that lies.
        recall: The share of what is right that is among them; of the mined, if labels came from a
            sample.
        recall_interval: Where that lies.
        labels: How many matches were labelled.
    """

    degree: float
    degree_interval: tuple[float, float]
    precision: float
    precision_interval: tuple[float, float]
    recall: float
    recall_interval: tuple[float, float]
    labels: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return asdict(self)


def calibrate(
    labels: Labels, *, precision: float | None = None, recall: float | None = None, seed: int = 0
) -> Calibration:
    """Return the threshold that reaches a precision or a recall.

    For a precision it is the lowest degree from which matches are right that often; for a recall
    the highest degree that leaves so much.

    Args:
        labels: From `read_labels` or `labels_from_gold`.
        precision: Wanted, in (0, 1].
        recall: Wanted, in (0, 1]; exactly one of the two is given.
        seed: Of the bootstrap.

    Raises:
        EvaluationError: Neither or both are wanted, no label is right, or no degree reaches it.
        MissingExtraError: scipy is not installed.

    """
    if (precision is None) == (recall is None):
        raise EvaluationError("Give either a precision or a recall to reach.")
    wanted = precision if precision is not None else recall
    if wanted is None or not 0 < wanted <= 1:
        raise EvaluationError(f"{wanted} cannot be reached: give a share above 0 and up to 1.")
    if not labels.correct.any():
        raise EvaluationError("No match is labelled as right: label more of them.")

    def at(rows: npt.NDArray[np.int64]) -> tuple[float, float, float]:
        return _threshold(labels, rows, precision, recall)

    degree, reached, left = at(np.arange(len(labels.degrees)))
    if np.isnan(degree):
        kind = "precision" if precision is not None else "recall"
        raise EvaluationError(
            f"No degree reaches a {kind} of {wanted:g} on these labels: ask for less, mine with a "
            "lower degree, or label more."
        )
    intervals = _intervals(at, len(labels.degrees), seed)
    return Calibration(
        degree, intervals[0], reached, intervals[1], left, intervals[2], len(labels.degrees)
    )


def read_labels(path: str | Path) -> Labels:
    """Read a file that somebody labelled: columns degree, correct (yes or no), perhaps weight.

    Rows without a label are left out.

    Raises:
        EvaluationError: The file is not such a file; the line is named.

    """
    degrees, correct, weights = [], [], []
    for line, values in read_rows(path):
        label = str(values.get("correct", "")).strip().lower()
        if "correct" not in values or label not in YES + NO:
            raise EvaluationError(
                f"{path}, line {line}: the column correct says {label!r}: write yes or no."
            )
        if not label:
            continue
        degrees.append(score(path, line, values, ("degree",), (0.0, 1.0)))
        correct.append(label in YES)
        known = "weight" in values
        weights.append(score(path, line, values, ("weight",), (0.0, 1e12)) if known else 1.0)
    if not degrees:
        raise EvaluationError(
            f"{path} has no labelled row: write yes or no into the column correct."
        )
    return Labels(np.array(degrees), np.array(correct), np.array(weights))


def labels_from_gold(
    file: str | Path,
    index: Index,
    degree: float,
    *,
    verify: bool = False,
    progress: Callable[[float], object] | None = None,
) -> Labels:
    """Mine the queries of marked spans (`slice_os.evaluation.spans.read_gold`) and judge them."""
    gold = read_gold(file)
    judged, _ = judge(gold, mined(gold, index, degree, verify, progress))
    kept = [one for one in judged if one.first or not one.correct]
    return Labels(
        np.array([one.match.degree for one in kept]),
        np.array([one.correct for one in kept], bool),
        np.ones(len(kept)),
        len(gold) - sum(one.first for one in kept),
    )


def draw_sample(
    matches: Iterable[Match], path: str | Path, size: int = 100, *, seed: int = 0
) -> int:
    """Write a .csv with matches to label, as many of every degree; return how many.

    Degrees are cut into ten equal steps, of which as many are drawn; a row's weight is how many it
    stands for. Write yes or no into the column correct.

    Raises:
        EvaluationError: There is no match, or the file exists or cannot be written.

    """
    path = Path(path)
    found = sorted(matches, key=lambda match: match.degree)
    if not found:
        raise EvaluationError("Nothing was mined: lower the degree.")
    if path.exists():
        raise EvaluationError(f"{path} exists, perhaps with labels: give another file.")
    rng = np.random.default_rng(seed)
    edges = np.linspace(found[0].degree, found[-1].degree, 11)[1:-1]
    steps = np.searchsorted(edges, [match.degree for match in found], side="right")
    rows: list[tuple[Match, float]] = []
    groups = [np.flatnonzero(steps == step) for step in np.unique(steps)]
    left = size
    # The smallest first, so that what they lack goes to the others.
    for number, group in enumerate(sorted(groups, key=len)):
        count = min(len(group), -(-left // (len(groups) - number)))
        rows += [(found[k], len(group) / count) for k in rng.permutation(group)[:count]]
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
                        match.phrase,
                        match.text,
                        match.document,
                        match.document_start,
                        match.document_end,
                        f"{weight:.4f}",
                    ]
                )
    except OSError as exc:
        raise EvaluationError(f"{path} cannot be written ({exc.strerror}).") from exc
    return len(rows)


def curve(labels: Labels) -> tuple[Floats, Floats, Floats]:
    """Return the degrees, highest first, with precision and recall of what reaches each."""
    return _curve(labels, np.arange(len(labels.degrees)))


def plot_curve(labels: Labels, path: str | Path, found: Calibration) -> None:
    """Draw precision and recall by degree, with the threshold and its interval.

    Raises:
        EvaluationError: The file cannot be written.
        MissingExtraError: matplotlib is not installed.

    """
    from slice_os.evaluation.plots import curves

    degrees, reached, left = curve(labels)
    series = {"precision": reached.tolist(), "recall": left.tolist()}
    curves(path, degrees.tolist(), series, "degree", found.degree, found.degree_interval)


def _curve(labels: Labels, rows: npt.NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
    order = rows[np.argsort(-labels.degrees[rows], kind="stable")]
    degrees, weights = labels.degrees[order], labels.weights[order]
    right = np.cumsum(weights * labels.correct[order])
    # Of equal degrees only the last row counts: a threshold takes all of them.
    last = np.append(np.flatnonzero(np.diff(degrees)), len(degrees) - 1)
    missed = labels.missed * len(rows) / max(1, len(labels.degrees))
    total = max(right[-1] + missed, 1e-12)
    return degrees[last], (right / np.cumsum(weights))[last], (right / total)[last]


def _threshold(
    labels: Labels,
    rows: npt.NDArray[np.int64],
    precision: float | None,
    recall: float | None,
) -> tuple[float, float, float]:
    """Return the threshold with its precision and recall; NaN where none reaches what is wanted."""
    degrees, reached, left = _curve(labels, rows)
    if precision is not None:
        good = np.flatnonzero(reached >= precision)
        place = good[-1] if len(good) else -1
    else:
        good = np.flatnonzero(left >= (recall or 0.0) - 1e-12)
        place = good[0] if len(good) else -1
    if place < 0:
        return float("nan"), float("nan"), float("nan")
    return float(degrees[place]), float(reached[place]), float(left[place])


def _intervals(
    at: Callable[[npt.NDArray[np.int64]], tuple[float, float, float]], count: int, seed: int
) -> Sequence[tuple[float, float]]:
    """Return 95 % percentile intervals of threshold, precision and recall."""
    try:
        from scipy.stats import bootstrap
    except ImportError as exc:
        raise MissingExtraError("Calibrating", "evaluate") from exc

    def statistic(rows: Floats) -> Floats:
        return np.array(at(rows.astype(np.int64)))

    with warnings.catch_warnings():  # some resamples may reach nothing: NaN, and left out
        warnings.simplefilter("ignore", RuntimeWarning)
        found = bootstrap(
            (np.arange(count),),
            statistic,
            n_resamples=RESAMPLES,
            confidence_level=CONFIDENCE,
            vectorized=False,
            method="percentile",
            random_state=seed,
        ).bootstrap_distribution
        tail = (1 - CONFIDENCE) / 2
        return [
            (float(np.nanquantile(row, tail)), float(np.nanquantile(row, 1 - tail)))
            for row in np.atleast_2d(found)
        ]

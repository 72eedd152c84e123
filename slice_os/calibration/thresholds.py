"""Calibration: the degree at which matches reach a target precision or recall."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from slice_os.calibration.labels import Floats, Labels
from slice_os.errors import EvaluationError
from slice_os.teaching.teacher import CONFIDENCE, wilson
from slice_os.types import Plain

RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Calibration(Plain):
    """A threshold, its precision and recall on the labels, and their 95 % intervals.

    Attributes:
        degree: The threshold: matches of this degree or more are accepted.
        degree_interval: 95 % interval of the threshold, by the bootstrap.
        precision: The share of accepted matches that are correct.
        precision_interval: Wilson's 95 % interval of the precision at this threshold.
        recall: The share of correct matches that are accepted; of the mined ones, if the labels
            are of a sample.
        recall_interval: Wilson's 95 % interval of the recall at this threshold.
        labels: How many matches are labelled.
    """

    degree: float
    degree_interval: tuple[float, float]
    precision: float
    precision_interval: tuple[float, float]
    recall: float
    recall_interval: tuple[float, float]
    labels: int


def calibrate(
    labels: Labels, *, precision: float | None = None, recall: float | None = None, seed: int = 0
) -> Calibration:
    """Return the threshold for a target precision or recall.

    For a precision it is the lowest degree that reaches it; for a recall, the highest.

    Args:
        labels: From `read_labels` or `labels_from_gold`.
        precision: Target precision, in (0, 1].
        recall: Target recall, in (0, 1]; exactly one of the two is given.
        seed: Seed of the bootstrap.

    Raises:
        EvaluationError: Neither or both are given, there are fewer than two labels, none is
            correct or has a weight, or no degree reaches the target.
    """
    target = check_wanted(precision, recall)
    if len(labels.degrees) < 2:
        raise EvaluationError("There are fewer than two labels: label more matches.")
    if not (labels.correct * labels.weights).any():
        raise EvaluationError("No match is labelled as right: label more of them.")

    rows = np.arange(len(labels.degrees))
    degree, reached, left = _threshold(labels, rows, precision, recall)
    if np.isnan(degree):
        kind = "precision" if precision is not None else "recall"
        raise EvaluationError(
            f"No degree reaches a {kind} of {target:g} on these labels: ask for less, mine with a "
            "lower degree, or label more."
        )

    accepted, correct = labels.degrees >= degree, labels.correct.astype(bool)
    of_correct = np.append(labels.weights[correct], np.ones(labels.missed))
    return Calibration(
        degree,
        _threshold_interval(labels, precision, recall, seed),
        reached,
        wilson(reached, effective_number(labels.weights[accepted])),
        left,
        wilson(left, effective_number(of_correct)),
        len(labels.degrees),
    )


def check_wanted(precision: float | None, recall: float | None) -> float:
    """Return the target, precision or recall.

    Raises:
        EvaluationError: Neither or both are given, or it is not in (0, 1].
    """
    if (precision is None) == (recall is None):
        raise EvaluationError("Give either a precision or a recall as the target.")
    target = precision if precision is not None else recall
    if target is None or not 0 < target <= 1:
        raise EvaluationError(f"{target} cannot be reached: give a share above 0 and up to 1.")
    return target


def curve(labels: Labels) -> tuple[Floats, Floats, Floats]:
    """Return the degrees, highest first, with precision and recall at each as the threshold."""
    return _curve(labels, np.arange(len(labels.degrees)))


def plot_curve(labels: Labels, path: str | Path, calibration: Calibration) -> None:
    """Draw precision and recall by degree, with the threshold and its interval.

    Raises:
        EvaluationError: The file cannot be written.
        MissingExtraError: matplotlib is not installed.
    """
    from slice_os.calibration.plots import curves

    degrees, reached, left = curve(labels)
    series = {"precision": reached.tolist(), "recall": left.tolist()}
    curves(
        path, degrees.tolist(), series, "degree", calibration.degree, calibration.degree_interval
    )


def _curve(labels: Labels, rows: npt.NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
    order = rows[np.argsort(-labels.degrees[rows], kind="stable")]
    degrees, weights = labels.degrees[order], labels.weights[order]
    right = np.cumsum(weights * labels.correct[order])
    # Of equal degrees only the last row counts: a threshold takes all of them.
    last = np.append(np.flatnonzero(np.diff(degrees)), len(degrees) - 1)
    missed = labels.missed * len(rows) / max(1, len(labels.degrees))
    total = max(right[-1] + missed, 1e-12)
    return degrees[last], (right / np.cumsum(weights))[last], (right / total)[last]


def reached_at(labels: Labels, rows: npt.NDArray[np.int64], degree: float) -> tuple[float, float]:
    """Return precision and recall at a threshold; NaN and 0 where no match reaches it."""
    degrees, reached, left = _curve(labels, rows)
    above = np.flatnonzero(degrees >= degree)
    if not len(above):
        return float("nan"), 0.0
    return float(reached[above[-1]]), float(left[above[-1]])


def _threshold(
    labels: Labels,
    rows: npt.NDArray[np.int64],
    precision: float | None,
    recall: float | None,
) -> tuple[float, float, float]:
    """Return the threshold, its precision and its recall; NaN where none reaches the target."""
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


def _threshold_interval(
    labels: Labels, precision: float | None, recall: float | None, seed: int
) -> tuple[float, float]:
    """Return the 95 % percentile interval of the threshold over bootstrap resamples."""
    rng, count = np.random.default_rng(seed), len(labels.degrees)
    thresholds = np.array(
        [
            _threshold(labels, rng.integers(0, count, count), precision, recall)[0]
            for _ in range(RESAMPLES)
        ]
    )
    reached = thresholds[~np.isnan(thresholds)]
    tail = (1 - CONFIDENCE) / 2
    return float(np.quantile(reached, tail)), float(np.quantile(reached, 1 - tail))


def effective_number(weights: Floats) -> float:
    """Return Kish's number of equal trials, (sum w)^2 / sum w^2, that ``weights`` ``[n]`` make."""
    return float(weights.sum() ** 2 / np.square(weights).sum())

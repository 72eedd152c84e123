"""Correlations with what people say, and whether one is really higher than another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from slice_os.errors import EvaluationError
from slice_os.evaluation.significance import load_stats

FEWEST = 4
"""Williams' test has n - 3 degrees of freedom."""
ROUNDING = 1e-6
"""Correlations of float32 scores differ by so much for no reason."""


class Correlation(NamedTuple):
    """Pearson's r and Spearman's rho of two series."""

    pearson: float
    spearman: float


class Comparison(NamedTuple):
    """Williams' t of two correlations that share a series, and its two-sided probability."""

    t: float
    p: float


def correlate(
    scores: Sequence[float] | npt.NDArray[np.floating], gold: Sequence[float]
) -> Correlation:
    """Return the correlations of `scores` with `gold`, as scipy computes them; NaN if constant.

    Raises:
        EvaluationError: There are fewer than two pairs.
        MissingExtraError: scipy is not installed.

    """
    stats = load_stats()
    if len(gold) < 2:
        raise EvaluationError("One pair has no correlation: give a file with more.")
    one, other = np.asarray(scores, np.float64), np.asarray(gold, np.float64)
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return Correlation(math.nan, math.nan)
    return Correlation(float(stats.pearsonr(one, other)[0]), float(stats.spearmanr(one, other)[0]))


def williams_test(first: float, second: float, between: float, count: int) -> Comparison:
    """Return Williams' t that two dependent correlations with one series differ.

    With r12 = `first`, r13 = `second` and r23 = `between`, n = `count`:

        t = (r12 - r13) sqrt((n - 1)(1 + r23)
            / (2 (n - 1)/(n - 3) |R| + ((r12 + r13)/2)^2 (1 - r23)^3)),
        |R| = 1 - r12^2 - r13^2 - r23^2 + 2 r12 r13 r23,

    with n - 3 degrees of freedom: Williams (1959), as Steiger (1980), Tests for comparing elements
    of a correlation matrix, equation 7, gives and recommends it.

    Args:
        first: Correlation of the shared series with one other.
        second: Correlation of the shared series with a third.
        between: Correlation of the other two.
        count: How many pairs each series has.

    Raises:
        EvaluationError: There are fewer than four pairs.
        MissingExtraError: scipy is not installed.

    """
    stats = load_stats()
    if count < FEWEST:
        raise EvaluationError(f"Williams' test needs {FEWEST} pairs or more, not {count}.")
    if abs(first - second) < ROUNDING:  # also where the two series are one: 0 / 0
        return Comparison(0.0, 1.0)
    determinant = 1 - first**2 - second**2 - between**2 + 2 * first * second * between
    determinant = max(determinant, 0.0)  # rounding may take it below
    mean = (first + second) / 2
    below = 2 * (count - 1) / (count - 3) * determinant + mean**2 * (1 - between) ** 3
    if below == 0:
        return Comparison(math.copysign(math.inf, first - second), 0.0)
    t = (first - second) * math.sqrt((count - 1) * (1 + between) / below)
    return Comparison(t, float(2 * stats.t.sf(abs(t), count - 3)))


def compare(
    one: Sequence[float] | npt.NDArray[np.floating],
    other: Sequence[float] | npt.NDArray[np.floating],
    gold: Sequence[float],
) -> Comparison:
    """Return Williams' test of two series' Pearson correlations with `gold`."""
    return williams_test(
        correlate(one, gold).pearson,
        correlate(other, gold).pearson,
        correlate(one, np.asarray(other).tolist()).pearson,
        len(gold),
    )

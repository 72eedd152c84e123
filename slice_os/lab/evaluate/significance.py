"""Correlations with people's scores, and tests of whether two systems really differ."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from slice_os.errors import EvaluationError, needs

RESAMPLES = 9999
SEED = 0
FEWEST = 4
"""Williams' test has n - 3 degrees of freedom."""
ROUNDING = 1e-6
"""Correlations of float32 scores differ by so much for no reason."""


def load_stats(what: str = "Evaluating") -> ModuleType:
    """Return scipy.stats; long work (`what`) calls this before it begins.

    Raises:
        MissingExtraError: scipy is not installed.
    """
    with needs(what, "evaluate"):
        from scipy import stats
    return stats


@dataclass(frozen=True, slots=True)
class Difference:
    """A system's mean less the baseline's, with the p-values of two paired two-sided tests."""

    mean: float
    t_test: float
    randomisation: float


def paired_difference(values: Sequence[float], baseline: Sequence[float]) -> Difference:
    """Compare per-query values ``[n]`` with a baseline's of the same queries in the same order.

    The tests are Student's paired t-test and Fisher's randomisation test: 9,999 times the signs of
    the differences are drawn anew (every way once, if these are fewer), with a fixed seed. Equal
    values have p = 1.
    """
    stats = load_stats()
    differences = np.asarray(values, np.float64) - np.asarray(baseline, np.float64)
    if len(differences) < 2:
        raise ValueError("Two systems cannot be tested on fewer than two queries.")
    mean = float(differences.mean())
    if not differences.any():
        return Difference(mean, 1.0, 1.0)
    with warnings.catch_warnings():  # of differences that are all the same
        warnings.simplefilter("ignore", RuntimeWarning)
        t_test = float(stats.ttest_rel(values, baseline).pvalue)
    drawn = stats.permutation_test(
        (differences,),
        _mean,
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=max(1, 10_000_000 // len(differences)),
        random_state=SEED,
    )
    return Difference(mean, t_test, float(drawn.pvalue))


def _mean(values: Any, axis: int) -> Any:
    return np.mean(values, axis=axis)


def holm(pvalues: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number by Holm's step-down method.

    S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of
    Statistics 6 (1979): of m values in rising order, the k-th becomes the largest of
    (m - j + 1) p_j over j <= k, at most 1.
    """
    order = sorted((p, place) for place, p in enumerate(pvalues))
    corrected = list(pvalues)
    largest = 0.0
    for done, (p, place) in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - done) * p))
        corrected[place] = largest
    return corrected


class Correlation(NamedTuple):
    """Pearson's r and Spearman's rho of two series."""

    pearson: float
    spearman: float


class WilliamsTest(NamedTuple):
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


def williams_test(first: float, second: float, between: float, count: int) -> WilliamsTest:
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
        return WilliamsTest(0.0, 1.0)
    determinant = 1 - first**2 - second**2 - between**2 + 2 * first * second * between
    determinant = max(determinant, 0.0)  # rounding may take it below
    mean = (first + second) / 2
    below = 2 * (count - 1) / (count - 3) * determinant + mean**2 * (1 - between) ** 3
    if below == 0:
        return WilliamsTest(math.copysign(math.inf, first - second), 0.0)
    t = (first - second) * math.sqrt((count - 1) * (1 + between) / below)
    return WilliamsTest(t, float(2 * stats.t.sf(abs(t), count - 3)))


def compare(
    one: Sequence[float] | npt.NDArray[np.floating],
    other: Sequence[float] | npt.NDArray[np.floating],
    gold: Sequence[float],
) -> WilliamsTest:
    """Test whether the Pearson correlations of two series with `gold` differ."""
    return williams_test(
        correlate(one, gold).pearson,
        correlate(other, gold).pearson,
        correlate(one, np.asarray(other).tolist()).pearson,
        len(gold),
    )

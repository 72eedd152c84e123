"""Whether two systems differ by more than the choice of queries: paired tests of their values."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from slice_os.errors import MissingExtraError

RESAMPLES = 9999
SEED = 0


@dataclass(frozen=True, slots=True)
class Difference:
    """A system's mean less the baseline's, with the p-values of two paired two-sided tests."""

    mean: float
    t_test: float
    randomisation: float


def load_stats(what: str = "Evaluating") -> ModuleType:
    """Return scipy.stats; what takes long (`what`) calls this first, lest it find out at its end.

    Raises:
        MissingExtraError: scipy is not installed.
    """
    try:
        from scipy import stats
    except ModuleNotFoundError as exc:
        raise MissingExtraError(what, "evaluate") from exc
    return stats


def paired_difference(values: Sequence[float], baseline: Sequence[float]) -> Difference:
    """Compare per-query values ``[n]`` with a baseline's of the same queries in the same order.

    The tests are Student's paired t-test and Fisher's randomisation test: 9,999 times the signs of
    the differences are drawn anew (every way once, if these are fewer), with a fixed seed. Equal
    values have p = 1.

    Raises:
        ValueError: There are fewer than two queries.
        MissingExtraError: scipy is not installed.
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

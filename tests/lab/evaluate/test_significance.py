"""Correlations, Williams' test, and paired tests of two systems: scipy's own figures."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy

from slice_os.errors import EvaluationError
from slice_os.lab.evaluate import compare, correlate, williams_test
from slice_os.lab.evaluate.significance import RESAMPLES, SEED, holm, paired_difference


def test_williams_published_value():
    # Steiger (1980), case A, as R's psych::r.test(103, .4, .5, .1) prints it: t -0.89, p 0.37.
    found = williams_test(0.4, 0.5, 0.1, 103)
    assert round(found.t, 2) == -0.89
    assert round(found.p, 2) == 0.37


def test_williams_has_the_error_rate_that_it_states():
    rng = np.random.default_rng(5)
    rejected = 0
    for _ in range(2000):
        gold = rng.normal(size=40)
        shared = rng.normal(size=40)
        one, other = (gold + shared + rng.normal(size=40) for _ in range(2))
        rejected += compare(one, other, gold.tolist()).p < 0.05
    assert 0.035 < rejected / 2000 < 0.065


def test_correlations_are_scipys():
    rng = np.random.default_rng(1)
    one, other = rng.normal(size=(2, 30))
    found = correlate(one, other.tolist())
    assert found == (scipy.stats.pearsonr(one, other)[0], scipy.stats.spearmanr(one, other)[0])


def test_what_has_no_correlation():
    assert all(map(math.isnan, correlate([1.0, 1.0, 1.0], [1.0, 2.0, 3.0])))
    with pytest.raises(EvaluationError, match="One pair"):
        correlate([1.0], [1.0])
    with pytest.raises(EvaluationError, match="4 pairs or more"):
        williams_test(0.1, 0.2, 0.3, 3)
    assert williams_test(0.5, 0.5, 1.0, 10).p == 1


def test_series_that_differ_by_rounding_do_not_differ():
    rng = np.random.default_rng(0)
    gold, scores = rng.random(40), rng.random(40)
    for scale in (1.0, 3.7, 1e-3):
        assert compare(scores, scale * scores + 0.1 + 1e-8 * rng.random(40), gold).p == 1.0
    assert williams_test(0.9, 0.1, 0.9, 30).p < 0.05  # no such three exist: rounding makes them


@pytest.mark.parametrize("queries", [6, 40])  # all 64 ways to draw the signs, and 9,999 of 2^40
def test_the_tests_are_those_of_scipy(queries):
    rng = np.random.default_rng(5)
    base = rng.uniform(size=queries)
    values = np.clip(base + rng.normal(0.1, 0.2, size=queries), 0, 1)
    found = paired_difference(values.tolist(), base.tolist())
    assert found.mean == pytest.approx(values.mean() - base.mean(), abs=1e-12)
    assert found.t_test == scipy.stats.ttest_rel(values, base).pvalue
    drawn = scipy.stats.permutation_test(
        (values, base),
        lambda x, y: np.mean(x) - np.mean(y),
        permutation_type="samples",
        vectorized=False,
        n_resamples=RESAMPLES,
        random_state=SEED,
    )
    assert found.randomisation == pytest.approx(drawn.pvalue, abs=0.005 if queries == 40 else 1e-12)
    assert 0 < found.randomisation < 1


def test_it_is_the_same_each_time():
    values, base = np.random.default_rng(2).uniform(size=(2, 50))
    assert paired_difference(values, base) == paired_difference(values, base)


def test_the_pairs_count():
    base = np.linspace(0, 1, 20)
    shuffled = np.random.default_rng(1).permutation(base)
    paired = paired_difference(base + np.linspace(0.01, 0.02, 20), base)
    apart = paired_difference(shuffled + np.linspace(0.01, 0.02, 20), base)
    assert paired.mean == pytest.approx(apart.mean)
    assert max(paired.t_test, paired.randomisation) < 0.001
    assert min(apart.t_test, apart.randomisation) > 0.5


def test_equal_systems_do_not_differ():
    assert paired_difference([0.5, 0.25, 1], [0.5, 0.25, 1]).t_test == 1
    assert paired_difference([0.5, 0.25, 1], [0.5, 0.25, 1]).randomisation == 1


def test_differences_that_are_all_the_same_warn_of_nothing():
    found = paired_difference([1.0] * 12, [0.0] * 12)  # warnings are errors here
    assert found.t_test == 0
    assert found.randomisation == 2 / 2**12


def test_one_query_is_too_few():
    with pytest.raises(ValueError, match="two queries"):
        paired_difference([1.0], [0.0])


def test_holm_by_hand():
    # Sorted .01 .02 .03 .04: times 4, 3, 2, 1 are .04 .06 .06 .04, and none may fall.
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.5, 0.4]) == pytest.approx([0.8, 0.8])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([0.03]) == [0.03]
    assert holm([]) == []

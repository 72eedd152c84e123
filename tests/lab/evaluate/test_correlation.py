"""Correlations are scipy's; Williams' test gives published values."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy

from slice_os.errors import EvaluationError
from slice_os.lab.evaluate import compare, correlate, williams_test


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

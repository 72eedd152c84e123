"""The pool, the model and its calibration, against what they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from slice_os.spans import SpanTables, fit_window, span_cosines, word_scores
from slice_os.teaching.model import Answer, Learner, Learning, logistic, sigmoid
from slice_os.teaching.pool import Pool
from slice_os.teaching.teacher import wilson

from .conftest import PHRASE, says


@pytest.fixture
def pool(index):
    found = Pool(range(3, 9))
    found.add(index.passages())
    found.total = len(found)
    return found


def test_the_best_span_is_that_of_the_tables(pool, encoder):
    vector = encoder.encode(PHRASE)
    best = pool.best(vector)
    for row, stored in enumerate(pool.stored):
        packed = stored.packed
        tables = SpanTables(packed, stored.passage.text)
        scores = word_scores(tables.vectors, vector)
        cosines = span_cosines(scores, tables.norms, range(1, packed.max_words + 1))
        window = fit_window(pool.window, len(packed))
        cosines = tables.phrasing.within(cosines, window)
        assert best.cosines[row] == pytest.approx(cosines.max(), abs=1e-5)
        length = best.ends[row] - best.starts[row]
        assert cosines[length - 1, best.starts[row]] == pytest.approx(cosines.max(), abs=1e-5)


def test_a_part_of_a_pool_is_as_the_whole(pool, encoder):
    vector = encoder.encode(PHRASE)
    rows = [7, 2, 30]
    part = pool.part(rows, pool.window)
    assert part.best(vector).cosines == pytest.approx(pool.best(vector).cosines[rows], abs=1e-6)
    assert list(part.rows.values()) == [0, 1, 2]


def test_passages_added_later_are_there_and_none_twice(index, encoder):
    all_of_them = list(index.passages())
    pool = Pool(range(3, 9))
    pool.add(all_of_them[:5])
    first = pool.best(encoder.encode(PHRASE)).cosines
    pool.add(all_of_them[3:], found=False)
    assert len(pool) == len(all_of_them)
    assert pool.best(encoder.encode(PHRASE)).cosines[:5] == pytest.approx(first)
    assert pool.found[:5] == [True] * 5
    assert not any(pool.found[5:])


def test_weights_stand_for_the_index(index):
    pool = Pool(range(3, 9))
    some = list(index.passages())
    pool.add(some[:10])
    pool.add(some[10:15], found=False)
    pool.total = 1000
    assert pool.weights.sum() == pytest.approx(1000)
    assert pool.weights[:10].tolist() == [1.0] * 10


@pytest.mark.parametrize("shape", [(60, 5), (20, 50)])
def test_logistic_regression_finds_the_least_loss(shape):
    rng = np.random.default_rng(1)
    inputs, offset = rng.normal(size=shape), rng.normal(size=shape[0])
    right, counts = rng.random(shape[0]), rng.random(shape[0]) + 0.1
    penalties = rng.random(shape[1]) + 0.05
    found = logistic(inputs, right, counts, penalties, offset)
    slope = inputs.T @ (counts * (sigmoid(inputs @ found + offset) - right)) + penalties * found
    assert np.abs(slope).max() < 1e-2


def test_without_answers_to_turn_it_the_model_ranks_as_the_phrase(pool, encoder):
    vector = encoder.encode(PHRASE)
    stiff = Learning(turning=((1e6, False),), caution=0)
    rows = range(20)
    answers = [Answer(row, says(pool.stored[row].passage)) for row in rows]
    model = Learner(pool, vector, stiff).fit(answers)
    along = float(model.vector @ vector) / np.linalg.norm(model.vector)
    assert along == pytest.approx(1, abs=1e-3)


def test_answers_raise_the_probability_of_what_is_like_them(pool, encoder):
    vector = encoder.encode(PHRASE)
    rows = range(0, len(pool), 2)
    answers = [Answer(row, says(pool.stored[row].passage)) for row in rows]
    learner = Learner(pool, vector, Learning())
    model = learner.fit(answers)
    logits, _ = model.best(pool)
    calibration = learner.calibrate(answers, model)
    chances = calibration.probabilities(logits)
    right = np.array([says(one.passage) for one in pool.stored])
    unseen = np.array([row % 2 == 1 for row in range(len(pool))])
    assert auc(logits, right, unseen) > 0.8
    assert chances[right & unseen].mean() > 1.3 * chances[~right & unseen].mean()


def test_a_fold_has_not_seen_what_it_judges(pool, encoder):
    """With labels at random, nothing is there to be learnt, whatever the fit says."""
    rng = np.random.default_rng(3)
    answers = [Answer(row, bool(rng.random() < 0.5)) for row in range(len(pool))]
    learner = Learner(pool, encoder.encode(PHRASE), Learning())
    model = learner.fit(answers)
    seen = model.best(pool)[0]
    apart = learner.apart(answers)
    right = np.array([answer.right for answer in answers])
    everything = np.ones(len(answers), bool)
    assert auc(seen, right, everything) > 0.9
    assert auc(apart, right, everything) < 0.75


def auc(scores, right, which):
    good, bad = scores[right & which], scores[~right & which]
    return (good[:, None] > bad[None]).mean()


def test_wilsons_interval():
    assert wilson(0.5, 0) == (0.0, 1.0)
    assert wilson(0.8, 10) == pytest.approx((0.490, 0.943), abs=1e-3)

"""Late interaction: each word of a query with its nearest word of a passage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slice_os.spans import late_interactions, query_words


def interactions(query, passages):
    """Return the late interaction of a query with each of some passages."""
    words = np.concatenate(passages).astype(np.float32)
    bounds = np.cumsum([0, *map(len, passages)])
    return late_interactions(query, words @ query.vectors.T, (words**2).sum(axis=1), bounds)


def naive(query, passage):
    """The formula, a pair of words at a time."""
    whole = query.sum(0)
    shares = [max(0.0, float(whole @ word)) for word in query]
    total = 0.0
    for share, word in zip(shares, query, strict=True):
        cosines = [
            float(word @ other) / (np.linalg.norm(word) * np.linalg.norm(other))
            for other in passage
            if np.linalg.norm(other)
        ]
        total += share / sum(shares) * max(cosines)
    return total


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**5))
def test_it_is_the_formula(seed):
    rng = np.random.default_rng(seed)
    query = rng.normal(size=(rng.integers(1, 9), 8)).astype(np.float32)
    passages = [
        (rng.normal(size=(n, 8)) * rng.uniform(0.1, 9, (n, 1))).astype(np.float32)
        for n in rng.integers(1, 30, 7)
    ]
    asked = query_words(query)
    expected = [naive(query, words) for words in passages]
    assert interactions(asked, passages) == pytest.approx(expected, abs=1e-5)


def test_a_word_against_the_query_does_not_count():
    query = np.array([[3, 0], [0, 2], [-1, 0]], np.float32)
    assert query_words(query).shares.tolist() == pytest.approx([0.6, 0.4, 0])
    only = np.array([[0, 5]], np.float32)
    assert interactions(query_words(query), [only]) == pytest.approx([0.4])


def test_a_passage_without_words_or_direction_is_far_from_everything():
    query = query_words(np.eye(4, dtype=np.float32))
    words = [np.empty((0, 4)), np.eye(4), np.zeros((2, 4)), np.empty((0, 4))]
    assert interactions(query, words) == pytest.approx([-1, 1, 0, -1])


@pytest.mark.parametrize("vectors", [np.zeros((3, 4)), np.empty((0, 4)), [[1.0, 0], [-1.0, 0]]])
def test_a_query_that_points_nowhere_is_refused(vectors):
    with pytest.raises(ValueError, match="add up to nothing"):
        query_words(np.asarray(vectors))

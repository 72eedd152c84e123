"""Subsequences against the plain dynamic programme, which looks at one pair at a time."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slice_os.errors import QueryError
from slice_os.ranking import lcs_pairs, lcs_scores
from slice_os.ranking.stack import cosine_blocks, stack


def plain(query, document, threshold, weighted):
    """The recurrence as it is written, a cell at a time."""
    m, n = len(query), len(document)
    table = [[0.0] * (n + 1) for _ in range(m + 1)]
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            cosine = float(query[i - 1] @ document[j - 1])
            weight = (cosine if weighted else 1.0) if cosine > threshold else 0.0
            table[i][j] = max(table[i - 1][j], table[i][j - 1], table[i - 1][j - 1] + weight)
    return table[m][n]


def exhaustive(cosines, threshold):
    """The best sum over every monotone matching of a few sentences."""
    m, n = cosines.shape
    best = 0.0
    for size in range(1, min(m, n) + 1):
        for rows in combinations(range(m), size):
            for columns in combinations(range(n), size):
                found = cosines[list(rows), list(columns)]
                if (found > threshold).all():
                    best = max(best, float(found.sum()))
    return best


def case(seed, m, lengths, dimension, threshold):
    """Sentences of few meanings, so that many match, among them repeated ones and zeros."""
    rng = np.random.default_rng(seed)
    meanings = rng.normal(size=(6, dimension))
    total = m + sum(lengths)
    rows = meanings[rng.integers(0, 6, total)] + 0.4 * rng.normal(size=(total, dimension))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows[rng.random(total) < 0.05] = 0
    rows = rows.astype(np.float32)
    return rows[:m], rows[m:], np.array(lengths), threshold


cases = st.builds(
    case,
    st.integers(0, 10**6),
    st.integers(1, 8),
    st.lists(st.integers(1, 12), min_size=1, max_size=90),
    st.sampled_from([2, 5, 16]),
    st.sampled_from([0.0, 0.4, 0.8]),
)


def parts(rows, counts):
    return np.split(rows, np.cumsum(counts)[:-1])


@settings(max_examples=60, deadline=None)
@given(cases, st.booleans(), st.sampled_from([1, 500, 4000, 1 << 25]))
def test_scores_are_those_of_the_plain_programme(given_case, weighted, block_bytes):
    query, rows, counts, threshold = given_case
    before = rows.copy()
    scores = lcs_scores(query, rows, counts, threshold, weighted=weighted, block_bytes=block_bytes)
    expected = [plain(query, one, threshold, weighted) for one in parts(rows, counts)]
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(rows, before)
    again = lcs_scores(query, parts(rows, counts), threshold=threshold, weighted=weighted)
    np.testing.assert_allclose(scores, again, rtol=1e-6, atol=1e-7)


@settings(max_examples=60, deadline=None)
@given(cases, st.booleans())
def test_pairs_are_in_order_match_and_make_up_the_score(given_case, weighted):
    query, rows, counts, threshold = given_case
    scores = lcs_scores(query, rows, counts, threshold, weighted=weighted)
    for score, document in zip(scores, parts(rows, counts), strict=True):
        pairs = lcs_pairs(query, document, threshold, weighted=weighted)
        assert all(a.query < b.query and a.document < b.document for a, b in pairwise(pairs))
        for pair in pairs:
            assert pair.cosine > threshold
            assert pair.cosine == pytest.approx(
                float(query[pair.query] @ document[pair.document]), abs=1e-6
            )
        total = sum(pair.cosine for pair in pairs) if weighted else len(pairs)
        assert total == pytest.approx(score, rel=1e-5)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 5))
def test_no_matching_is_better(seed, m, n):
    query, rows, counts, threshold = case(seed, m, [n], 3, 0.4)
    found = lcs_scores(query, rows, counts, threshold)
    np.testing.assert_allclose(found, [exhaustive(query @ rows.T, threshold)], rtol=1e-5)


def test_a_subsequence_of_known_sentences():
    meanings = np.eye(6, dtype=np.float32)
    query = meanings[[0, 1, 2]]
    in_order = meanings[[4, 0, 5, 1, 2, 5]]
    reversed_ = meanings[[2, 1, 0]]
    nothing = meanings[[4, 5]]
    documents = [in_order, reversed_, nothing]
    np.testing.assert_array_equal(lcs_scores(query, documents), [3, 1, 0])
    np.testing.assert_array_equal(lcs_scores(query, documents, weighted=False), [3, 1, 0])
    assert [pair[:2] for pair in lcs_pairs(query, in_order)] == [(0, 1), (1, 3), (2, 4)]
    assert [pair[:2] for pair in lcs_pairs(query, reversed_)] == [(2, 0)]
    assert lcs_pairs(query, nothing) == []


def test_a_cosine_at_the_threshold_does_not_match():
    query = np.array([[1, 0]], np.float32)
    document = np.array([[0.4, np.sqrt(1 - 0.4**2)]], np.float32)
    assert lcs_scores(query, [document], threshold=0.4) == [0]
    assert lcs_scores(query, [document], threshold=0.39) == [np.float32(0.4)]


def test_more_pairs_need_not_weigh_more():
    """Weighted, one good pair beats two that cross it; unweighted, two are more."""
    query = np.eye(3, dtype=np.float32)[:2]
    document = np.array([[0.45, 0.7, 0.55], [0.99, 0.45, 0]], np.float32)
    document /= np.linalg.norm(document, axis=1, keepdims=True)
    assert [pair[:2] for pair in lcs_pairs(query, document, 0.4)] == [(0, 1)]
    assert [pair[:2] for pair in lcs_pairs(query, document, 0.4, weighted=False)] == [
        (0, 0),
        (1, 1),
    ]


def test_blocks_are_bounded_and_hold_every_row():
    query, rows, counts, _ = case(1, 4, [3, 1, 9, 2, 2, 40, 1], 5, 0.4)
    blocks = list(cosine_blocks(query, stack(rows, counts), block_bytes=4 * 4 * 10))
    assert [(part.start, part.stop) for part, _ in blocks] == [
        *[(0, 2), (2, 3), (3, 5), (5, 6), (6, 7)]
    ]
    np.testing.assert_allclose(
        np.concatenate([cosines for _, cosines in blocks], axis=1), query @ rows.T, atol=1e-6
    )


UNIT = np.eye(3, dtype=np.float32)
BROKEN = np.array([[np.nan, 0, 1]], np.float32)


@pytest.mark.parametrize(
    ("query", "documents", "counts", "threshold", "message"),
    [
        (UNIT, [], None, 0.4, "no document to rank"),
        (UNIT, [UNIT, UNIT[:0]], None, 0.4, "Document 1 has no sentence"),
        (UNIT[:0], [UNIT], None, 0.4, "The query has no sentence"),
        (UNIT[0], [UNIT], None, 0.4, "The query has no sentence"),
        (UNIT[:, :2], [UNIT], None, 0.4, "2 dimensions, the documents 3"),
        (UNIT, [UNIT, UNIT[:, :2]], None, 0.4, "differ in dimension"),
        (UNIT, UNIT, np.array([1, 1]), 0.4, "do not fit together"),
        (BROKEN, [UNIT], None, 0.4, "query's vectors are not all finite"),
        (UNIT, [UNIT, BROKEN], None, 0.4, "documents 0 to 1 is not finite"),
        (UNIT, [3 * UNIT], None, 0.4, "not of length 1"),
        (UNIT, [UNIT], None, 1.0, "threshold 1.0"),
        (UNIT, [UNIT], None, -0.1, "threshold -0.1"),
        (UNIT, [UNIT], None, float("nan"), "threshold nan"),
    ],
)
def test_what_cannot_be_ranked_is_said(query, documents, counts, threshold, message):
    with pytest.raises(QueryError, match=message):
        lcs_scores(query, documents, counts, threshold)


def test_pairs_check_as_scores_do():
    with pytest.raises(QueryError, match="not finite"):
        lcs_pairs(UNIT, BROKEN)
    with pytest.raises(QueryError, match="threshold"):
        lcs_pairs(UNIT, UNIT, 2.0)

"""Subsequences against the plain dynamic programme, which looks at one pair at a time."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slice_os.errors import QueryError
from slice_os.lab.ranking import lcs_pairs, lcs_scores, subsequence
from slice_os.lab.ranking.subsequence import Stack, cosine_blocks


def plain(query, document, threshold, score):
    """The recurrence as it is written, a cell at a time, with each cell's pairs."""
    m, n = len(query), len(document)
    # What is compared: (pairs, sum) for the longest, (sum,) for the heaviest; then the pairs.
    table = [[(0, 0.0, ())] * (n + 1) for _ in range(m + 1)]
    key = {"cosine": lambda cell: cell[:2], "sum": lambda cell: cell[1:2], "count": lambda c: c[0]}
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            cosine = float(query[i - 1] @ document[j - 1])
            cells = [table[i - 1][j], table[i][j - 1]]
            if cosine >= threshold:
                count, total, pairs = table[i - 1][j - 1]
                cells.append((count + 1, total + cosine, (*pairs, (i - 1, j - 1))))
            table[i][j] = max(cells, key=key[score])
    count, total, pairs = table[m][n]
    if score != "cosine":
        return total if score == "sum" else count
    if not pairs:
        return -1
    ours, theirs = query[[i for i, _ in pairs]].mean(0), document[[j for _, j in pairs]].mean(0)
    return float(ours @ theirs / np.linalg.norm(ours) / np.linalg.norm(theirs))


def exhaustive(cosines, threshold):
    """The best sum over every monotone matching of a few sentences."""
    m, n = cosines.shape
    best = 0.0
    for size in range(1, min(m, n) + 1):
        for rows in combinations(range(m), size):
            for columns in combinations(range(n), size):
                found = cosines[list(rows), list(columns)]
                if (found >= threshold).all():
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
    st.sampled_from([0.05, 0.4, 0.8]),
)


scores = st.sampled_from(["cosine", "sum", "count"])


def parts(rows, counts):
    return np.split(rows, np.cumsum(counts)[:-1])


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(cases, scores, st.sampled_from([1, 500, 4000, 1 << 25]))
def test_scores_are_those_of_the_plain_programme(monkeypatch, given_case, score, block_bytes):
    query, rows, counts, threshold = given_case
    before = rows.copy()
    monkeypatch.setattr(subsequence, "BLOCK_BYTES", block_bytes)
    found = lcs_scores(query, Stack(rows, counts), threshold, score=score)
    expected = [plain(query, one, threshold, score) for one in parts(rows, counts)]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(rows, before)
    again = lcs_scores(query, parts(rows, counts), threshold, score=score)
    np.testing.assert_allclose(found, again, rtol=1e-6, atol=1e-7)


@settings(max_examples=60, deadline=None)
@given(cases, scores)
def test_pairs_are_in_order_match_and_make_up_the_score(given_case, score):
    query, rows, counts, threshold = given_case
    found = lcs_scores(query, Stack(rows, counts), threshold, score=score)
    for value, document in zip(found, parts(rows, counts), strict=True):
        pairs = lcs_pairs(query, document, threshold, score=score)
        assert all(a.query < b.query and a.document < b.document for a, b in pairwise(pairs))
        for pair in pairs:
            assert pair.cosine >= threshold - 1e-6
            assert pair.cosine == pytest.approx(
                float(query[pair.query] @ document[pair.document]), abs=1e-6
            )
        ours = query[[pair.query for pair in pairs]].sum(0)
        theirs = document[[pair.document for pair in pairs]].sum(0)
        norms = float(np.linalg.norm(ours) * np.linalg.norm(theirs))
        expected = {
            "cosine": float(ours @ theirs) / norms if pairs else -1,
            "sum": sum(pair.cosine for pair in pairs),
            "count": len(pairs),
        }
        assert value == pytest.approx(expected[score], rel=1e-4)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 5))
def test_no_matching_is_better(seed, m, n):
    query, rows, counts, threshold = case(seed, m, [n], 3, 0.4)
    found = lcs_scores(query, Stack(rows, counts), threshold)
    np.testing.assert_allclose(found, [exhaustive(query @ rows.T, threshold)], rtol=1e-5)


def test_a_subsequence_of_known_sentences():
    meanings = np.eye(6, dtype=np.float32)
    query = meanings[[0, 1, 2]]
    in_order = meanings[[4, 0, 5, 1, 2, 5]]
    reversed_ = meanings[[2, 1, 0]]
    nothing = meanings[[4, 5]]
    documents = [in_order, reversed_, nothing]
    for score, expected in (("cosine", [1, 1, -1]), ("sum", [3, 1, 0]), ("count", [3, 1, 0])):
        np.testing.assert_allclose(lcs_scores(query, documents, score=score), expected, rtol=1e-6)
    assert [pair[:2] for pair in lcs_pairs(query, in_order)] == [(0, 1), (1, 3), (2, 4)]
    assert [pair[:2] for pair in lcs_pairs(query, reversed_)] == [(2, 0)]
    assert lcs_pairs(query, nothing) == []


def test_a_cosine_at_the_threshold_matches():
    query = np.array([[1, 0]], np.float32)
    document = np.array([[0.4, np.sqrt(1 - 0.4**2)]], np.float32)
    assert lcs_scores(query, [document], threshold=0.4) == [np.float32(0.4)]
    assert lcs_scores(query, [document], threshold=0.41) == [0]


def test_two_poor_matches_beat_a_perfect_one_by_the_sum_alone():
    """The published score is that of the means: 0.6 twice is still 0.6, and less than 1."""
    query = np.eye(4, dtype=np.float32)[:2]
    poor = np.array([[0.6, 0, 0.8, 0], [0, 0.6, 0, 0.8]], np.float32)
    perfect = np.array([[1, 0, 0, 0], [0, 0, 0, 1]], np.float32)
    documents = [poor, perfect]
    np.testing.assert_allclose(lcs_scores(query, documents, score="cosine"), [0.6, 1], rtol=1e-6)
    np.testing.assert_allclose(lcs_scores(query, documents), [1.2, 1], rtol=1e-6)


def test_the_longest_matching_is_not_the_heaviest():
    """By the sum, one good pair beats two that cross it; the longest has the two."""
    query = np.eye(3, dtype=np.float32)[:2]
    document = np.array([[0.45, 0.7, 0.55], [0.99, 0.45, 0]], np.float32)
    document /= np.linalg.norm(document, axis=1, keepdims=True)
    assert [pair[:2] for pair in lcs_pairs(query, document)] == [(0, 1)]
    for score in ("cosine", "count"):
        assert [pair[:2] for pair in lcs_pairs(query, document, score=score)] == [(0, 0), (1, 1)]


def test_of_equally_long_matchings_the_one_of_the_largest_cosines_is_taken():
    query = np.eye(3, dtype=np.float32)[:1]
    document = np.array([[0.5, 0.5, 0], [0.9, 0.1, 0], [0.6, 0, 0.6]], np.float32)
    document /= np.linalg.norm(document, axis=1, keepdims=True)
    assert [pair[:2] for pair in lcs_pairs(query, document, score="cosine")] == [(0, 1)]
    assert lcs_scores(query, [document], score="cosine")[0] == pytest.approx(document[1, 0])


def test_blocks_are_bounded_and_hold_every_row(monkeypatch):
    monkeypatch.setattr(subsequence, "BLOCK_BYTES", 4 * 4 * 10)
    query, rows, counts, _ = case(1, 4, [3, 1, 9, 2, 2, 40, 1], 5, 0.4)
    blocks = list(cosine_blocks(query, Stack(rows, counts)))
    places = [(part.start, part.stop) for part, _ in blocks]
    assert places == [(0, 2), (2, 3), (3, 5), (5, 6), (6, 7)]
    together = np.concatenate([cosines for _, cosines in blocks], axis=1)
    np.testing.assert_allclose(together, query @ rows.T, atol=1e-6)


UNIT = np.eye(3, dtype=np.float32)
BROKEN = np.array([[np.nan, 0, 1]], np.float32)


@pytest.mark.parametrize(
    ("query", "documents", "threshold", "message"),
    [
        (UNIT, [], 0.4, "no document to rank"),
        (UNIT, [UNIT, UNIT[:0]], 0.4, "Document 1 has no sentence"),
        (UNIT[:0], [UNIT], 0.4, "are not rows of 3 dimensions"),
        (UNIT[0], [UNIT], 0.4, "are not rows of 3 dimensions"),
        (UNIT[:, :2], [UNIT], 0.4, "are not rows of 3 dimensions"),
        (UNIT, [UNIT, UNIT[:, :2]], 0.4, "differ in dimension"),
        (UNIT, [UNIT, BROKEN], 0.4, "documents 0 to 1 is not finite"),
        (BROKEN, [UNIT], 0.4, "of the query or of documents 0 to 0 is not finite"),
        (UNIT, [3 * UNIT], 0.4, "not of length 1"),
        (UNIT, [UNIT], 1.1, "threshold 1.1"),
        (UNIT, [UNIT], 0.0, "threshold 0.0"),
        (UNIT, [UNIT], float("nan"), "threshold nan"),
    ],
)
def test_what_cannot_be_ranked_is_said(query, documents, threshold, message):
    with pytest.raises(QueryError, match=message):
        lcs_scores(query, documents, threshold)
    if len(documents) == 1:
        with pytest.raises(QueryError, match=message):
            lcs_pairs(query, documents[0], threshold)

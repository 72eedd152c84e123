import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slice_os import spans
from slice_os.spans import selection


def table(seed, n, lengths, levels):
    """Random cosines with many ties (few levels), -inf past the end and here and there."""
    rng = np.random.default_rng(seed)
    cosines = (rng.integers(-levels, levels + 1, (len(lengths), n)) / levels).astype(np.float32)
    cosines[rng.random(cosines.shape) < 0.1] = -np.inf
    for row, length in enumerate(lengths):
        cosines[row, max(n - length + 1, 0) :] = -np.inf
    return cosines


def ranked(cosines, lengths):
    """All spans by the rule: higher cosine, then shorter, then earlier."""
    every = [
        (i, i + length, float(cosines[row, i]))
        for row, length in enumerate(lengths)
        for i in range(cosines.shape[1])
        if cosines[row, i] > -np.inf
    ]
    return sorted(every, key=lambda s: (-s[2], s[1] - s[0], s[0]))


def apart(candidates):
    kept = []
    for i, j, value in candidates:
        if all(j <= a or b <= i for a, b, _ in kept):
            kept.append((i, j, value))
    return kept


tables = st.builds(
    lambda seed, n, first, count, levels: (
        table(seed, n, range(first, first + count), levels),
        range(first, first + count),
    ),
    st.integers(0, 10**5),
    st.integers(0, 40),
    st.integers(1, 8),
    st.integers(0, 12),
    st.sampled_from([1, 3, 1000]),
)


@settings(max_examples=150, deadline=None)
@given(tables, st.integers(0, 12), st.sampled_from([-1.0, 0.0, 1 / 3, 0.5, 1.0]))
def test_selections_are_those_of_a_full_sort(case, k, threshold):
    cosines, lengths = case
    before = cosines.copy()
    order = ranked(cosines, lengths)
    assert spans.best_span(cosines, lengths) == (order[0] if order else (0, 0, -np.inf))
    assert spans.top_spans(cosines, lengths, k) == order[:k]
    reached = [s for s in order if s[2] >= np.float32(threshold)]
    assert spans.spans_above(cosines, lengths, threshold) == apart(reached)
    np.testing.assert_array_equal(cosines, before)


def test_chunks_do_not_change_the_matches(monkeypatch):
    lengths = range(1, 11)
    cosines = table(5, 300, lengths, 50)
    whole = spans.spans_above(cosines, lengths, 0.0)
    monkeypatch.setattr(selection, "CHUNK", 7)
    assert spans.spans_above(cosines, lengths, 0.0) == whole
    assert whole == apart([s for s in ranked(cosines, lengths) if s[2] >= 0])


def test_a_cosine_that_equals_the_threshold_is_a_match():
    cosines = np.array([[0.8, 0.7]], np.float32)
    lengths = range(1, 2)
    assert [s.i for s in spans.spans_above(cosines, lengths, 0.8)] == [0]
    assert [s.i for s in spans.spans_above(cosines, lengths, float(np.float32(0.7)))] == [0, 1]
    assert spans.spans_above(cosines, lengths, 0.8001) == []
    assert spans.spans_above(np.full((1, 2), -np.inf, np.float32), lengths, -np.inf) == []


def test_a_long_passage_with_every_cell_above_the_threshold_is_not_quadratic():
    lengths = range(1, 21)
    n = 50_000
    cosines = np.random.default_rng(0).random((20, n), dtype=np.float32)
    for row, length in enumerate(lengths):
        cosines[row, n - length + 1 :] = -np.inf
    begin = time.process_time()
    matches = spans.spans_above(cosines, lengths, 0.0)
    assert time.process_time() - begin < 10  # about 0.4 s; quadratic work would take hours
    covered = sorted((i, j) for i, j, _ in matches)
    assert all(a[1] <= b[0] for a, b in pairwise(covered))
    assert [m.cosine for m in matches] == sorted((m.cosine for m in matches), reverse=True)
    assert sum(j - i for i, j in covered) == n


def test_a_table_of_other_lengths_is_refused():
    cosines = np.zeros((3, 4), np.float32)
    for call in (
        lambda: spans.best_span(cosines, range(1, 3)),
        lambda: spans.top_spans(cosines, range(1, 6, 2), 1),
        lambda: spans.spans_above(cosines[0], range(1, 4), 0.5),
        lambda: spans.top_spans(cosines, range(1, 4), -1),
    ):
        with pytest.raises(ValueError, match=r"length|no -1"):
            call()

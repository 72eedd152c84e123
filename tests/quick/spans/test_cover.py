import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slice_os import spans
from slice_os.spans import covering
from slice_os.spans.covering import REACH


def text_like(seed, n, d, topic):
    """Words that share a topic and resemble their neighbours, of uneven size."""
    rng = np.random.default_rng(seed)
    local = rng.standard_normal((n + 4, d))
    local = sum(local[k : k + n] for k in range(5)) / 5**0.5
    words = topic * rng.standard_normal(d) + 0.4 * local + 0.8 * rng.standard_normal((n, d))
    return (words * rng.uniform(0.5, 2.0, (n, 1))).astype(np.float32)


def worst(vectors, kept, max_words):
    """The lowest, over all spans, of the highest cosine to a kept span that shares a word."""
    wide = vectors.astype(np.float64)
    lowest = np.inf
    rows = [wide[i:j].sum(axis=0) for i, j in kept]
    units = np.array([row / np.linalg.norm(row) for row in rows])
    for i in range(len(wide)):
        for j in range(i + 1, min(len(wide), i + max_words) + 1):
            vector = wide[i:j].sum(axis=0)
            norm = np.linalg.norm(vector)
            if norm <= 2.0**-23 * np.sqrt((wide[i:j] ** 2).sum()):
                continue
            beside = (kept[:, 0] < j) & (kept[:, 1] > i)
            best = (units[beside] @ vector).max(initial=-np.inf) / norm
            lowest = min(lowest, best)
    return lowest


def check(vectors, tolerance, max_words=20):
    kept = spans.cover(vectors, tolerance, max_words)
    assert kept.dtype == np.int32
    assert kept.shape[1:] == (2,)
    pairs = list(map(tuple, kept.tolist()))
    assert pairs == sorted(set(pairs))
    assert all(0 <= i < j <= min(i + max_words, len(vectors)) for i, j in pairs)
    assert worst(vectors, kept, max_words) >= min(tolerance, 1 - 1e-12)
    assert pairs == list(map(tuple, spans.cover(vectors.copy(), tolerance, max_words).tolist()))
    return kept


@settings(max_examples=40)
@given(
    st.integers(0, 10**5),
    st.integers(1, 50),
    st.sampled_from([2, 16, 64]),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.sampled_from([0.3, 0.8, 0.95, 0.999, 1.0]),
    st.sampled_from([1, 2, 5, 20]),
)
def test_every_span_has_a_kept_one_that_overlaps_it(seed, n, d, topic, tolerance, max_words):
    check(text_like(seed, n, d, topic), tolerance, max_words)


@settings(max_examples=25)
@given(st.integers(0, 10**5), st.integers(2, 40), st.sampled_from([0.0, 1e-7, 1e-5, 1e-3]))
def test_words_that_cancel_are_covered_too(seed, n, noise):
    rng = np.random.default_rng(seed)
    word = rng.standard_normal(24)
    signs = rng.choice([-1, 0, 1], (n, 1))
    vectors = (signs * word + noise * rng.standard_normal((n, 24))).astype(np.float32)
    kept = spans.cover(vectors, 0.9)
    if len(kept):
        assert worst(vectors, kept, 20) >= 0.9
    else:
        assert not spans.span_norms(vectors).any()


def test_blocks_cover_a_long_passage(monkeypatch):
    vectors = text_like(1, 150, 16, 0.6)
    whole = check(vectors, 0.95)
    monkeypatch.setattr(covering, "BLOCK", 11)
    pieces = check(vectors, 0.95)
    assert len(whole) < len(pieces) < 2 * len(whole)


def greedy_over_all(vectors, tolerance):
    """Plain greedy set cover, every overlapping pair compared: what the reach gives up."""
    every = spans.enumerate_spans(len(vectors))
    sums = spans.prefix_sums(vectors)
    units = sums[every[:, 1]] - sums[every[:, 0]]
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    relation = units @ units.T >= tolerance
    relation &= (every[:, None, 0] < every[None, :, 1]) & (every[None, :, 0] < every[:, None, 1])
    count = 0
    while relation.any():
        relation[:, relation[relation.sum(axis=1).argmax()].copy()] = False
        count += 1
    return count


@pytest.mark.parametrize("topic", [0.3, 0.6, 1.0])
def test_a_cover_is_small_and_near_the_unrestricted_greedy_choice(topic):
    vectors = text_like(2, 60, 128, topic)
    kept = check(vectors, 0.95)
    assert len(kept) < 0.35 * len(spans.enumerate_spans(60))
    assert len(kept) <= 1.2 * greedy_over_all(vectors, 0.95)
    assert len(spans.cover(vectors, 0.9)) < len(kept) < len(spans.cover(vectors, 0.98))


def test_the_most_useful_span_is_kept_first():
    vectors = np.ones((5, 3), np.float32)  # all spans parallel: the best overlap is wide
    kept = check(vectors, 0.9)
    assert len(kept) == 1
    assert len(check(vectors, 1.0)) == 15  # nothing is closer than rounding lets one tell


def test_edges():
    for n in (0, 30):
        kept = spans.cover(np.zeros((n, 4), np.float32), 0.95)
        assert kept.shape == (0, 2)
        assert kept.dtype == np.int32
    one = np.array([[0, 0], [1, 2], [0, 0]], np.float32)
    kept = spans.cover(one, 0.95)
    assert len(kept) == 1
    assert kept[0, 0] <= 1 < kept[0, 1]
    for tolerance in (0.0, -0.5, 1.01, float("nan")):
        with pytest.raises(ValueError, match="tolerance"):
            spans.cover(one, tolerance)
    with pytest.raises(ValueError, match="words"):
        spans.cover(one, 0.9, 0)


def test_the_reach_suits_spans_shorter_than_it():
    assert REACH > 2
    check(text_like(3, 12, 8, 1.0), 0.7, 2)

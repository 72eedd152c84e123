"""Everything against the naive computation that forms every span's vector in float64."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slice_os import spans
from slice_os.errors import EncoderError, QueryError
from slice_os.spans.cosines import squared_norms

L = spans.MAX_WORDS


def make(seed, n, d, kind):
    rng = np.random.default_rng(seed)
    own = rng.standard_normal((n, d))
    if kind == "clustered":
        own = (
            0.6 * own
            + rng.standard_normal(d)
            + 0.4 * rng.standard_normal((3, d))[own.argmax(1) % 3]
        )
    elif kind == "cancelling":
        own[1::2] = -own[: len(own[1::2]) * 2 : 2] * (1 + 1e-4 * rng.integers(0, 2, (n // 2, 1)))
    return (own * rng.uniform(0.3, 4.0, (n, 1)) * 10.0 ** rng.integers(-3, 3)).astype(np.float32)


def naive_vectors(vectors, max_words=L):
    """Every span by an independent loop: {(i, j): float64 vector}."""
    wide = vectors.astype(np.float64)
    n = len(vectors)
    return {
        (i, j): wide[i:j].sum(axis=0)
        for i in range(n)
        for j in range(i + 1, min(n, i + max_words) + 1)
    }


def unit(seed, d):
    query = np.random.default_rng(seed + 10**6).standard_normal(d)
    return query / np.linalg.norm(query)


passages = st.builds(
    make,
    st.integers(0, 10**5),
    st.integers(0, 45),
    st.sampled_from([64, 384]),
    st.sampled_from(["gaussian", "clustered", "cancelling"]),
)
plain = st.builds(
    make,
    st.integers(0, 10**5),
    st.integers(1, 45),
    st.sampled_from([128, 384]),
    st.sampled_from(["gaussian", "clustered"]),
)


@settings(max_examples=60)
@given(passages, st.integers(1, 24))
def test_norms_and_cosines_are_those_of_the_naive_span_vectors(vectors, max_words):
    n, d = vectors.shape
    norms = spans.span_norms(vectors, max_words)
    assert norms.shape == (max_words, n)
    assert norms.dtype == np.float32
    query = unit(n, d)
    lengths = range(1, max_words + 1)
    cosines = spans.span_cosines(vectors.astype(np.float64) @ query, norms, lengths)
    assert cosines.dtype == np.float32
    seen = np.zeros_like(norms, dtype=bool)
    for (i, j), vector in naive_vectors(vectors, max_words).items():
        norm = np.linalg.norm(vector)
        mass = np.sqrt((vectors[i:j].astype(np.float64) ** 2).sum())
        seen[j - i - 1, i] = True
        got = norms[j - i - 1, i]
        if norm > 3e-7 * mass:
            assert got == pytest.approx(norm, rel=1e-6)
            assert cosines[j - i - 1, i] == pytest.approx(query @ vector / norm, abs=2e-6)
            shares = spans.contributions(vectors @ query, norms, i, j)
            assert shares.sum() == pytest.approx(query @ vector / norm, abs=2e-6)
        elif norm < 1e-8 * mass:
            assert got == 0
            assert cosines[j - i - 1, i] == -np.inf
    assert (norms[~seen] == 0).all()
    assert (cosines[~seen] == -np.inf).all()


@settings(max_examples=40)
@given(plain)
def test_stored_precision_keeps_every_degree_within_two_thousandths(vectors):
    n, d = vectors.shape
    codes, scales = spans.quantize(vectors)
    packed, exponent = spans.pack_norms(spans.span_norms(vectors))
    stored = spans.dequantize(codes, scales)
    query = unit(n, d)
    # Also a query close to a span: high degrees are the ones that thresholds meet.
    close = (
        vectors[: min(3, n)].astype(np.float64).sum(axis=0)
        + 0.3 * np.linalg.norm(vectors[0]) * query
    )
    for q in (query, close / np.linalg.norm(close)):
        inverse = spans.unpack_inverse_norms(packed, exponent)
        cosines = spans.stored_cosines(stored @ q.astype(np.float32), inverse, range(1, L + 1))
        degrees = spans.degree(cosines)
        cells = 0
        for (i, j), vector in naive_vectors(vectors).items():
            true = (1 + q @ vector / np.linalg.norm(vector)) / 2
            assert degrees[j - i - 1, i] == pytest.approx(true, abs=0.002)
            cells += 1
        assert (cosines > -np.inf).sum() == cells


def test_a_long_passage_in_blocks_equals_the_same_words_at_once():
    vectors = make(1, 700, 16, "clustered")
    sums = spans.prefix_sums(vectors)
    assert sums.dtype == np.float64
    norms = spans.span_norms(vectors)
    for length in range(1, L + 1):
        naive = np.linalg.norm(sums[length:] - sums[:-length], axis=1)
        np.testing.assert_allclose(norms[length - 1, : 700 - length + 1], naive, rtol=2e-6)
        assert (norms[length - 1, 700 - length + 1 :] == 0).all()


def test_a_huge_word_does_not_spoil_its_neighbours_norms():
    vectors = make(2, 60, 32, "gaussian") / 1e3
    vectors[30] *= 1e9
    norms = spans.span_norms(vectors)
    for (i, j), vector in naive_vectors(vectors).items():
        assert norms[j - i - 1, i] == pytest.approx(np.linalg.norm(vector), rel=1e-6)


@pytest.mark.parametrize("noise", [1e-2, 1e-4, 1e-6])
def test_cancellation_keeps_the_relative_accuracy_of_a_norm(noise):
    rng = np.random.default_rng(3)
    word = rng.standard_normal(384)
    pair = np.stack((word, -word + noise * rng.standard_normal(384))).astype(np.float32)
    true = np.linalg.norm(pair.astype(np.float64).sum(axis=0))
    norms, cancelled = squared_norms(pair, 2)
    assert spans.span_norms(pair, 2)[1, 0] == pytest.approx(true, rel=1e-6)
    assert cancelled[1, 0] == (noise < 1e-3)
    assert norms[1, 1] == 0


def test_a_word_and_its_opposite_point_nowhere():
    word = make(4, 1, 32, "gaussian")[0]
    vectors = np.stack((word, -word, word))
    norms = spans.span_norms(vectors, 3)
    size = np.linalg.norm(word)
    np.testing.assert_allclose(norms, [[size] * 3, [0, 0, 0], [size, 0, 0]], rtol=1e-6)
    assert (spans.contributions(vectors @ word, norms, 0, 2) == 0).all()
    assert spans.span_cosines(vectors @ word, norms, range(2, 3))[0, 0] == -np.inf


@pytest.mark.parametrize("n", [0, 1, 3, 19, 20, 21])
def test_short_passages(n):
    vectors = make(5, n, 8, "gaussian")
    assert spans.prefix_sums(vectors).shape == (n + 1, 8)
    norms = spans.span_norms(vectors)
    assert (norms > 0).sum() == len(naive_vectors(vectors)) == len(spans.enumerate_spans(n))
    cosines = spans.span_cosines(vectors[:, 0], norms, range(1, L + 1))
    assert (cosines > -np.inf).sum() == len(naive_vectors(vectors))
    assert spans.stored_cosines(vectors[:, 0], norms, range(18, 21)).shape == (3, n)


def test_zero_words_have_no_norm_and_add_nothing():
    vectors = make(6, 5, 8, "gaussian")
    vectors[2] = 0
    norms = spans.span_norms(vectors)
    assert norms[0, 2] == 0
    assert norms[1, 1] == pytest.approx(norms[0, 1])
    assert not spans.span_norms(np.zeros((30, 8), np.float32)).any()


def test_degrees():
    assert [spans.degree(c) for c in (-1.0, 0.0, 1.0, 1.1, -np.inf)] == [0, 0.5, 1, 1, 0]
    table = np.array([-np.inf, 0.5, 1.0000001], np.float32)
    np.testing.assert_array_equal(spans.degree(table), np.array([0, 0.75, 1], np.float32))
    assert spans.degree(table).dtype == np.float32
    assert spans.cosine(0.75) == 0.5
    assert spans.cosine(spans.degree(0.3)) == pytest.approx(0.3)


def test_what_does_not_fit_is_refused():
    vectors = make(7, 4, 8, "gaussian")
    norms = spans.span_norms(vectors)
    for lengths in (range(0, 3), range(5, 22), range(21, 25), range(-3, 0)):
        with pytest.raises(QueryError, match="from 1 to 20"):
            spans.span_cosines(vectors[:, 0], norms, lengths)
    assert spans.span_cosines(vectors[:, 0], norms, range(0)).shape == (0, 4)
    with pytest.raises(ValueError, match="step"):
        spans.span_cosines(vectors[:, 0], norms, range(1, 9, 2))
    with pytest.raises(ValueError, match="match"):
        spans.span_cosines(vectors[:3, 0], norms, range(1, 3))
    for i, j in ((0, 0), (2, 1), (-1, 2), (3, 5)):
        with pytest.raises(ValueError, match="No span"):
            spans.contributions(vectors[:, 0], spans.span_norms(vectors), i, j)
    with pytest.raises(ValueError, match="two axes"):
        spans.span_norms(vectors[0])
    for bad in (np.nan, np.inf):
        vectors[1, 1] = bad
        for function in (spans.span_norms, spans.quantize, lambda v: spans.cover(v, 0.9)):
            with pytest.raises(
                EncoderError, match="the encoder gave a vector that is not a number"
            ):
                function(vectors)


@given(st.integers(0, 40), st.integers(1, 40))
def test_a_passage_shorter_than_the_window_counts_as_a_whole(words, query_words):
    lengths = spans.length_window(query_words)
    fitted = spans.fit_window(lengths, words)
    assert fitted.stop == lengths.stop
    assert fitted.start == (lengths.start if words >= lengths.start else max(words, 1))


@given(st.integers(0, 40), st.integers(1, 6), st.integers(0, 25))
def test_enumeration_is_the_double_loop(n, least, more):
    most = least + more
    naive = [(i, j) for i in range(n) for j in range(i + least, min(n, i + most) + 1)]
    got = spans.enumerate_spans(n, least, most)
    assert got.dtype == np.int32
    assert got.shape == (len(naive), 2)
    assert list(map(tuple, got.tolist())) == naive


def test_length_windows():
    window = {n: (r[0], r[-1]) for n in range(1, 40) for r in [spans.length_window(n)]}
    assert window[1] == (1, 4)
    assert window[2] == (1, 5)
    assert window[4] == (3, 7)
    assert window[5] == (3, 8)
    assert window[10] == (7, 14)
    assert window[15] == (11, 20)
    assert window[20] == window[39] == (15, 20)
    assert spans.length_window(1, 3) == range(1, 4)
    assert spans.length_window(9, 1) == range(1, 2)
    assert spans.full_range() == range(1, 21)
    with pytest.raises(QueryError, match="no words"):
        spans.length_window(0)
    with pytest.raises(ValueError, match="words"):
        spans.full_range(0)
    for arguments in ((-1,), (3, 0), (3, 5, 4)):
        with pytest.raises(ValueError, match="words"):
            spans.enumerate_spans(*arguments)

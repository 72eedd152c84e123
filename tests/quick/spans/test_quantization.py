import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slice_os import spans

HALF = 2.0**-13 * (1 + 2.0**-9)  # half a step, and the rounding of the inverse to float32


@settings(max_examples=60)
@given(st.integers(0, 10**5), st.integers(0, 30), st.integers(0, 40), st.integers(-30, 30))
def test_quantized_words_move_by_at_most_half_a_scale(seed, n, d, magnitude):
    rng = np.random.default_rng(seed)
    vectors = (
        rng.standard_normal((n, d)) * 10.0 ** (magnitude + rng.uniform(-3, 3, (n, 1)))
    ).astype(np.float32)
    codes, scales = spans.quantize(vectors)
    assert (codes.dtype, scales.dtype) == (np.int8, np.float32)
    assert (codes.shape, scales.shape) == ((n, d), (n,))
    back = spans.dequantize(codes, scales)
    assert back.dtype == np.float32
    assert (np.abs(back.astype(np.float64) - vectors) <= scales[:, None] * 0.50002).all()
    if n and d:
        assert np.abs(codes.astype(int)).max(axis=1).min() == 127
        assert (codes >= -127).all()


def test_extreme_words_are_quantized():
    vectors = np.zeros((4, 3), np.float32)
    vectors[1] = [3e38, -3e38, 0]
    vectors[2] = 1e-45
    codes, scales = spans.quantize(vectors)
    assert scales[0] == 0
    assert not codes[0].any()
    np.testing.assert_array_equal(codes[1], [127, -127, 0])
    back = spans.dequantize(codes, scales)
    np.testing.assert_allclose(back[1], vectors[1], rtol=1e-6)
    assert not back[[0, 3]].any()


@settings(max_examples=100)
@given(st.integers(0, 10**5), st.integers(-100, 100), st.floats(0.01, 13.9))
def test_inverse_norms_keep_thirteen_bits(seed, power, octaves):
    rng = np.random.default_rng(seed)
    norms = np.exp2(power + rng.uniform(0, octaves, (20, 17))).astype(np.float32)
    norms[5:, 12:] = 0
    codes, exponent = spans.pack_norms(norms)
    assert codes.dtype == np.uint16
    inverse = spans.unpack_inverse_norms(codes, exponent)
    assert inverse.dtype == np.float32
    assert inverse.shape == norms.shape
    here = norms > 0
    assert (codes[here] >= 1).all()
    assert (codes[~here] == 0).all()
    product = inverse[here].astype(np.float64) * norms[here]
    assert np.abs(product - 1).max() <= HALF
    # What is no span comes to nothing beside the smallest norm.
    assert (inverse[~here] <= inverse[here].max() * 2.0**-14).all()


@pytest.mark.parametrize("inverse", [1.0, 2.0**-7, 2 - 2.0**-13, 2 - 2.0**-14, 2 - 2.0**-23])
def test_rounding_carries_into_the_exponent(inverse):
    norms = np.array([[1 / inverse, 1 / 3]], np.float64)
    for some in (norms, norms[:, :1]):
        back = spans.unpack_inverse_norms(*spans.pack_norms(some))
        np.testing.assert_allclose(back * some, 1, rtol=HALF)


def test_norms_out_of_range_saturate_and_never_overstate_a_cosine():
    norms = np.array([[1e-9, 1e-6, 1.0, 30.0, 0.0]], np.float32)
    codes, exponent = spans.pack_norms(norms)
    inverse = spans.unpack_inverse_norms(codes, exponent)
    np.testing.assert_allclose(inverse[0, 2:4], 1 / norms[0, 2:4], rtol=HALF)
    np.testing.assert_array_equal(codes[0, [0, 1, 4]], [65535, 65535, 0])
    assert (inverse[0, :2] < 1 / norms[0, :2]).all()


@pytest.mark.parametrize("norm", [1e-45, 1e-38, 3.4e38])
def test_the_ends_of_float32(norm):
    norms = np.full((1, 1), norm, np.float32)
    codes, exponent = spans.pack_norms(norms)
    assert codes[0, 0] >= 1
    assert np.isfinite(spans.unpack_inverse_norms(codes, exponent)).all()


def test_no_span_at_all():
    for shape in ((20, 0), (20, 3)):
        codes, exponent = spans.pack_norms(np.zeros(shape, np.float32))
        assert not codes.any()
        assert spans.unpack_inverse_norms(codes, exponent).shape == shape


def test_every_code_decodes_to_its_formula():
    numbers = np.arange(65536)
    inverse = spans.unpack_inverse_norms(numbers.astype(np.uint16), -9)
    formula = np.ldexp(1 + (numbers % 4096) / 4096, -9 + numbers // 4096)
    np.testing.assert_array_equal(inverse, formula.astype(np.float32))


@pytest.mark.parametrize("octaves", [13, 14, 15])
def test_the_largest_norm_has_a_code_whatever_the_range(octaves):
    norms = np.array([[1.0, 2.0**octaves, 0.0]], np.float32)
    codes, exponent = spans.pack_norms(norms)
    assert codes[0, 1] >= 1
    assert codes[0, 2] == 0
    inverse = spans.unpack_inverse_norms(codes, exponent)
    assert inverse[0, 1] == 2.0**-octaves
    assert inverse[0, 0] == 1 if octaves < 15 else 0.4 < inverse[0, 0] < 1

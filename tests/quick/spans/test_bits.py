"""One bit a dimension: what it says of a product, and that it is the same everywhere."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from slice_os.spans import dequantize, quantize, query_planes, word_bits
from slice_os.spans.bits import PLANES, rotation


def by_bits(codes, scales, query):
    """Return the products of words with a query as the docstring of `query_planes` says."""
    bits, ratios = word_bits(codes)
    planes, weights, constant = query_planes(query)
    assert planes.shape == (PLANES, bits.shape[1])
    common = np.unpackbits(bits[:, None] & planes, axis=-1).sum(axis=-1)
    return (common @ weights + constant) * ratios * scales


@pytest.mark.parametrize("dimension", [1, 32, 100, 384])
def test_a_rotation_keeps_products(dimension):
    turn = rotation(dimension)
    assert turn.shape == (dimension, -(-dimension // 8) * 8)
    assert turn @ turn.T == pytest.approx(np.eye(dimension), abs=1e-5)


@pytest.mark.parametrize("peaked", [False, True])
def test_products_by_bits_are_unbiased(peaked):
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(6000, 384)).astype(np.float32)
    if peaked:  # a few dimensions hold nearly all, as some encoders' do
        vectors[:, ::50] *= 30
    vectors *= rng.uniform(0.1, 9, size=(6000, 1)).astype(np.float32)
    norms = np.linalg.norm(vectors, axis=1)
    query = (vectors[0] + vectors[1:3].sum(axis=0)).astype(np.float32)
    query /= np.linalg.norm(query)
    vectors[3000:] += 0.8 * norms[3000:, None] * query
    norms = np.linalg.norm(vectors, axis=1)
    codes, scales = quantize(vectors)
    error = (by_bits(codes, scales, query) - dequantize(codes, scales) @ query) / norms
    near = error[3000:]
    assert abs(error[:3000].mean()) < 0.004
    assert abs(near.mean()) < 0.03
    assert error[:3000].std() < 0.05
    assert near.std() < 0.05


def test_a_word_of_nothing_has_a_product_of_nothing():
    codes, scales = quantize(np.zeros((2, 32), np.float32))
    assert not by_bits(codes, scales, np.ones(32, np.float32)).any()
    assert np.isfinite(query_planes(np.zeros(32, np.float32))[1]).all()


def test_bits_are_the_same_everywhere():
    """An index that was made on another machine has these."""
    codes = (np.arange(50 * 384).reshape(50, 384) * 2654435761 % 255 - 127).astype(np.int8)
    bits, ratios = word_bits(codes)
    digest = hashlib.sha256(bits.tobytes() + ratios.tobytes()).hexdigest()
    assert digest == "55792bc7c3eb53b34f1485233c14a03c8816042556dd8f1505e6966aa57b2f32"

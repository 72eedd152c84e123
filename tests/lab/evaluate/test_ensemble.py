"""Encoders joined: equation 1 of Wada et al. (2025)."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

from slice_os.encoders import load_encoder
from slice_os.errors import EncoderError
from slice_os.exporters.static import write_static

Ensemble = runpy.run_path(str(Path(__file__).parents[3] / "recipes/static_peers.py"))["Ensemble"]
TEXTS = ["red fox", "a red dog", "the fox", "dog"]


@pytest.fixture
def encoders(tmp_path):
    words = ["red", "fox", "dog", "a", "the"]
    for size in (4, 9):
        vectors = np.random.default_rng(size).normal(size=(5, size)).astype(np.float32) * size
        write_static(tmp_path / str(size), words, vectors, str(size))
    return [load_encoder(tmp_path / str(size)) for size in (4, 9)]


@pytest.mark.parametrize("weights", [(), (1.0, 3.0)])
def test_a_cosine_is_the_weighted_mean_of_the_encoders(encoders, weights):
    joined = Ensemble(encoders, weights).encode(TEXTS)
    squares = np.square(weights or (1, 1))
    cosines = [one @ one.T for one in (encoder.encode(TEXTS) for encoder in encoders)]
    wanted = np.average(cosines, axis=0, weights=squares)
    assert joined.shape == (4, 13)
    np.testing.assert_allclose(joined @ joined.T, wanted, atol=1e-5)


def test_no_spans_and_no_bad_weights(encoders):
    with pytest.raises(EncoderError, match="not words in context"):
        Ensemble(encoders).encode_words(TEXTS)
    for weights in ((1.0,), (1.0, 0.0)):
        with pytest.raises(EncoderError, match="cannot be joined"):
            Ensemble(encoders, weights)
    with pytest.raises(EncoderError, match="cannot be joined"):
        Ensemble([])

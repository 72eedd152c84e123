"""Static vectors as an encoder folder: words, prefixes, rounding."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

from slice_os.encoders import load_encoder
from slice_os.encoders.devices import half_precision
from slice_os.errors import ExportError
from slice_os.exporters.graph import write_static

WORDS = ["cancel", "my", "contract", "don't", "well", "known", "can", "café"]
VECTORS = np.random.default_rng(0).normal(size=(len(WORDS), 24)).astype(np.float32)


@pytest.fixture
def folder(tmp_path):
    write_static(tmp_path / "encoder", WORDS, VECTORS, "tiny", precision="fp32")
    return tmp_path / "encoder"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Cancel my contract.", [["cancel"], ["my"], ["contract"]]),
        ("“DON’T!” (well-known) Cafe\u0301", [["don't"], ["well", "known"], ["café"]]),
        ("cancellation, candle & contracts'", [["cancel"], ["can"], ["contract"]]),
        ("zebra — my", [[], ["my"]]),
        ("... !", []),
    ],
)
def test_a_word_is_looked_up_or_its_longest_known_prefix(folder, text, said):
    with load_encoder(folder) as encoder:
        (words,) = encoder.encode_words([text])
        wanted = [sum((VECTORS[WORDS.index(one)] for one in run), np.zeros(24)) for run in said]
        np.testing.assert_allclose(words.vectors, np.reshape(wanted, (-1, 24)), atol=1e-5)
        assert encoder.knows(text) == any(said)


def test_a_long_text_and_every_precision_say_the_same(folder, tmp_path):
    text = "my contract " * 9000
    info = write_static(tmp_path / "int8", WORDS, VECTORS, "tiny")
    with load_encoder(folder) as plain, load_encoder(tmp_path / "int8") as rounded:
        assert plain.info.weights_hash == info.weights_hash
        np.testing.assert_allclose(plain.encode(text), plain.encode("my contract"), atol=1e-5)
        assert (plain.encode(WORDS) * rounded.encode(WORDS)).sum(axis=1).min() > 0.999
        ids = np.array([[2, 3]])
        half = onnxruntime.InferenceSession(half_precision(tmp_path / "int8/model.onnx"))
        (vectors,) = half.run(None, {"input_ids": ids})
        (words,) = rounded.encode_words(["cancel my"])
        np.testing.assert_allclose(vectors[0], words.vectors, atol=2e-3)


def test_vectors_that_cannot_be_written(tmp_path):
    with pytest.raises(ExportError, match="7 words do not go with"):
        write_static(tmp_path / "a", WORDS[1:], VECTORS, "tiny")
    with pytest.raises(ExportError, match="not finite"):
        write_static(tmp_path / "a", WORDS, VECTORS * np.float32("nan"), "tiny")
    assert not (tmp_path / "a").exists()

"""One interface for every kind of encoder, also for one that a user adds."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

import slice_os
from slice_os.encoders import ENCODERS, EncoderKind, encoder_info, load_encoder
from slice_os.errors import EncoderError
from support.trigrams import Trigrams

TEXTS = {
    "cancel": "The customer is cancelling her subscription today.",
    "well": "The well was very deep, and she fell very slowly.",
    "party": "Either party may terminate this agreement.",
}


@pytest.fixture
def trigrams(tmp_path, monkeypatch):
    kind = EncoderKind("support.trigrams:Trigrams", lambda path: (path / "trigrams.json").is_file())
    monkeypatch.setitem(ENCODERS, "trigrams", kind)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/trigrams.json").write_text('{"dimension": 256}')
    monkeypatch.setattr(Trigrams, "loaded", 0)
    return tmp_path / "mine"


def documents():
    return [slice_os.Document(name, text) for name, text in TEXTS.items()]


def test_a_kind_that_is_registered_indexes_and_searches(trigrams, tmp_path):
    with slice_os.open(tmp_path / "a.slice", encoder=trigrams) as index:
        index.add(documents())
        assert index.status().documents == 3
        best = index.search("she cancels the subscriptions", mode="dense")[0]
        assert best.document == "cancel"
        (match,) = index.mine("partys may terminated", min_degree=0.8)
        assert match.text == "party may terminate"
    with (
        slice_os.open(tmp_path / "a.slice") as index,
        pytest.raises(EncoderError, match="trigrams"),
    ):
        index.search("she cancels")


def test_an_encoder_that_is_given_stays_its_owners(trigrams, tmp_path):
    with load_encoder(trigrams) as encoder:
        for name in "ab":
            with slice_os.open(tmp_path / name, encoder=encoder) as index:
                index.add(documents())
                assert index.search("deep well", mode="dense")[0].document == "well"
            assert not encoder.closed  # type: ignore[attr-defined]
        assert load_encoder(encoder) is encoder
        assert Trigrams.loaded == 1
    assert encoder.closed  # type: ignore[attr-defined]


def test_threads_that_search_at_once_load_it_once(trigrams, tmp_path):
    slice_os.index(documents(), tmp_path / "a.slice", encoder=trigrams)
    Trigrams.loaded = 0
    begin = Barrier(4)

    def search(query):
        begin.wait()
        return index.search(query, mode="dense")[0].document

    with (
        slice_os.open(tmp_path / "a.slice", encoder=trigrams) as index,
        ThreadPoolExecutor(4) as pool,
    ):
        assert list(pool.map(search, ["deep well"] * 4)) == ["well"] * 4
    assert Trigrams.loaded == 1


@pytest.fixture(params=["trigrams", "packaged", "checkpoint", "static"])
def location(request, tmp_path):
    if request.param == "static":
        (tmp_path / "vectors.txt").write_text("deep 1 0 0\nwell 0 1 0.5\n")
        return tmp_path / "vectors.txt"
    if request.param == "checkpoint":
        return request.getfixturevalue("checkpoint")("bert")
    return request.getfixturevalue("trigrams") if request.param == "trigrams" else None


def test_every_kind_keeps_the_interface(location):
    texts = ["deep well", "the well", "well deep"]
    with load_encoder(location, "cpu") as encoder:
        assert encoder_info(location) == encoder_info(encoder) == encoder.info
        dimension = encoder.info.dimension
        assert str(encoder.info.name) in repr(encoder)
        assert encoder.info.weights_hash
        many, one = encoder.encode(texts), encoder.encode(texts[0])
        assert (many.shape, one.shape) == ((3, dimension), (dimension,))
        assert many.dtype == one.dtype == np.float32
        np.testing.assert_allclose(one, many[0], atol=1e-6)
        np.testing.assert_allclose(np.linalg.norm(many, axis=1), 1, atol=1e-5)
        assert encoder.encode([]).shape == (0, dimension)
        assert encoder.knows("deep")
        for text, words in zip(texts, encoder.encode_words(iter(texts)), strict=True):
            said = [text[i:j] for i, j in zip(words.starts, words.ends, strict=True)]
            assert said == text.split()
            assert words.vectors.shape == (2, dimension)


def test_a_place_without_an_encoder(tmp_path):
    (tmp_path / "notes.md").write_text("nothing")
    with pytest.raises(EncoderError, match=r"no encoder at .*: give an encoder folder"):
        load_encoder(tmp_path)
    with pytest.raises(EncoderError, match="is not a word and its numbers"):
        load_encoder(tmp_path / "notes.md")

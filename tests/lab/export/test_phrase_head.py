"""Phrase heads: the packaged passages are enough for an encoder as large as those in use."""

import shutil

import pytest

pytest.importorskip("torch")

import numpy as np

from slice_os.encoders import load_encoder
from slice_os.encoders.info import DEFAULT_FOLDER
from slice_os.exporters.graph import sentences
from slice_os.exporters.phrase_head import refit

PHRASES = "wants to cancel", "the parcel never came", "who pays the taxes", "a red balloon"


def test_the_packaged_passages_are_enough_for_384_dimensions(tmp_path):
    folder = tmp_path / "encoder"
    shutil.copytree(DEFAULT_FOLDER, folder)
    former = load_encoder(folder).info
    assert former.dimension == 384
    info = refit(folder)
    assert info.phrase_head not in ("", former.phrase_head)
    with load_encoder(folder) as encoder:
        assert encoder.head is not None
        texts = encoder.encode_words([f"{sentences()[0]} {phrase}." for phrase in PHRASES])
        alone = encoder.encode(PHRASES)
        for words, phrase, vector in zip(texts, PHRASES, alone, strict=True):
            predicted = encoder.head.words(words.vectors, words.pieces, words.counts)
            span = predicted[-len(phrase.split()) :].sum(axis=0)
            assert float(span @ vector) > 0.6 * float(np.linalg.norm(span))

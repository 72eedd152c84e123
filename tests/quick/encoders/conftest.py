import shutil
from weakref import WeakValueDictionary

import numpy as np
import onnxruntime as ort
import pytest
from tokenizers import Tokenizer

from slice_os.encoders import load_encoder
from slice_os.encoders import onnx as runtime
from slice_os.encoders.info import DEFAULT_FOLDER


@pytest.fixture(autouse=True)
def _shares_nothing(monkeypatch):
    """A test loads what it loads, whatever other tests have loaded."""
    monkeypatch.setattr(runtime, "_loaded", WeakValueDictionary())


@pytest.fixture(scope="session")
def encoder():
    with load_encoder(threads=2) as loaded:
        yield loaded


@pytest.fixture
def folder(tmp_path):
    """A copy of the default encoder that a test may break."""
    return shutil.copytree(DEFAULT_FOLDER, tmp_path / "encoder")


@pytest.fixture(scope="session")
def naive():
    """Token offsets and vectors of one short text, by raw onnxruntime, without our code."""
    tokenizer = Tokenizer.from_file(str(DEFAULT_FOLDER / "tokenizer.json"))
    session = ort.InferenceSession(
        str(DEFAULT_FOLDER / "model.onnx"),
        providers=["CPUExecutionProvider"],
        disabled_optimizers=["SkipLayerNormFusion"],  # what it fuses is rounded otherwise
    )

    def run(text):
        encoded = tokenizer.encode(text)
        ids = np.array([encoded.ids])
        feed = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        hidden = session.run(None, feed)[0][0]
        own = [i for i, special in enumerate(encoded.special_tokens_mask) if not special]
        return [encoded.offsets[i] for i in own], hidden[own]

    return run

import json

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("optimum.exporters")

from slice_os.encoders import load_encoder
from slice_os.encoders.info import DEFAULT_FOLDER
from slice_os.errors import CorpusError, ExportError
from slice_os.exporters import export
from slice_os.exporters.folder import read_axes
from slice_os.exporters.graph import sentences


@pytest.fixture
def texts(tmp_path):
    file = tmp_path / "texts.jsonl"
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in sentences()))
    return file


def vectors(folder):
    with load_encoder(folder, threads=1) as encoder:
        return encoder.encode(sentences())


def test_a_turned_encoder_gives_the_same_cosines(checkpoint, tmp_path, texts):
    plain = export(checkpoint(), tmp_path / "plain")
    info = export(checkpoint(), tmp_path / "turned", axes=texts)
    assert info.weights_hash != plain.weights_hash
    assert info.measured["parity"]["all"]["min"] > 0.999
    before, after = vectors(tmp_path / "plain"), vectors(tmp_path / "turned")
    np.testing.assert_allclose(after @ after.T, before @ before.T, atol=1e-3)
    assert (after[:, :8] ** 2).sum() > 1.5 * (before[:, :8] ** 2).sum()
    axes = read_axes(tmp_path / "turned")
    np.testing.assert_allclose(before @ axes, after, atol=1e-3)
    again = export(checkpoint(), tmp_path / "again", axes=[texts])
    assert again.graph_sha256 == info.graph_sha256


@pytest.mark.parametrize("precision", ["fp16", "int8"])
def test_every_precision_is_of_one_family(checkpoint, tmp_path, texts, precision):
    full = export(checkpoint(), tmp_path / "fp32", axes=texts)
    info = export(checkpoint(), tmp_path / "out", precision, axes=tmp_path / "fp32")
    assert info.weights_hash == full.weights_hash
    np.testing.assert_array_equal(read_axes(tmp_path / "out"), read_axes(tmp_path / "fp32"))
    assert (vectors(tmp_path / "out") * vectors(tmp_path / "fp32")).sum(1).mean() > 0.97


def test_what_cannot_say_any_axes(checkpoint, tmp_path, texts):
    export(checkpoint(), tmp_path / "plain")
    few = tmp_path / "few.txt"
    few.write_text("Three words here.")
    for path, error, said in (
        (tmp_path / "plain", ExportError, "are not turned: give texts"),
        (few, ExportError, "3 words are too few .* Give more"),
        (tmp_path / "nothing.txt", CorpusError, "nothing.txt"),
        (DEFAULT_FOLDER, ExportError, "has 384 dimensions, the checkpoint 32"),
    ):
        with pytest.raises(error, match=said):
            export(checkpoint(), tmp_path / "out", axes=path)
        assert not (tmp_path / "out").exists()

"""Late-interaction checkpoints: the projection of their tokens is a part of the encoder."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

import slice_os
from slice_os.errors import ExportError

pytest.importorskip("torch")
pytest.importorskip("optimum.exporters")

import torch
from safetensors.torch import save_file

from slice_os.encoders import load_encoder
from slice_os.exporters import export

TEXTS = ["Down the Rabbit-Hole, we went again", "wants to cancel the order"]


def projecting(place, checkpoint, *, bias=False, activation="Identity", pooled=False):
    """Save a checkpoint as sentence-transformers 6 saves a MultiVectorEncoder."""
    shutil.copytree(checkpoint, place)
    kinds = [
        "Transformer",
        *(["Pooling"] if pooled else []),
        "Dense",
        "MultiVectorMask",
        "Normalize",
    ]
    modules = [
        {"idx": n, "name": str(n), "path": f"{n}_{kind}" * (n > 0), "type": f"some.modules.{kind}"}
        for n, kind in enumerate(kinds)
    ]
    (place / "modules.json").write_text(json.dumps(modules))
    dense = place / f"{kinds.index('Dense')}_Dense"
    dense.mkdir()
    settings = {"bias": bias, "activation_function": f"torch.nn.modules.{activation}"}
    (dense / "config.json").write_text(json.dumps(settings))
    torch.manual_seed(0)
    weights = {"linear.weight": torch.randn(8, 32)} | (
        {"linear.bias": torch.ones(8)} if bias else {}
    )
    save_file(weights, dense / "model.safetensors")
    return weights["linear.weight"].numpy()


def test_words_are_projected_in_torch_and_in_the_graph(checkpoint, tmp_path):
    matrix = projecting(tmp_path / "late", checkpoint())
    info = export(tmp_path / "late", tmp_path / "out")
    assert info.dimension == 8
    assert info.measured["parity"]["all"]["min"] > 0.999
    with (
        load_encoder(checkpoint()) as plain,
        load_encoder(tmp_path / "late") as late,
        load_encoder(tmp_path / "out", threads=1) as exported,
    ):
        assert late.info.weights_hash == info.weights_hash != plain.info.weights_hash
        for whole, in_torch, in_graph in zip(
            *(encoder.encode_words(TEXTS) for encoder in (plain, late, exported)), strict=True
        ):
            np.testing.assert_allclose(in_torch.vectors, whole.vectors @ matrix.T, atol=1e-4)
            np.testing.assert_allclose(in_graph.vectors, in_torch.vectors, atol=1e-3)
        np.testing.assert_allclose(late.encode(TEXTS), exported.encode(TEXTS), atol=1e-4)
    with slice_os.open(tmp_path / "a.slice", encoder=tmp_path / "out") as index:
        index.add(slice_os.Document(f"d{n}", text) for n, text in enumerate(TEXTS))
        assert index.search(TEXTS[1], mode="dense")[0].document == "d1"


def test_its_axes_are_turned_after_it(checkpoint, tmp_path):
    projecting(tmp_path / "late", checkpoint())
    plain = export(tmp_path / "late", tmp_path / "plain")
    (tmp_path / "texts.txt").write_text("\n\n".join(TEXTS * 20))
    turned = export(tmp_path / "late", tmp_path / "turned", axes=tmp_path / "texts.txt")
    assert turned.dimension == 8
    assert turned.weights_hash != plain.weights_hash
    with load_encoder(tmp_path / "plain") as one, load_encoder(tmp_path / "turned") as other:
        degrees = [vectors[0] @ vectors[1] for vectors in (one.encode(TEXTS), other.encode(TEXTS))]
    assert degrees[0] == pytest.approx(degrees[1], abs=2e-3)


def test_a_dense_layer_after_pooling_is_left_out(checkpoint, tmp_path):
    projecting(tmp_path / "pooled", checkpoint(), pooled=True)
    with load_encoder(tmp_path / "pooled") as pooled, load_encoder(checkpoint()) as plain:
        assert pooled.info.weights_hash == plain.info.weights_hash


@pytest.mark.parametrize("options", [{"bias": True}, {"activation": "Tanh"}])
def test_a_projection_that_is_not_linear_is_refused(checkpoint, tmp_path, options):
    projecting(tmp_path / "late", checkpoint(), **options)
    with pytest.raises(ExportError, match="is not linear"):
        export(tmp_path / "late", tmp_path / "out")

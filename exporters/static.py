"""Writing static word vectors as an encoder folder: a tokenizer, and a graph that looks them up.

Words are lower-cased runs of letters and digits, apostrophes inside included; punctuation is no
word. Of a word that is not in the vocabulary the longest known prefix is taken.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from slice_os.encoders.info import GRAPH, TOKENIZER, EncoderInfo, file_sha256
from slice_os.errors import ExportError, needs
from slice_os.types import Float32

if TYPE_CHECKING:
    from tokenizers import Tokenizer

WORD = r"[\p{L}\p{M}\p{N}]+(?:'[\p{L}\p{M}\p{N}]+)*"
"""A word, once `plain` is done; the tokenizer and whoever counts words agree on it."""
APOSTROPHE = "\u2019"
_PAD, _UNKNOWN, _MORE = "[PAD]", "[UNK]", "##"
_CHARACTERS = "'0123456789abcdefghijklmnopqrstuvwxyz"
_MAX_TOKENS = 8192  # a token's vector does not depend on its window: this bounds memory alone
_OPSET = 18


def write_static(
    folder: Path,
    words: Sequence[str],
    vectors: Float32,
    name: str,
    *,
    precision: str = "int8",
    about: Mapping[str, Any] | None = None,
) -> EncoderInfo:
    """Write an encoder folder whose words have the same vector wherever they stand.

    Args:
        folder: An empty folder, or one to make.
        words: The vocabulary, lower-cased, each once.
        vectors: float32 ``[V, d]``, of any norm: a text's vector is their mean at unit length.
        name: What people call the encoder.
        precision: "int8", a scale for each dimension, or "fp32".
        about: Further fields of `EncoderInfo`.

    Raises:
        ExportError: Words and vectors do not belong together, or a vector is not finite.
        MissingExtraError: onnx is not installed.
    """
    if vectors.ndim != 2 or len(words) != len(vectors) or len(set(words)) != len(words):
        raise ExportError(f"{len(words)} words do not go with vectors {vectors.shape}: give both.")
    # What a known prefix leaves of a word is single characters, which say nothing.
    rest = sorted(_MORE + character for character in set(_CHARACTERS).union(*words))
    tokens = {token: row for row, token in enumerate((_PAD, _UNKNOWN, *words, *rest))}
    table = np.zeros((len(tokens), vectors.shape[1]), np.float32)
    table[2 : 2 + len(words)] = vectors
    return write_lookup(folder, _tokenizer(tokens), table, name, precision=precision, about=about)


def write_lookup(
    folder: Path,
    tokenizer: Tokenizer,
    table: Float32,
    name: str,
    *,
    precision: str = "int8",
    about: Mapping[str, Any] | None = None,
) -> EncoderInfo:
    """Write an encoder folder that looks up the vectors of a tokenizer's tokens.

    Args:
        folder: An empty folder, or one to make.
        tokenizer: Of the package tokenizers.
        table: float32 ``[tokens, d]``.
        name: What people call the encoder.
        precision: "int8", a scale for each dimension, or "fp32".
        about: Further fields of `EncoderInfo`.

    Raises:
        ExportError: A vector is not finite.
        MissingExtraError: onnx is not installed.
    """
    if not np.isfinite(table).all():
        raise ExportError(f"A vector of {name} is not finite, so nothing is written: make it anew.")
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / TOKENIZER), pretty=False)
    _write_graph(folder / GRAPH, table, precision)
    digest = hashlib.blake2b((folder / TOKENIZER).read_bytes(), digest_size=16)
    digest.update(table.astype("<f4").tobytes())
    info = EncoderInfo(
        name=name,
        version="1",
        weights_hash=digest.hexdigest(),
        precision=precision,
        dimension=table.shape[1],
        max_tokens=_MAX_TOKENS,
        graph_bytes=(folder / GRAPH).stat().st_size,
        graph_sha256=file_sha256(folder / GRAPH),
    )
    info = replace(info, **(about or {}))
    info.dump(folder)
    return info


def _tokenizer(tokens: Mapping[str, int]) -> Tokenizer:
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    model = models.WordPiece(
        dict(tokens),
        unk_token=_UNKNOWN,
        continuing_subword_prefix=_MORE,
        max_input_chars_per_word=100,
    )
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Lowercase(), normalizers.Replace(APOSTROPHE, "'")]
    )
    # What does not match is removed.
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(WORD), "removed", invert=True)
    return tokenizer


def _write_graph(path: Path, table: Float32, precision: str) -> None:
    with needs("Writing a static encoder", "export"):
        import onnx
    from onnx import TensorProto, helper, numpy_helper

    if precision == "int8":
        scales = np.maximum(np.abs(table).max(axis=0), 1e-12).astype(np.float32) / 127
        whole = np.rint(table / scales).astype(np.int8)
        held = {"words": whole, "scales": scales, "zeros": np.zeros(len(scales), np.int8)}
        nodes = [
            helper.make_node("Gather", ["words", "input_ids"], ["rounded"]),
            helper.make_node(
                "DequantizeLinear", ["rounded", "scales", "zeros"], ["last_hidden_state"], axis=2
            ),
        ]
    else:
        held = {"words": table}
        nodes = [helper.make_node("Gather", ["words", "input_ids"], ["last_hidden_state"])]
    ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "tokens"])
    shape = ["batch", "tokens", table.shape[1]]
    vectors = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, shape)
    weights = [numpy_helper.from_array(array, name) for name, array in held.items()]
    graph = helper.make_graph(nodes, "static", [ids], [vectors], weights)
    opset = helper.make_opsetid("", _OPSET)
    # The oldest version of the format that has the opset: older runtimes read it too.
    model = helper.make_model(graph, opset_imports=[opset], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, str(path))

"""ONNX graphs: of a torch model, compared with torch on real text, and of static word vectors."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from slice_os.encoders import Encoder
from slice_os.encoders.info import GRAPH, TOKENIZER, EncoderInfo, file_sha256
from slice_os.encoders.judge import ModelJudge, Placed, opposed
from slice_os.encoders.tokens import words_of
from slice_os.errors import ExportError, needs
from slice_os.exporters.checkpoint import Checkpoint, quiet
from slice_os.text.normal_form import as_typed
from slice_os.types import Float32

if TYPE_CHECKING:
    from tokenizers import Tokenizer


PRECISIONS = ("fp32", "fp16", "int8")
_OPSET = 18


def write_plain(checkpoint: Checkpoint, folder: Path) -> Path:
    """Write the fp32 graph of `checkpoint` into `folder` and return its path."""
    with quiet():
        with needs("Exporting an encoder", "export"):
            from optimum.exporters.onnx import onnx_export_from_model
        try:
            # Our own comparison, on real text and on the final precision, replaces validation.
            onnx_export_from_model(
                checkpoint.model,
                output=folder,
                opset=_OPSET,
                task="feature-extraction",
                library_name="transformers",
                preprocessors=[checkpoint.tokenizer],
                do_validation=False,
            )
        except Exception as exc:  # torch and optimum raise many kinds
            line = (str(exc).strip() or type(exc).__name__).splitlines()[0]
            raise ExportError(
                f"optimum cannot export a model of type {checkpoint.model.config.model_type} "
                f"({line}): use an architecture that optimum-onnx lists for feature-extraction."
            ) from exc
    return folder / "model.onnx"


def write_precision(plain: Path, out: Path, precision: str) -> None:
    """Write the fp32 graph `plain` to `out` in `precision`, one of `PRECISIONS`."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.transformers.float16 import convert_float_to_float16

    with quiet():
        if precision == "int8":
            # 7-bit weights: with 8 bits the sums of processors without VNNI overflow and saturate.
            quantize_dynamic(
                plain, out, per_channel=True, reduce_range=True, weight_type=QuantType.QInt8
            )
            return
        graph = onnx.load(str(plain))
        if precision == "fp16":
            # Outputs stay half precision: half as much to bring back from the GPU.
            graph = convert_float_to_float16(graph, keep_io_types=False)
        onnx.save(graph, str(out))


LENGTHS = (1, 3, 6, 20)
_SENTENCES = Path(__file__).parent / "sentences.txt"


JUDGE_BOUNDS = {"fp32": 0.001, "fp16": 0.01, "int8": 0.05}
"""By how much a judge's probability of an opposite may differ from torch's, on average."""
BOUNDS = {"fp32": (0.9999, 0.999), "fp16": (0.999, 0.99), "int8": (0.975, 0.85)}
"""The least mean and the least single cosine of span vectors with torch's (docs/encoder.md)."""


def sentences() -> list[str]:
    """Return the packaged passages, one a line of `sentences.txt`."""
    return _SENTENCES.read_text(encoding="utf-8").splitlines()


def measure_parity(
    checkpoint: Checkpoint, encoder: Encoder, axes: Float32 | None = None
) -> dict[str, dict[str, float]]:
    """Return mean and least cosine with torch by span length, such as ``{"3": {"mean": …}}``.

    The lengths are numbers of words; `all` is over every length, and `text` compares whole
    passages. `axes` is the matrix by which the encoder's vectors are turned.
    """
    texts = [fitted(checkpoint, text, encoder.info.max_tokens) for text in sentences()]
    with one_torch_thread():
        wanted = [torch_words(checkpoint, text) for text in texts]
    if axes is not None:
        wanted = [words @ axes for words in wanted]
    cosines: dict[str, list[Float32]] = {str(length): [] for length in LENGTHS}
    whole = []
    for theirs, words in zip(wanted, encoder.encode_words(texts), strict=True):
        ours = words.vectors
        if theirs.shape != ours.shape:
            raise ExportError(
                f"The exported encoder gives vectors {ours.shape} for a sentence where the "
                f"checkpoint gives {theirs.shape}: save the checkpoint's tokenizer.json again."
            )
        for length in LENGTHS:
            cosines[str(length)].append(_cosines(_spans(theirs, length), _spans(ours, length)))
        whole.append(theirs.sum(axis=0))
    figures = {name: np.concatenate(parts) for name, parts in cosines.items()}
    figures["all"] = np.concatenate(list(figures.values()))
    figures["text"] = _cosines(np.stack(whole), encoder.encode(texts))
    return {
        name: {"mean": round(float(part.mean()), 5), "min": round(float(part.min()), 5)}
        for name, part in figures.items()
        if len(part)
    }


def measure_judge(checkpoint: Checkpoint, folder: Path) -> dict[str, dict[str, float]]:
    """Return by how much a judge's probability of an opposite differs from torch's.

    Of passages with themselves, with a word left out, and with others.
    """
    import torch

    from slice_os.exporters.pooled import PooledModel

    texts = [" ".join(text.split()[:12]) for text in sentences()]
    shorter = [" ".join(text.split()[1:]) for text in texts]
    asked = [
        (text, Placed(other))
        for others in (texts, shorter, texts[1:])
        for text, other in zip(texts, others, strict=False)
    ]
    with one_torch_thread(), torch.no_grad():
        wanted = opposed(PooledModel(checkpoint).judge(asked).numpy())
    with ModelJudge(folder) as judge:
        apart = np.abs(opposed(judge.logits(asked)) - wanted)
    figures = {"mean": round(float(apart.mean()), 5), "max": round(float(apart.max()), 5)}
    return {"opposed": figures}


def check_judge(measured: dict[str, dict[str, float]], precision: str) -> None:
    """Raise `ExportError` where a judge differs on average by more than it may."""
    mean, most = measured["opposed"]["mean"], JUDGE_BOUNDS[precision]
    if not mean <= most:
        raise ExportError(
            f"The {precision} export differs from the checkpoint: its probabilities by {mean} on "
            f"average, and at most {most} is allowed, so nothing was written; try another "
            "precision."
        )


def check_parity(measured: dict[str, dict[str, float]], precision: str) -> None:
    """Raise `ExportError` where `measured` falls below the bounds of `precision`."""
    least_mean, least_single = BOUNDS[precision]
    mean, least = measured["all"]["mean"], measured["all"]["min"]
    # Written so that a figure that is not a number fails too.
    if not (mean >= least_mean and least >= least_single):
        raise ExportError(
            f"The {precision} export differs from the checkpoint: the mean and least cosine of its "
            f"span vectors are {mean} and {least}, and {least_mean} and {least_single} are needed, "
            "so nothing was written; try another precision."
        )


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Keep torch to one thread: short texts come one at a time.

    On a busy machine its threads would wait for each other, 27 times longer than one needs.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def fitted(checkpoint: Checkpoint, text: str, max_tokens: int) -> str:
    """Shorten `text` until the checkpoint reads it at once; torch has no windows to compare."""
    with quiet():
        while len(checkpoint.tokenizer(text)["input_ids"]) > max_tokens:
            text = text[: len(text) * 9 // 10]
    return text


def torch_words(checkpoint: Checkpoint, text: str) -> Float32:
    """Return torch's word vectors of one text, float32 ``[N, d]``, pooled one by one."""
    import torch

    encoded = checkpoint.tokenizer(
        as_typed(text),
        return_tensors="pt",
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
    )
    offsets = encoded.pop("offset_mapping")[0].numpy()
    special = encoded.pop("special_tokens_mask")[0].numpy() == 1
    names = checkpoint.model.forward.__code__.co_varnames
    inputs: dict[str, Any] = {name: part for name, part in encoded.items() if name in names}
    with torch.no_grad(), quiet():
        hidden = checkpoint.model(**inputs).last_hidden_state[0].numpy()
    own = hidden[~special]
    first, _, _, owned = words_of(text, offsets[~special].astype(np.int32))
    ends = [*first[1:].tolist(), owned]
    if checkpoint.projection is not None:
        own = own @ checkpoint.projection
    rows = [own[a:b].sum(axis=0) for a, b in zip(first.tolist(), ends, strict=True)]
    return np.array(rows, np.float32).reshape(-1, checkpoint.dimension)


def _spans(vectors: Float32, length: int) -> Float32:
    sums = np.cumsum(np.vstack([np.zeros_like(vectors[:1]), vectors]), axis=0, dtype=np.float64)
    spans: Float32 = (sums[length:] - sums[:-length]).astype(np.float32)
    return spans


def _cosines(a: Float32, b: Float32) -> Float32:
    cosines: Float32 = np.einsum("nd,nd->n", a, b) / (
        np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    )
    return cosines


WORD = r"[\p{L}\p{M}\p{N}]+(?:'[\p{L}\p{M}\p{N}]+)*"
"""A word, once `plain` is done; the tokenizer and whoever counts words agree on it."""
APOSTROPHE = "\u2019"
_PAD, _UNKNOWN, _MORE = "[PAD]", "[UNK]", "##"
_CHARACTERS = "'0123456789abcdefghijklmnopqrstuvwxyz"
_MAX_TOKENS = 8192  # a token's vector does not depend on its window: this bounds memory alone


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

    Of a word that is not in the vocabulary the longest known prefix is taken; punctuation is no
    word.

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

    `table` is float32 ``[tokens, d]``; for the others see `write_static`.

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

"""From a torch model to an ONNX graph of a given precision, compared with torch on real text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from slice_os.encoders import Encoder
from slice_os.encoders.tokens import words_of
from slice_os.errors import ExportError, needs
from slice_os.exporters.checkpoint import Checkpoint, quiet
from slice_os.text.normal_form import as_typed
from slice_os.types import Float32

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
    rows = [own[a:b].sum(axis=0) for a, b in zip(first.tolist(), ends, strict=True)]
    return np.array(rows, np.float32).reshape(-1, hidden.shape[1])


def _spans(vectors: Float32, length: int) -> Float32:
    sums = np.cumsum(np.vstack([np.zeros_like(vectors[:1]), vectors]), axis=0, dtype=np.float64)
    spans: Float32 = (sums[length:] - sums[:-length]).astype(np.float32)
    return spans


def _cosines(a: Float32, b: Float32) -> Float32:
    cosines: Float32 = np.einsum("nd,nd->n", a, b) / (
        np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    )
    return cosines

"""Exporting a checkpoint to an encoder folder, which is written whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from slice_os.encoders.info import DESCRIPTION, GRAPH, TOKENIZER, EncoderInfo, file_sha256
from slice_os.encoders.judge import CALIBRATION
from slice_os.encoders.onnx import OnnxEncoder
from slice_os.encoders.phrase_head import FILE as HEAD
from slice_os.errors import ExportError
from slice_os.exporters.checkpoint import (
    Checkpoint,
    load_checkpoint,
    projected_hash,
    replace_folder,
)
from slice_os.exporters.graph import (
    PRECISIONS,
    check_judge,
    check_parity,
    fitted,
    measure_judge,
    measure_parity,
    one_torch_thread,
    torch_words,
    write_plain,
    write_precision,
)
from slice_os.exporters.phrase_head import draw_passages, refit
from slice_os.spans import MAX_WORDS, prefix_sums
from slice_os.types import Float32

NAME = "principal_axes"
"""Of the matrix in a graph."""
DOCUMENTS, PASSAGES = 10_000, 300
"""How many documents of each text are read, and how many of their passages are looked at."""


def axes_of(checkpoint: Checkpoint, paths: Sequence[str | Path]) -> Float32:
    """Return the axes ``[d, d]`` of the encoder folder at `paths`, or of the spans of texts there.

    The values are those of half precision, so that every precision has the very same.
    """
    if len(paths) == 1 and (Path(paths[0]) / DESCRIPTION).is_file():
        axes = read_axes(Path(paths[0]))
        dimension = checkpoint.dimension
        if len(axes) != dimension:
            raise ExportError(
                f"The encoder {paths[0]} has {len(axes)} dimensions, the checkpoint {dimension}: "
                "give texts instead."
            )
        return axes
    words = (
        torch_words(checkpoint, fitted(checkpoint, text, checkpoint.max_tokens))
        for path in paths
        for text in draw_passages(path, PASSAGES, documents=DOCUMENTS)
    )
    try:
        with one_torch_thread():
            return principal_axes(words).astype(np.float16).astype(np.float32)
    except ValueError as exc:
        raise ExportError(
            f"The texts for the axes, {', '.join(map(str, paths))}, cannot be used: {exc} Give "
            "more."
        ) from exc


def read_axes(folder: Path) -> Float32:
    """Return the axes ``[d, d]`` to which an encoder folder's vectors are turned.

    Raises:
        ExportError: It has none.
    """
    import onnx

    for weights in onnx.load(str(folder / GRAPH)).graph.initializer:
        if weights.name == NAME:
            return onnx.numpy_helper.to_array(weights).astype(np.float32)
    raise ExportError(f"The vectors of the encoder {folder} are not turned: give texts instead.")


def turn(graph: Path, axes: Float32) -> None:
    """Append the product with `axes` to the graph in a file, in the precision of its output."""
    import onnx

    model = onnx.load(str(graph))
    outputs = {output.name: output for output in model.graph.output}
    output = outputs.get("last_hidden_state", model.graph.output[0])
    before = f"{output.name}_before_turning"
    for node in model.graph.node:
        for names in (node.input, node.output):
            names[:] = [before if name == output.name else name for name in names]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(output.type.tensor_type.elem_type)
    output.type.tensor_type.shape.dim[-1].dim_value = axes.shape[1]
    model.graph.initializer.append(onnx.numpy_helper.from_array(axes.astype(dtype), NAME))
    model.graph.node.append(onnx.helper.make_node("MatMul", [before, NAME], [output.name]))
    onnx.save(model, str(graph))


# onnx cannot hold a graph in one file beyond this.
_LARGEST = 2**31 - 1


def export(
    checkpoint: str | Path,
    out: str | Path,
    precision: str = "fp32",
    name: str | None = None,
    *,
    version: str = "1",
    languages: Sequence[str] | None = None,
    licence: str | None = None,
    training_data: str | None = None,
    max_tokens: int | None = None,
    span_range: tuple[int, int] = (1, 20),
    axes: str | Path | Sequence[str | Path] = (),
    head_texts: Sequence[str | Path] = (),
    overwrite: bool = False,
    progress: Callable[[str], None] | None = None,
) -> EncoderInfo:
    """Write the encoder folder `out` from a local Hugging Face checkpoint folder.

    The exported files are loaded and compared with torch on real sentences first; `out` appears
    only if they agree, and at once.

    Args:
        checkpoint: A transformers or sentence-transformers folder with a fast tokenizer.
        out: The folder to make.
        precision: "fp32", "fp16" (GPU) or "int8" (CPU).
        name: What people call the encoder; the checkpoint folder's name if None.
        version: The version of the weights.
        languages: ISO 639 codes; the checkpoint's README's if None.
        licence: SPDX identifier; the checkpoint's README's if None.
        training_data: What it was trained on; the data sets of the README if None.
        max_tokens: The longest input; what the checkpoint states if None.
        span_range: The fewest and the most words of a span that the encoder is made for.
        axes: Texts to whose spans' principal axes the vectors are turned, so that their first
            dimensions say most (`exporters.axes.principal_axes`); or an encoder folder whose axes
            are taken, so that both are of the same weights. No degree changes.
        head_texts: Texts to whose spans the phrase head is fitted; 60 packaged passages without
            any.
        overwrite: Replace `out` if it exists.
        progress: Is told each step as it begins.

    Raises:
        ExportError: The checkpoint is incomplete or cannot be exported, `out` exists, the axes
            cannot be found, or the export differs from the checkpoint by more than the
            precision's bound.
        CorpusError: The texts for the axes cannot be read.
        MissingExtraError: torch, transformers or optimum is not installed.
    """
    out = Path(out).absolute()
    if precision not in PRECISIONS:
        raise ExportError(f"There is no precision {precision!r}: use {', '.join(PRECISIONS)}.")
    if out.exists() and not overwrite:
        raise ExportError(f"{out} exists: choose another folder, or ask to overwrite it.")
    tell = progress or (lambda step: None)
    tell("loading the checkpoint")
    loaded = load_checkpoint(checkpoint)
    card = loaded.card
    if max_tokens and max_tokens > loaded.places:
        raise ExportError(f"The checkpoint reads at most {loaded.places} tokens: lower max_tokens.")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        # Beside `out`, so that the last step is a rename within one file system.
        work = Path(tempfile.mkdtemp(prefix=f".{out.name}.partial-", dir=out.parent))
    except OSError as exc:
        raise ExportError(f"{out} cannot be made ({exc}): choose another folder.") from exc
    try:
        folder = work / "encoder"
        folder.mkdir()
        matrix = None
        if axes:
            tell("finding the principal axes")
            matrix = axes_of(loaded, [axes] if isinstance(axes, str | Path) else axes)
        turns = [each for each in (loaded.projection, matrix) if each is not None]
        tokenizer = loaded.tokenizer.backend_tokenizer
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.save(str(folder / TOKENIZER))
        tell("exporting the graph")
        plain = write_plain(loaded, work / "plain")
        if sum(path.stat().st_size for path in plain.parent.iterdir()) > _LARGEST:
            raise ExportError(
                "The checkpoint has more than 2 GB of weights, which one ONNX file cannot hold: "
                "use a smaller model."
            )
        tell(f"writing {precision}")
        _write_graph(plain, folder / GRAPH, precision, turns)
        info = EncoderInfo(
            name=name or Path(checkpoint).resolve().name,
            version=version,
            weights_hash=projected_hash(loaded.weights_hash, matrix),
            precision=precision,
            dimension=loaded.dimension,
            max_tokens=max_tokens or loaded.max_tokens,
            graph_bytes=(folder / GRAPH).stat().st_size,
            graph_sha256=file_sha256(folder / GRAPH),
            pad_id=int(loaded.tokenizer.pad_token_id or 0),
            span_range=span_range,
            languages=card.languages if languages is None else tuple(languages),
            licence=card.licence if licence is None else licence,
            training_data=card.training_data if training_data is None else training_data,
        )
        tell("comparing with torch")
        info.dump(folder)
        if (judge := Path(checkpoint) / CALIBRATION).is_file():  # it gives no spans
            shutil.copy(judge, folder / CALIBRATION)
            judged = measure_judge(loaded, folder)
            check_judge(judged, precision)
            info = replace(info, measured={"parity": judged})
            info.dump(folder)
            replace_folder(folder, out, work / "old")
            return info
        with OnnxEncoder(folder, "cpu") as encoder:
            measured = measure_parity(loaded, encoder, matrix)
        check_parity(measured, precision)
        info = replace(info, measured={"parity": measured})
        info.dump(folder)
        # Of the graph in full precision, so that every precision has the very same head.
        whole = work / "whole"
        shutil.copytree(folder, whole)
        _write_graph(plain, whole / GRAPH, "fp32", turns)
        replace(info, graph_bytes=(whole / GRAPH).stat().st_size).dump(whole)
        head = refit(whole, head_texts, progress=tell).phrase_head
        shutil.copy(whole / HEAD, folder / HEAD)
        info = replace(info, phrase_head=head)
        info.dump(folder)
        replace_folder(folder, out, work / "old")
    except OSError as exc:
        raise ExportError(f"{out} cannot be written ({exc}): choose another folder.") from exc
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return info


def _write_graph(plain: Path, out: Path, precision: str, turns: Sequence[Float32]) -> None:
    write_precision(plain, out, precision)
    if turns:
        turn(out, turns[0] if len(turns) == 1 else turns[0] @ turns[1])


def principal_axes(passages: Iterable[Float32], seed: int = 0) -> Float32:
    """Return an orthogonal matrix A, float32 ``[d, d]``: the first columns of x A say most of x.

    The columns are the eigenvectors of the sum of u u^T, largest eigenvalue first, u the unit
    vectors of random spans, one that begins with each word (principal component analysis without
    centring: a cosine is about 0, not about the mean). Of all orthogonal matrices A is the one with
    which the first k columns keep most of these spans' energy, for each k.

    Args:
        passages: Word vectors, float32 ``[N, d]`` each.
        seed: Seed of the spans' lengths.

    Raises:
        ValueError: There are fewer words than dimensions.
    """
    rng = np.random.default_rng(seed)
    moment: np.ndarray[tuple[int, int], np.dtype[np.float64]] | None = None
    count = 0
    for words in passages:
        starts = np.arange(len(words))
        ends = np.minimum(starts + rng.integers(1, MAX_WORDS + 1, len(words)), len(words))
        sums = prefix_sums(words)
        spans = sums[ends] - sums[starts]
        spans /= np.maximum(np.linalg.norm(spans, axis=1, keepdims=True), 1e-9)
        moment = spans.T @ spans + (0 if moment is None else moment)
        count += len(words)
    if moment is None or count < len(moment):
        raise ValueError(f"{count} words are too few to say what their dimensions hold.")
    axes = np.linalg.eigh(moment)[1][:, ::-1]
    # An eigenvector has no sign: the largest component is made positive.
    signs = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(len(axes))])
    return np.ascontiguousarray(axes * signs, dtype=np.float32)

"""Rotating an encoder's vectors to the principal axes of spans, so that the first matter most.

A rotation changes no degree. It lets an index store fewer dimensions and find nearly the same.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Sequence
from heapq import nsmallest
from itertools import islice
from pathlib import Path

import numpy as np

from slice_os.corpus import read
from slice_os.encoders.info import DESCRIPTION, GRAPH
from slice_os.errors import ExportError
from slice_os.exporters.checkpoint import Checkpoint
from slice_os.exporters.parity import fitted, one_torch_thread, torch_words
from slice_os.spans import MAX_WORDS, prefix_sums
from slice_os.text import split
from slice_os.types import Float32

NAME = "principal_axes"
"""Of the matrix in a graph."""
DOCUMENTS, PASSAGES = 10_000, 300
"""How many documents of each text are read, and how many of their passages are looked at."""


def axes_of(checkpoint: Checkpoint, paths: Sequence[str | Path]) -> Float32:
    """Return the axes ``[d, d]`` of the encoder folder at `paths`, or of the spans of texts there.

    The values are those of half precision, so that every precision has the very same.

    Raises:
        ExportError: The folder's encoder has no axes, or the texts have too few words.
        CorpusError: The texts cannot be read.
    """
    if len(paths) == 1 and (Path(paths[0]) / DESCRIPTION).is_file():
        axes = read_axes(Path(paths[0]))
        dimension = checkpoint.model.config.hidden_size
        if len(axes) != dimension:
            raise ExportError(
                f"The encoder {paths[0]} has {len(axes)} dimensions, the checkpoint {dimension}: "
                "give texts instead."
            )
        return axes
    words = (
        torch_words(checkpoint, fitted(checkpoint, text, checkpoint.max_tokens))
        for path in paths
        for text in _texts(path)
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

    for one in onnx.load(str(folder / GRAPH)).graph.initializer:
        if one.name == NAME:
            return onnx.numpy_helper.to_array(one).astype(np.float32)
    raise ExportError(f"The vectors of the encoder {folder} are not turned: give texts instead.")


def turn(graph: Path, axes: Float32) -> None:
    """Append the product with `axes` to the graph in a file, in the precision of its output."""
    import onnx

    model = onnx.load(str(graph))
    outputs = {one.name: one for one in model.graph.output}
    output = outputs.get("last_hidden_state", model.graph.output[0])
    before = f"{output.name}_before_turning"
    for node in model.graph.node:
        for names in (node.input, node.output):
            names[:] = [before if name == output.name else name for name in names]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(output.type.tensor_type.elem_type)
    model.graph.initializer.append(onnx.numpy_helper.from_array(axes.astype(dtype), NAME))
    model.graph.node.append(onnx.helper.make_node("MatMul", [before, NAME], [output.name]))
    onnx.save(model, str(graph))


def turned_hash(weights_hash: str, axes: Float32) -> str:
    """Return the weights hash of an encoder of a weights hash whose vectors are turned."""
    digest = hashlib.blake2b(weights_hash.encode(), digest_size=16)
    digest.update(axes.astype("<f4").tobytes())
    return digest.hexdigest()


def _texts(path: str | Path) -> list[str]:
    """Return some passages from anywhere in a text."""
    rng = random.Random(0)
    passages = (passage.text for one in islice(read(path), DOCUMENTS) for passage in split(one))
    return nsmallest(PASSAGES, passages, key=lambda _: rng.random())


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

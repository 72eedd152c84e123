"""Fitting the phrase head of an encoder: static vectors and two maps (`encoder.phrase_head`).

Of random spans of texts the vector in context and the sum of their wordpieces' static vectors are
mapped to the vector of their words alone. Each wordpiece's static vector is at first its own vector
alone, and both maps are found by least squares (ridge regression); of many spans the table of
static vectors and the map of the context are then learnt further by gradient descent.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from slice_os.corpus import read
from slice_os.encoders import EncoderInfo
from slice_os.encoders.onnx import OnnxEncoder
from slice_os.encoders.phrase_head import FILE, PhraseHead, quantized
from slice_os.errors import ExportError
from slice_os.exporters.graph import sentences
from slice_os.files import whole
from slice_os.text import split
from slice_os.types import Float32, Words

if TYPE_CHECKING:
    from torch import Tensor

LONGEST = 10
"""Words of the longest span that the head is fitted to."""
SPANS = 12
"""Spans of each passage; more where there are few passages:"""
A_DIMENSION = 4
"""Spans for each dimension of a vector."""
PASSAGES = 1500
"""Passages of each text."""
TOGETHER = 200
"""Passages whose spans are encoded at once."""
RIDGE = 0.01
"""The penalty of the least squares, as a share of the mean variance."""
ENOUGH = 20_000
"""Spans from which on the static vectors are learnt further: fewer would be learnt by heart."""
EPOCHS, BATCH, RATES = 6, 512, (1e-3, 3e-3)
"""Of gradient descent: Adam's rates are those of the map of the context and of the table."""
RELATIONS = 5.0
"""The weight of the cosines with other spans of a batch, beside the cosine with its own."""


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Spans: their vectors in context ``[n, d]``, their words' alone, and their wordpieces."""

    context: Float32
    alone: Float32
    pieces: list[Any]


def refit(
    folder: str | Path,
    texts: Sequence[str | Path] = (),
    *,
    seed: int = 0,
    progress: Callable[[str], object] = lambda step: None,
) -> EncoderInfo:
    """Fit the phrase head of an encoder folder anew, and return the folder's new description.

    Args:
        folder: The encoder folder, of any precision.
        texts: What `slice_os.read` takes; the packaged sentences without any.
        seed: Of the choice of passages and spans.
        progress: Told each step as it begins.

    Raises:
        ExportError: The texts hold too few spans.
        CorpusError: A text cannot be read.
        MissingExtraError: torch is not installed.
    """
    folder = Path(folder)
    with OnnxEncoder(folder, "cpu") as encoder:
        head = fit(encoder, _passages(texts, seed), seed, progress)
        info = replace(encoder.info, phrase_head=head.hash)
    with whole(folder / FILE) as partial:
        partial.write_bytes(head.to_bytes())
    info.dump(folder)
    return info


def fit(
    encoder: OnnxEncoder,
    passages: Sequence[str],
    seed: int = 0,
    progress: Callable[[str], object] = lambda step: None,
) -> PhraseHead:
    """Return the phrase head of an encoder, fitted to spans of some passages.

    Raises:
        ExportError: They hold too few spans.
        MissingExtraError: torch is not installed.
    """
    progress("encoding each wordpiece")
    table = encoder.encode_pieces()
    progress("encoding spans")
    spans = _spans(encoder, passages, seed)
    if len(spans.alone) < 2 * encoder.info.dimension:
        raise ExportError(
            f"The texts hold {len(spans.alone):,} spans, too few to fit a phrase head: give more."
        )
    progress("fitting the phrase head")
    context, static = _least_squares(spans, table)
    table = table @ static
    if len(spans.alone) >= ENOUGH:
        context, table = _learnt(spans, context, table, seed, progress)
    return quantized(context, table)


def _passages(texts: Sequence[str | Path], seed: int) -> list[str]:
    if not texts:
        return sentences()
    return [passage for text in texts for passage in draw_passages(text, PASSAGES, seed)]


def draw_passages(
    path: str | Path, count: int, seed: int = 0, *, documents: int | None = None
) -> list[str]:
    """Return random passages of a text, of its first `documents` or all."""
    rng = random.Random(seed)
    texts = islice(read(path), documents)
    passages = (passage.text for document in texts for passage in split(document))
    return nsmallest(count, passages, key=lambda _: rng.random())


def _spans(encoder: OnnxEncoder, passages: Sequence[str], seed: int) -> Spans:
    """Return random spans of each passage."""
    rng = np.random.default_rng(seed)
    dimension = encoder.info.dimension
    count = max(SPANS, math.ceil(A_DIMENSION * dimension / max(len(passages), 1)))
    context, alone, pieces = [], [], []
    waiting = iter(passages)
    while some := list(islice(waiting, TOGETHER)):
        texts: list[str] = []
        for passage, words in zip(some, encoder.encode_words(some), strict=True):
            for i, j in _drawn(words, count, rng):
                context.append(words.vectors[i:j].sum(axis=0))
                pieces.append(_pieces(words, i, j))
                texts.append(passage[words.starts[i] : words.ends[j - 1]])
        alone.append(encoder.encode(texts))
    return Spans(
        np.array(context, np.float32).reshape(-1, dimension),
        np.concatenate(alone) if alone else np.zeros((0, dimension), np.float32),
        pieces,
    )


def _drawn(words: Words, count: int, rng: np.random.Generator) -> Iterable[tuple[int, int]]:
    for length in rng.integers(1, LONGEST + 1, count).tolist():
        if length <= len(words):
            start = int(rng.integers(0, len(words) - length + 1))
            yield start, start + length


def _pieces(words: Words, i: int, j: int) -> Any:
    assert words.pieces is not None
    assert words.counts is not None
    bounds = np.cumsum([0, *words.counts.tolist()])
    return words.pieces[bounds[i] : bounds[j]].astype(np.int64)


def _least_squares(spans: Spans, table: Float32) -> tuple[Float32, Float32]:
    """Return the maps of the context and of the static vectors, ``[d, d]`` each."""
    static = np.array([table[own].sum(axis=0) for own in spans.pieces], np.float64)
    both = np.hstack((spans.context.astype(np.float64), static))
    moment = both.T @ both
    penalty = RIDGE * np.trace(moment) / len(moment)
    solved = np.linalg.solve(moment + penalty * np.eye(len(moment)), both.T @ spans.alone)
    dimension = table.shape[1]
    maps: Float32 = solved.astype(np.float32)
    return maps[:dimension], maps[dimension:]


def _learnt(
    spans: Spans, context: Float32, table: Float32, seed: int, progress: Callable[[str], object]
) -> tuple[Float32, Float32]:
    """Return the map of the context and the static vectors, learnt further."""
    import torch

    alone = torch.nn.functional.normalize(torch.from_numpy(spans.alone), dim=1)
    inside = torch.from_numpy(spans.context)
    mapped = torch.nn.Parameter(torch.from_numpy(context.copy()))
    static = torch.nn.EmbeddingBag.from_pretrained(
        torch.from_numpy(table.astype(np.float32)), mode="sum", freeze=False
    )
    groups: list[dict[str, Any]] = [{"params": [mapped]}, {"params": static.parameters()}]
    descent = torch.optim.Adam(groups)
    steps = EPOCHS * (len(alone) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        descent, list(RATES), total_steps=steps + 1, pct_start=0.1
    )

    def predicted(rows: Sequence[int]) -> Tensor:
        own = [spans.pieces[row] for row in rows]
        first = np.cumsum([0, *map(len, own[:-1])])
        sums: Tensor = static(torch.from_numpy(np.concatenate(own)), torch.from_numpy(first))
        return torch.nn.functional.normalize(inside[rows] @ mapped + sums, dim=1)

    for epoch in range(EPOCHS):
        order = np.random.default_rng([seed, epoch]).permutation(len(alone))
        mean = 0.0
        for at in range(0, len(order) - BATCH + 1, BATCH):
            rows = order[at : at + BATCH].tolist()
            ours, theirs = predicted(rows), alone[rows]
            cosines = (ours * theirs).sum(dim=1)
            relations = (theirs @ theirs.T - ours @ theirs.T).square().mean()
            loss = (1 - cosines).mean() + RELATIONS * relations
            descent.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            descent.step()
            schedule.step()
            mean += float(cosines.mean())
        progress(f"epoch {epoch + 1} of {EPOCHS}: cosine {mean / max(len(order) // BATCH, 1):.4f}")
    return mapped.detach().numpy(), static.weight.detach().numpy()

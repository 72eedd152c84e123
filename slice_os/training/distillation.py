"""Span distillation (design 3.6): a span in its context learns what its words alone mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from slice_os.training.recipe import Distillation
from slice_os.training.sampling import Passages, spans_of
from slice_os.training.student import Student, WordVectors
from slice_os.training.teacher import Teacher


def matrix_loss(student: Tensor, teacher: Tensor, temperature: float = 0.05) -> Tensor:
    """Return the divergence of two matrices of cosines, a mean over rows.

    KL(softmax(T / t) || softmax(S / t)) of each row (design 3.6): which texts are nearer than
    others, whatever the cosines are.

    Args:
        student: Float ``[m, n]``, with a gradient.
        teacher: Float ``[m, n]``.
        temperature: The t of the formula.
    """
    return functional.kl_div(
        functional.log_softmax(student / temperature, dim=1),
        functional.log_softmax(teacher / temperature, dim=1),
        reduction="batchmean",
        log_target=True,
    )


def span_vectors(words: WordVectors, spans: Sequence[tuple[int, int, int]]) -> Tensor:
    """Return the unit vectors of spans ``(row, i, j)``, float ``[S, d]``."""
    rows, starts, ends = torch.tensor(spans, device=words.vectors.device).T
    sums = functional.pad(words.vectors.cumsum(dim=1), (0, 0, 1, 0))
    return functional.normalize(sums[rows, ends] - sums[rows, starts], dim=-1)


def span_texts(words: WordVectors, spans: Sequence[tuple[int, int, int]]) -> list[str]:
    """Return the words of spans as they stand in their passages."""
    texts = []
    for row, i, j in spans:
        text, at = words.texts[row].text, words.texts[row].words
        texts.append(text[at.starts[i] : at.ends[j - 1]])
    return texts


class SpanDistillation:
    """The objective: random spans of running text, in context and alone, against the teacher."""

    def __init__(self, settings: Distillation, passages: Passages, teacher: Teacher) -> None:
        self._settings = settings
        self._passages = passages
        self._teacher = teacher

    def losses(self, student: Student, rng: np.random.Generator) -> Mapping[str, Tensor]:
        """Return the weighted losses of a batch drawn with `rng`."""
        wanted = self._settings
        words = student.words(self._passages.draw(rng, wanted.passages))
        spans = spans_of(rng, words.counts.tolist(), wanted.spans, wanted.short)
        texts = span_texts(words, spans)
        inside = span_vectors(words, spans)
        teacher = torch.from_numpy(self._teacher.encode(texts)).to(inside)
        chosen = rng.permutation(len(texts))[: wanted.alone].tolist()
        alone = student.encode([texts[k] for k in chosen]) if chosen else teacher[:0]
        likeness = teacher @ teacher.T
        losses = {
            "context": wanted.pull * (1 - (inside * teacher).sum(dim=1)).mean(),
            "matrix": wanted.matrix * matrix_loss(inside @ teacher.T, likeness, wanted.temperature),
        }
        if chosen:
            losses["alone"] = wanted.pull * (1 - (alone * teacher[chosen]).sum(dim=1)).mean()
            crossed = alone @ inside.T
            losses["crossed"] = wanted.matrix * matrix_loss(
                crossed, likeness[chosen], wanted.temperature
            )
            if wanted.degrees:
                losses["degrees"] = wanted.degrees * functional.mse_loss(crossed, likeness[chosen])
        return losses

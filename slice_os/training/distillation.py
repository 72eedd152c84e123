"""Span distillation (docs/training.md): a span in its context learns what its words alone mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from slice_os.encoder import Encoder
from slice_os.errors import TrainingError
from slice_os.exporters.pooled import WordVectors
from slice_os.training.base import Objective
from slice_os.training.ranking import RankingDistillation
from slice_os.training.recipe import Distillation
from slice_os.training.relations import blended, matrix_loss, similarities
from slice_os.training.sampling import Passages, spans_of
from slice_os.training.student import Student


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


class SpanDistillation(Objective):
    """The objective: random spans of running text, in context and alone, against the teacher.

    Of a second teacher, whose space is another, only the similarities are learnt: span by span,
    the goal is a blend of both teachers' cosines, and a span in context is drawn as much to what
    the student itself makes of its words alone as to the first teacher.
    """

    def __init__(
        self,
        settings: Distillation,
        passages: Passages,
        teacher: Encoder,
        second: Encoder | None = None,
        ranking: RankingDistillation | None = None,
    ) -> None:
        """Take the teachers.

        Args:
            settings: The recipe's table.
            passages: What is drawn from.
            teacher: Of the student's space.
            second: Of any space.
            ranking: Its passages, once encoded, serve both objectives.
        """
        self._settings = settings
        self._passages = passages
        self._teacher = teacher
        self._second = second
        self._ranking = ranking

    def losses(self, student: Student, rng: np.random.Generator) -> Mapping[str, Tensor]:
        """Return the weighted losses of a batch drawn with `rng`."""
        wanted = self._settings
        if self._ranking:
            queries, texts = self._ranking.draw(rng)
            words = student.words(texts)
            losses = {**self._ranking.compare(student, queries, texts, words)}
        else:
            words = student.words(self._passages.draw(rng, wanted.passages))
            losses = {}
        spans = spans_of(rng, words.counts.tolist(), wanted.spans, wanted.short)
        said = span_texts(words, spans)
        inside = span_vectors(words, spans)
        teacher = torch.from_numpy(self._teacher.encode(said)).to(inside)
        if teacher.shape != inside.shape:
            raise TrainingError(
                f"The teacher has {teacher.shape[1]} dimensions and the student {inside.shape[1]}: "
                "name it as second, of which only similarities are learnt, or use another."
            )
        goal, mix = teacher @ teacher.T, 0.0
        if self._second:
            mix = wanted.mix
            goal = blended(goal, similarities(self._second, said, like=inside), mix)
        away = (1 - mix) * (1 - (inside * teacher).sum(dim=1)).mean()
        chosen = rng.permutation(len(said))[: wanted.alone].tolist()
        if chosen:
            alone = student.encode([said[k] for k in chosen])
            losses["alone"] = wanted.anchor * (1 - (alone * teacher[chosen]).sum(dim=1)).mean()
            if mix:
                away = away + mix * (1 - (inside[chosen] * alone).sum(dim=1)).mean()
            crossed, own = alone @ inside.T, alone @ alone.T
            pairs = [(crossed, goal[chosen]), (own, goal[chosen][:, chosen])]
        else:
            pairs = [(inside @ teacher.T, goal)]
        losses["context"] = wanted.pull * away
        for name, weight, loss in (
            ("matrix", wanted.matrix, lambda s, t: matrix_loss(s, t, wanted.temperature)),
            ("degrees", wanted.degrees, functional.mse_loss),
        ):
            if weight:
                losses[name] = weight / len(pairs) * torch.stack([loss(*p) for p in pairs]).sum()
        return losses

"""Distillation (docs/training.md): of spans and of rankings.

Span distillation: a span in its context learns what its words alone mean. That alone takes the
context out of a span's vector, and retrieval with it. So ranking distillation: a few words cut out
of a text are the query, the passages around them and those of other texts are ranked by their best
span, and the student's ranking is held to a frozen teacher's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from slice_os.encoders import Encoder
from slice_os.errors import TrainingError
from slice_os.exporters.pooled import PooledModel, WordVectors
from slice_os.lab.train.losses import best_spans, blended, matrix_loss, similarities
from slice_os.lab.train.recipe import Distillation, Ranking
from slice_os.lab.train.sampling import Passages, spans_of
from slice_os.lab.train.student import Objective, Student
from slice_os.spans import length_window
from slice_os.text import count_words


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


class RankingDistillation(Objective):
    """Best spans learn to rank passages as a frozen teacher's best spans and means do."""

    def __init__(
        self,
        settings: Ranking,
        passages: Passages,
        teacher: PooledModel,
        second: Encoder | None = None,
    ) -> None:
        self._settings = settings
        self._passages = passages
        self._teacher = teacher
        self._second = second
        teacher.model.requires_grad_(False).eval()

    def draw(self, rng: np.random.Generator) -> tuple[list[str], list[str]]:
        """Return queries, and the passages that they are to rank."""
        queries, passages = [], []
        for _ in range(self._settings.texts):
            query, rest = _cut(rng, self._passages.draw_run(rng, self._settings.passages))
            queries.append(query)
            passages += rest
        return queries, passages

    def compare(
        self,
        student: Student,
        queries: Sequence[str],
        passages: Sequence[str],
        words: WordVectors,
    ) -> Mapping[str, Tensor]:
        """Return the weighted loss; `words` are the student's of `passages`."""
        wanted = self._settings
        with torch.no_grad():
            asked, own = self._teacher.encode(queries), self._teacher.words(passages)
            goal = (1 - wanted.mean) * _scores(asked, own, queries)
            goal = goal + wanted.mean * asked @ functional.normalize(own.vectors.sum(1), dim=-1).T
            if self._second and wanted.second:
                other = similarities(self._second, queries, passages, like=goal)
                goal = blended(goal, other, wanted.second)
        scores = _scores(student.encode(queries), words, queries)
        return {"ranking": wanted.weight * matrix_loss(scores, goal, wanted.temperature)}

    def losses(self, student: Student, rng: np.random.Generator) -> Mapping[str, Tensor]:
        """Return the weighted loss of runs of passages drawn with `rng`."""
        queries, passages = self.draw(rng)
        return self.compare(student, queries, passages, student.words(passages))


def _scores(asked: Tensor, words: WordVectors, queries: Sequence[str]) -> Tensor:
    """Return the best span's cosines ``[Q, B]`` within each query's length window."""
    windows = [length_window(max(1, count_words(query))) for query in queries]
    return best_spans(asked, words.vectors, words.counts, windows, crossed=True).cosines


def _cut(rng: np.random.Generator, run: Sequence[str]) -> tuple[str, list[str]]:
    """Return 5 to 16 words of one passage of `run`, and the passages without them."""
    at = int(rng.integers(len(run)))
    words = run[at].split()
    size = min(int(rng.integers(5, 17)), max(1, len(words) // 2))
    start = int(rng.integers(len(words) - size + 1))
    rest = " ".join(words[:start] + words[start + size :])
    return " ".join(words[start : start + size]), [*run[:at], rest or run[at], *run[at + 1 :]]


class SpanDistillation(Objective):
    """Random spans of running text, in context and alone, learn the teacher's vectors.

    Of a second teacher, whose vector space is another, only similarities are learnt: the target is
    a blend of both teachers' cosines, and for its share a span in context is drawn to the
    student's own vector of the words alone.
    """

    def __init__(
        self,
        settings: Distillation,
        passages: Passages,
        teacher: Encoder,
        second: Encoder | None = None,
        ranking: RankingDistillation | None = None,
    ) -> None:
        """Take a teacher of the student's space, and a second of any space.

        The passages of `ranking`, once encoded, serve both objectives.
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
        texts_alone = span_texts(words, spans)
        inside = span_vectors(words, spans)
        teacher = torch.from_numpy(self._teacher.encode(texts_alone)).to(inside)
        if teacher.shape != inside.shape:
            raise TrainingError(
                f"The teacher has {teacher.shape[1]} dimensions and the student {inside.shape[1]}: "
                "name it as second, of which only similarities are learnt, or use another."
            )
        goal, mix = teacher @ teacher.T, 0.0
        if self._second:
            mix = wanted.mix
            goal = blended(goal, similarities(self._second, texts_alone, like=inside), mix)
        away = (1 - mix) * (1 - (inside * teacher).sum(dim=1)).mean()
        chosen = rng.permutation(len(texts_alone))[: wanted.alone].tolist()
        if chosen:
            alone = student.encode([texts_alone[k] for k in chosen])
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

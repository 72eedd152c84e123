"""Ranking distillation: a student goes on telling passages apart by what they are about.

Span distillation alone takes the context out of a span's vector, and retrieval with it. Here a few
words cut out of a text are the query, the passages around them and those of other texts are ranked
by their best span, and the student's ranking is held to a frozen teacher's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from slice_os.corpus import count_words
from slice_os.encoder import Encoder
from slice_os.exporters.pooled import PooledModel, WordVectors
from slice_os.spans import length_window
from slice_os.training.base import Objective
from slice_os.training.best_spans import best_spans
from slice_os.training.recipe import Ranking
from slice_os.training.relations import blended, matrix_loss, similarities
from slice_os.training.sampling import Passages
from slice_os.training.student import Student


class RankingDistillation(Objective):
    """The objective: best spans rank passages as a frozen teacher's best spans and means do."""

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
        found = _scores(student.encode(queries), words, queries)
        return {"ranking": wanted.weight * matrix_loss(found, goal, wanted.temperature)}

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

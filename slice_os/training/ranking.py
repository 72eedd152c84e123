"""Ranking distillation: a student goes on telling passages apart by what they are about.

Span distillation alone takes the context out of a span's vector, and retrieval with it. Here a few
words cut out of a text are the query, the passages around them and those of other texts are ranked
by their best span, and the student's ranking is held to the frozen base's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from slice_os.corpus import count_words
from slice_os.spans import length_window
from slice_os.training.best_spans import best_spans
from slice_os.training.distillation import matrix_loss
from slice_os.training.recipe import Ranking
from slice_os.training.sampling import Passages
from slice_os.training.student import Student, WordVectors


class RankingDistillation:
    """The objective: best spans rank passages as the frozen base's best spans and means do."""

    def __init__(self, settings: Ranking, passages: Passages, base: Student) -> None:
        self._settings = settings
        self._passages = passages
        self._base = base
        base.model.requires_grad_(False).eval()

    def losses(self, student: Student, rng: np.random.Generator) -> Mapping[str, Tensor]:
        """Return the weighted loss of runs of passages drawn with `rng`."""
        wanted = self._settings
        queries, passages = [], []
        for _ in range(wanted.texts):
            run = self._passages.draw_run(rng, wanted.passages)
            query, rest = _cut(rng, run)
            queries.append(query)
            passages += rest
        with torch.no_grad():
            asked = self._base.encode(queries)
            words = self._base.words(passages)
            goal = (1 - wanted.mean) * _scores(asked, words, queries)
            goal = goal + wanted.mean * asked @ functional.normalize(words.vectors.sum(1), dim=-1).T
        found = _scores(student.encode(queries), student.words(passages), queries)
        return {"ranking": wanted.weight * matrix_loss(found, goal, wanted.temperature)}


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

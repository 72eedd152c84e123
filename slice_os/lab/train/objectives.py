"""Objectives: distillation of spans and rankings, triples, and pairs of known similarity.

Span distillation: a span in its context learns what its words alone mean. That alone takes the
context out of a span's vector, and retrieval with it. So ranking distillation: a few words cut out
of a text are the query, the passages around them and those of other texts are ranked by their best
span, and the student's ranking is held to a frozen teacher's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from slice_os.encoders import Encoder
from slice_os.errors import TrainingError
from slice_os.exporters.pooled import PooledModel, WordVectors
from slice_os.lab.train.losses import (
    best_spans,
    blended,
    in_batch_loss,
    matrix_loss,
    slice_loss,
)
from slice_os.lab.train.recipe import Distillation, Pairs, Ranking, Slice, Triplets
from slice_os.lab.train.sampling import (
    FILLERS,
    Passages,
    ScoredPair,
    TripleBatches,
    place,
    spans_of,
)
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
        second: Sequence[Encoder] = (),
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
                goal = blended(goal, self._second, wanted.second, queries, passages)
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

    Of second teachers, whose vector spaces are others, only similarities are learnt: the target is
    a blend of all teachers' cosines, and for their share a span in context is drawn to the
    student's own vector of the words alone.
    """

    def __init__(
        self,
        settings: Distillation,
        passages: Passages,
        teacher: Encoder,
        second: Sequence[Encoder] = (),
        ranking: RankingDistillation | None = None,
    ) -> None:
        """Take a teacher of the student's space, and second ones of any space.

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
            goal = blended(goal, self._second, mix, texts_alone)
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


MASK = "[MASK]"
"""What stands for a phrase in a file of contexts."""
RUNNING = 0.3
"""The share of running text among the sentences around a pair's."""


class Triples(Objective):
    """SLICE's loss over a file of triples, read in order and again from the start at its end."""

    def __init__(self, settings: Slice, path: Path, process: int = 0, processes: int = 1) -> None:
        self._settings = settings
        self._batches = TripleBatches(path, settings.batch, process, processes)

    def skip(self, steps: int) -> None:
        """Skip the data of `steps` steps."""
        self._batches.skip(steps)

    def losses(self, student: Student, rng: np.random.Generator) -> Mapping[str, Tensor]:
        """Return the weighted loss of the next triples."""
        wanted = self._settings
        triples = self._batches.take()
        queries = student.encode([triple.query for triple in triples])
        texts = [triple.positive for triple in triples] + [triple.negative for triple in triples]
        words = student.words(texts)
        count = len(triples)
        if wanted.in_batch:
            loss = in_batch_loss(self._cosines(queries, words, crossed=True), wanted.scale)
        else:
            cosines = self._cosines(queries.repeat(2, 1), words, crossed=False)
            loss = slice_loss(cosines[:count], cosines[count:], wanted.scale)
        return {"slice": wanted.weight * loss}

    def _cosines(self, queries: Tensor, words: WordVectors, *, crossed: bool) -> Tensor:
        """Return the cosines of queries with passages, all or each with its own."""
        if self._settings.over == "passage":
            whole = functional.normalize(words.vectors.sum(dim=1), dim=-1)
            return ((queries[:, None] if crossed else queries) * whole).sum(dim=-1)
        lengths = range(1, self._settings.max_words + 1)
        return best_spans(queries, words.vectors, words.counts, lengths, crossed=crossed)[0]


class LabelledPairs(Objective):
    """Two texts learn the degree of their score, alone and, if `context` is set, in a passage.

    In context, the second text stands in a passage, whose best span counts. The other sentences
    are those of other pairs and, in part, running text, so that style does not give it away.
    """

    def __init__(self, settings: Pairs, pairs: Sequence[ScoredPair], passages: Passages) -> None:
        self._settings = settings
        self._pairs = pairs
        self._passages = passages
        self._texts = [text for pair in pairs for text in (pair.first, pair.second)]

    def losses(self, student: Student, rng: np.random.Generator) -> Mapping[str, Tensor]:
        """Return the weighted losses of pairs drawn with `rng`."""
        wanted = self._settings
        pairs = [self._pairs[k] for k in rng.integers(len(self._pairs), size=wanted.batch)]
        if rng.random() < 0.5:  # alike is alike both ways
            pairs = [ScoredPair(pair.second, pair.first, pair.likeness) for pair in pairs]
        queries = student.encode([pair.first for pair in pairs])
        targets = student.encode([pair.second for pair in pairs])
        least = 2 * wanted.least - 1
        gold = torch.tensor([pair.likeness for pair in pairs], device=queries.device)
        goal = least + (1 - least) * gold
        alone = (queries * targets).sum(dim=1)
        losses = {"pairs alone": wanted.weight * functional.mse_loss(alone, goal)}
        if wanted.context:
            passages = [place(rng, pair.second, self._fillers(rng)) for pair in pairs]
            words = student.words(passages)
            windows = [length_window(max(1, count_words(pair.first))) for pair in pairs]
            inside = best_spans(queries, words.vectors, words.counts, windows)[0]
            losses["pairs"] = wanted.weight * functional.mse_loss(inside, goal)
        return losses

    def _fillers(self, rng: np.random.Generator) -> list[str]:
        """Return the sentences (`FILLERS`) to put around the target."""
        fillers = []
        for _ in range(int(rng.integers(FILLERS[0], FILLERS[1] + 1))):
            if rng.random() < RUNNING:
                words = self._passages.draw(rng, 1)[0].split(" ")
                fillers.append(" ".join(words[: int(rng.integers(6, 19))]))
            else:
                fillers.append(self._texts[int(rng.integers(len(self._texts)))])
        return fillers


class PhraseTriplets(Objective):
    """Phrase-BERT's loss over phrases with paraphrases, with contexts, or over both.

    Wang et al. (2021), Phrase-BERT: Improved Phrase Embeddings from BERT with an Application to
    Corpus Exploration, section 3. A text's vector is the mean of its tokens', of any length.
    """

    def __init__(
        self, settings: Triplets, root: Path, process: int = 0, processes: int = 1
    ) -> None:
        """Open the files, which lie in `root`."""
        self._settings = settings
        self._batches = {
            kind: TripleBatches(root / path, settings.batch, process, processes)
            for kind, path in settings.files.items()
        }

    def skip(self, steps: int) -> None:
        """Skip the data of `steps` steps."""
        for batches in self._batches.values():
            batches.skip(steps)

    def losses(self, student: Student, rng: np.random.Generator) -> Mapping[str, Tensor]:
        """Return the weighted losses of the next triplets of each file."""
        wanted = self._settings
        return {
            kind: wanted.weight * self._loss(student, batches)
            for kind, batches in self._batches.items()
        }

    def _loss(self, student: Student, batches: TripleBatches) -> Tensor:
        vectors = []
        # Phrases apart from contexts: less is padded.
        for column in zip(*batches.take(), strict=True):
            texts = [_masked(text, student.mask) for text in column]
            student.seen = student.seen + sum(len(text.split()) for text in texts)
            vectors.append(student.encode(texts, unit=False))
        anchor, positive, negative = vectors
        margin = self._settings.margin
        return functional.triplet_margin_loss(anchor, positive, negative, margin=margin)


def _masked(text: str, mask: str | None) -> str:
    if mask is None and MASK in text:
        raise TrainingError(
            "The base's tokenizer has no token for a masked word: take another base, or leave "
            "contexts out of [triplets]."
        )
    return text.replace(MASK, mask or "")

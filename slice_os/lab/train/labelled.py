"""Objectives with labels: SLICE's and Phrase-BERT's triples, and pairs of known similarity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from slice_os.errors import TrainingError
from slice_os.exporters.pooled import WordVectors
from slice_os.lab.train.losses import best_spans, in_batch_loss, slice_loss
from slice_os.lab.train.recipe import Pairs, Slice, Triplets
from slice_os.lab.train.sampling import FILLERS, Passages, ScoredPair, TripleBatches, place
from slice_os.lab.train.student import Objective, Student
from slice_os.spans import length_window
from slice_os.text import count_words

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

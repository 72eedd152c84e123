"""Phrase-BERT's objective: phrases near their paraphrases and the contexts that they stand in.

Wang et al. (2021), Phrase-BERT: Improved Phrase Embeddings from BERT with an Application to Corpus
Exploration, section 3. A text's vector is the mean of its tokens', of any length.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from torch import Tensor

from slice_os.errors import TrainingError
from slice_os.lab.train.losses import triplet_loss
from slice_os.lab.train.recipe import Triplets
from slice_os.lab.train.student import Objective, Student
from slice_os.lab.train.triples import TripleBatches

MASK = "[MASK]"
"""What stands for a phrase in a file of contexts."""


class PhraseTriplets(Objective):
    """The loss over phrases with paraphrases, over phrases with contexts, or over both."""

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
        return triplet_loss(anchor, positive, negative, self._settings.margin)


def _masked(text: str, mask: str | None) -> str:
    if MASK not in text:
        return text
    if mask is None:
        raise TrainingError(
            "The base's tokenizer has no token for a masked word: take another base, or leave "
            "contexts out of [triplets]."
        )
    return text.replace(MASK, mask)

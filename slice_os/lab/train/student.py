"""The model that is trained, and the interface of its objectives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from slice_os.exporters.checkpoint import Checkpoint
from slice_os.exporters.pooled import PooledModel, WordVectors


class Student(PooledModel):
    """A checkpoint's model that an optimiser trains.

    Attributes:
        seen: How many words were encoded in context, for whoever measures the pace.
        mask: What the tokenizer reads as a masked word; None if it has no such token.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Take the model of `checkpoint`, without dropout: a student must agree with itself."""
        super().__init__(checkpoint)
        self.seen: int | torch.Tensor = 0
        self.mask: str | None = checkpoint.tokenizer.mask_token
        for module in self.model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0

    def words(self, texts: Sequence[str], *, by_token: bool = False) -> WordVectors:
        """Return the word vectors of `texts` in their context, run as one batch."""
        words = super().words(texts, by_token=by_token)
        self.seen = self.seen + words.counts.sum()  # left on its device: nobody waits for it here
        return words


class Objective(ABC):
    """A part of the loss, with its data."""

    @abstractmethod
    def losses(self, student: Student, rng: np.random.Generator) -> Mapping[str, torch.Tensor]:
        """Return weighted losses by name, of a batch drawn with `rng`."""

    def skip(self, steps: int) -> None:  # noqa: B027 - most batches are drawn: nothing to skip
        """Skip the data of `steps` steps, where it is read in order."""

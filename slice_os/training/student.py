"""The model that learns."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from slice_os.exporters.checkpoint import Checkpoint
from slice_os.exporters.pooled import PooledModel, WordVectors


class Student(PooledModel):
    """A checkpoint's model that an optimiser trains.

    Attributes:
        seen: How many words were encoded in context, for whoever measures the pace.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Take the model of `checkpoint`, without dropout: a student must agree with itself."""
        super().__init__(checkpoint)
        self.seen: int | torch.Tensor = 0
        for module in self.model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0

    def words(self, texts: Sequence[str]) -> WordVectors:
        """Return the word vectors of `texts` in their context, run as one batch."""
        found = super().words(texts)
        self.seen = self.seen + found.counts.sum()  # left on its device: nobody waits for it here
        return found

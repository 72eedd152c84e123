"""Sentences as bags of words: their means, the components of these, and learning from a teacher."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from slice_os.errors import TrainingError
from slice_os.lab.train.contexts import Contexts
from slice_os.lab.train.losses import row_loss
from slice_os.lab.train.recipe import Static
from slice_os.types import Float32

CLIP = 5.0
"""The norm to which gradients are clipped."""


class Bags:
    """The sentences as bags of words."""

    def __init__(self, contexts: Contexts) -> None:
        """Take the known words of each sentence."""
        known = np.concatenate(([0], np.cumsum(contexts.ids >= 0)))
        self._bounds = torch.from_numpy(known[contexts.bounds])
        self._ids = torch.from_numpy(contexts.ids[contexts.ids >= 0])

    def __len__(self) -> int:
        return len(self._bounds) - 1

    def means(self, table: Tensor, rows: Any) -> Tensor:
        """Return the means of the vectors of the words of some sentences, ``[n, d]``."""
        rows = torch.as_tensor(rows)
        starts, sizes = self._bounds[rows], self.sizes(rows)
        offsets = torch.cumsum(sizes, 0) - sizes
        places = torch.arange(int(sizes.sum())) + torch.repeat_interleave(starts - offsets, sizes)
        return functional.embedding_bag(self._ids[places], table, offsets, mode="mean")

    def sizes(self, rows: Any) -> Tensor:
        """Return how many words some sentences have, int64 ``[n]``."""
        rows = torch.as_tensor(rows)
        return self._bounds[rows + 1] - self._bounds[rows]


def components(sample: Float32, vectors: Float32, dropped: int, kept: int) -> Float32:
    """Return `vectors`, less the mean of `sample`, in its principal components.

    Wada et al. (2025), section 2.2: the first `dropped` components, of which all sentences have
    some, are left out, and the `kept` next ones taken.

    Args:
        sample: float32 ``[n, d]``, whose principal components these are.
        vectors: float32 ``[V, d]``.
        dropped: How many of the first are left out.
        kept: How many are taken.
    """
    middle = sample.mean(axis=0, dtype=np.float64)
    centred = sample - middle
    axes = np.linalg.eigh(centred.T @ centred)[1][:, ::-1]
    # An eigenvector has no sign: the largest component is made positive.
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(len(axes))])
    found: Float32 = ((vectors - middle) @ axes[:, dropped : dropped + kept]).astype(np.float32)
    return found


class Distillation:
    """A table of word vectors that learns the similarities of a teacher's sentence vectors.

    Wada et al. (2025), section 2.3.

    Attributes:
        step: How often the table was changed.
        waited: Validations since the one of the lowest loss.
        best: The table of that validation, float32 ``[V, d]``.
        whole: Whether table, optimiser and step belong together.
    """

    def __init__(
        self, wanted: Static, bags: Bags, start: Tensor, sentences: Tensor, seed: int
    ) -> None:
        """Take the table to begin with and the sentences' unit vectors by the teacher, ``[S, d]``.

        Raises:
            TrainingError: There are too few sentences.
        """
        self._wanted, self._bags, self._sentences, self._seed = wanted, bags, sentences, seed
        self._held = min(wanted.validation, len(bags) // 10)
        if self._held < 3 or len(bags) - self._held < wanted.batch:
            raise TrainingError(
                f"{len(bags)} different sentences are too few for batches of {wanted.batch}, a "
                "tenth of them held out: give more text."
            )
        self._table = torch.nn.Parameter(start.clone())
        self._adam = torch.optim.Adam([self._table], lr=wanted.learning_rate, fused=True)
        self.step = self.waited = 0
        self.best, self.whole = start, True
        self._lowest = self._validate()

    def learn(self) -> tuple[dict[str, float], int]:
        """Take a step; return the losses, and how many words were seen.

        Raises:
            TrainingError: The loss is not a number.
        """
        rng = np.random.default_rng([self._seed, self.step])
        count = len(self._bags) - self._held
        rows = torch.from_numpy(rng.choice(count, self._wanted.batch, replace=False, shuffle=False))
        rows = rows + self._held
        loss = self._loss(rows)
        if not torch.isfinite(loss):
            raise TrainingError(
                f"The loss is not a number at step {self.step + 1}: begin again in another "
                "folder, with a lower learning_rate in [static]."
            )
        self.whole = False
        self._adam.zero_grad()
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_([self._table], CLIP)
        self._adam.step()
        self.step += 1
        if self.step % self._wanted.every == 0:
            found = self._validate()
            self.waited += 1
            if found < self._lowest:
                self._lowest, self.waited = found, 0
                self.best = self._table.detach().clone()
        self.whole = True
        losses = {"distillation": loss.item(), "validation": self._lowest}
        return losses, int(self._bags.sizes(rows).sum())

    def state(self) -> dict[str, Any]:
        """Return what `restore` takes."""
        return {
            "step": self.step,
            "waited": self.waited,
            "lowest": self._lowest,
            "best": self.best,
            "table": self._table.detach(),
            "adam": self._adam.state_dict(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.step, self.waited = state["step"], state["waited"]
        self._lowest, self.best = state["lowest"], state["best"]
        with torch.no_grad():
            self._table.copy_(state["table"])
        self._adam.load_state_dict(state["adam"])

    def _validate(self) -> float:
        """Return the mean loss of the sentences held out."""
        with torch.no_grad():
            ends = range(self._wanted.batch, self._held + 1, self._wanted.batch) or [self._held]
            losses = [self._loss(torch.arange(end - ends[0], end)) for end in ends]
        return float(torch.stack(losses).mean())

    def _loss(self, rows: Tensor) -> Tensor:
        student = functional.normalize(self._bags.means(self._table, rows), dim=1)
        teacher = self._sentences[rows].float()
        return row_loss(student @ student.T, teacher @ teacher.T, self._wanted.temperature)

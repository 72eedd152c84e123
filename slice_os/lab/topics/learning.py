"""The topic matrix, learnt from passages' vectors: the model of Wang et al. (2021), section 6.1.

A passage's vector x is taken apart into topics and put together again: p = softmax(s x R^T) and
r = p R, with R ``[K, d]``, a row a topic. Over the passages of a batch, each with a few random
others z, the loss is the mean of sum_z max(0, 1 - r.x + r.z), plus w |R R^T - I|^2, which keeps
rows apart.

Three things are not as published, and can be: vectors are centred, since all passages of a corpus
have something in common; they have length 1 and the softmax a scale s, where Phrase-BERT's are
longer; and rows begin as passages that lie apart (k-means++), since of random rows many stay
without a passage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from slice_os.errors import TrainingError
from slice_os.types import Float32


@dataclass(frozen=True, slots=True)
class Learning:
    """How topics are learnt.

    Attributes:
        k: How many topics.
        seed: Of the first rows, the batches and the negatives.
        epochs: How often each passage is seen.
        batch: Passages a step.
        negatives: Random other passages that each is compared with.
        learning_rate: Adam's.
        orthogonality: The weight w.
        scale: The s within the softmax.
        centred: Whether the mean of all passages is taken out of every vector.
        apart: Whether rows begin as passages that lie apart, else as random directions.
    """

    k: int = 50
    seed: int = 42
    epochs: int = 20
    batch: int = 100
    negatives: int = 5
    learning_rate: float = 1e-3
    orthogonality: float = 1e-3
    scale: float = 10.0
    centred: bool = True
    apart: bool = True


class TopicMatrix:
    """The rows of the topics, and how they are learnt.

    Attributes:
        epoch: How many epochs are done.
    """

    def __init__(self, wanted: Learning, vectors: Float32) -> None:
        """Take the passages' vectors, float32 ``[n, d]``, of length 1 or 0."""
        different = len(np.unique(vectors.round(4), axis=0)) if len(vectors) else 0
        if different < 2:
            raise TrainingError(
                f"There are {different} different passages, and topics are what tells passages "
                "apart: give more text."
            )
        if different < 2 * wanted.k:
            raise TrainingError(
                f"{different} different passages are too few for {wanted.k} topics: give more "
                f"text, or -k {max(different // 2, 1)} or less."
            )
        self._wanted = wanted
        self._mean = vectors.mean(axis=0) if wanted.centred else np.zeros_like(vectors[0])
        self._vectors = torch.from_numpy(self.prepared(vectors))
        self._rows = torch.nn.Parameter(torch.from_numpy(self._first_rows()))
        self._adam = torch.optim.Adam([self._rows], lr=wanted.learning_rate)
        self.epoch = 0

    def prepared(self, vectors: Float32) -> Float32:
        """Return vectors ``[n, d]`` of the same encoder as `rows` are to be compared with them."""
        moved: Float32 = vectors - self._mean
        norms = np.linalg.norm(moved, axis=1, keepdims=True)
        unit: Float32 = np.divide(moved, norms, out=np.zeros_like(moved), where=norms > 1e-6)
        return unit

    @property
    def apart(self) -> bool:
        """Whether rows began as passages that lie apart."""
        return self._wanted.apart

    @property
    def rows(self) -> Float32:
        """R, float32 ``[K, d]``."""
        rows: Float32 = self._rows.detach().numpy().copy()
        return rows

    def cosines(self, vectors: Float32) -> Float32:
        """Return the cosines of vectors ``[n, d]`` of that encoder with the rows: ``[n, K]``."""
        norms = np.maximum(np.linalg.norm(self.rows, axis=1, keepdims=True), 1e-9)
        cosines: Float32 = self.prepared(vectors) @ (self.rows / norms).T
        return cosines

    def shares(self) -> Float32:
        """Return how far each passage is of each topic, p: float32 ``[n, K]``, rows of sum 1."""
        with torch.no_grad():
            shares: Float32 = self._softmax(self._vectors).numpy()
        return shares

    def learn(self, progress: Callable[[int], object]) -> None:
        """See every passage once more; `progress` is told of all passages seen so far."""
        wanted, count = self._wanted, len(self._vectors)
        rng = np.random.default_rng([wanted.seed, self.epoch])
        order = rng.permutation(count)
        for start in range(0, count, wanted.batch):
            batch = self._vectors[order[start : start + wanted.batch]]
            others = self._vectors[rng.integers(0, count, (len(batch), wanted.negatives))]
            loss = self._loss(batch, others)
            if not torch.isfinite(loss):
                raise TrainingError("The loss is not a number: give a lower learning rate.")
            self._adam.zero_grad()
            torch.autograd.backward(loss)
            self._adam.step()
            progress(self.epoch * count + start + len(batch))
        self.epoch += 1

    def state(self) -> dict[str, Any]:
        """Return what `restore` takes, once an epoch is done."""
        return {
            "wanted": asdict(self._wanted),
            "epoch": self.epoch,
            "rows": self._rows.detach(),
            "adam": self._adam.state_dict(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state, unless it is of other settings."""
        if state["wanted"] == asdict(self._wanted):
            self.epoch = state["epoch"]
            with torch.no_grad():
                self._rows.copy_(state["rows"])
            self._adam.load_state_dict(state["adam"])

    def _softmax(self, vectors: torch.Tensor) -> torch.Tensor:
        return functional.softmax(self._wanted.scale * vectors @ self._rows.T, dim=1)

    def _loss(self, batch: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
        again = self._softmax(batch) @ self._rows
        own = (again * batch).sum(dim=1, keepdim=True)
        hinges = functional.relu(1 - own + torch.einsum("nd,nmd->nm", again, others))
        gram = self._rows @ self._rows.T
        apart = ((gram - torch.eye(len(gram))) ** 2).sum()
        return hinges.sum(dim=1).mean() + self._wanted.orthogonality * apart

    def _first_rows(self) -> Float32:
        """Return random directions, or passages that lie apart (Arthur and Vassilvitskii, 2007)."""
        rng = np.random.default_rng(self._wanted.seed)
        vectors = self._vectors.numpy()
        if not self._wanted.apart:
            drawn: Float32 = rng.standard_normal((self._wanted.k, vectors.shape[1]), np.float32)
            drawn /= np.float32(vectors.shape[1] ** 0.5)
            return drawn
        chosen = [int(rng.integers(len(vectors)))]
        nearest = np.full(len(vectors), np.inf)
        while len(chosen) < self._wanted.k:
            distances = 2 - 2 * (vectors @ vectors[chosen[-1]]).astype(np.float64)
            nearest = np.minimum(nearest, np.maximum(distances, 0))
            nearest[chosen[-1]] = 0
            chosen.append(int(rng.choice(len(vectors), p=nearest / nearest.sum())))
        rows: Float32 = vectors[chosen]
        return rows

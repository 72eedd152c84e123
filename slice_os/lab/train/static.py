"""Making a static encoder: components and distillation (Wada et al., 2025)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from slice_os.encoders import Encoder, EncoderInfo, load_encoder
from slice_os.errors import TrainingError
from slice_os.exporters.graph import write_static
from slice_os.lab.evaluate.significance import correlate
from slice_os.lab.train.contexts import Contexts, Extraction, read_contexts
from slice_os.lab.train.losses import row_loss
from slice_os.lab.train.recipe import Recipe, Static, folder_of
from slice_os.lab.train.run import BEST, EXTRACTED, RunFolder, TrainingProgress, TrainingReport
from slice_os.lab.train.sampling import ScoredPair, read_pairs
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
    some, are left out, and the `kept` next ones taken. `sample` is float32 ``[n, d]``, `vectors`
    ``[V, d]``.
    """
    middle = sample.mean(axis=0, dtype=np.float64)
    centred = sample - middle
    axes = np.linalg.eigh(centred.T @ centred)[1][:, ::-1]
    # An eigenvector has no sign: the largest component is made positive.
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(len(axes))])
    projected: Float32 = ((vectors - middle) @ axes[:, dropped : dropped + kept]).astype(np.float32)
    return projected


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
        """Take the first table and the sentences' unit vectors by the teacher, ``[S, d]``."""
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
        """Take a step; return the losses, and how many words were seen."""
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
            loss_held_out = self._validate()
            self.waited += 1
            if loss_held_out < self._lowest:
                self._lowest, self.waited = loss_held_out, 0
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


FREQUENT = 10_000
"""Words whose frequencies are compared with their vectors' norms (Wada et al., section 4)."""


class StaticRun:
    """The making of a static encoder, from its last saved state on."""

    def __init__(
        self,
        recipe: Recipe,
        wanted: Static,
        root: Path,
        run: RunFolder,
        device: str,
        progress: Callable[[TrainingProgress], None] | None,
    ) -> None:
        """Take a recipe and its table; `root` is what its paths are relative to."""
        self._recipe, self._wanted, self._root, self._run = recipe, wanted, root, run
        self._device = device
        self._progress = progress or (lambda progress: None)
        self._measures: dict[str, float] = {}
        self._pairs: list[ScoredPair] = []
        if recipe.development:
            self._pairs = read_pairs(root / recipe.development.pairs)[: recipe.development.rows]

    def run(self) -> TrainingReport:
        """Make what is not made yet."""
        state = self._run.load() or {}
        if not state.get("finished"):
            self._measures = dict(state.get("measures", {}))
            contexts = read_contexts(
                [self._root / text.path for text in self._recipe.text],
                self._wanted,
                self._recipe.seed,
            )
            bags = Bags(contexts)
            vectors, sentences = self._extract(contexts, state)
            table = self._project(contexts, bags, vectors)
            state = self._distil(contexts, bags, table, sentences)
        return TrainingReport(
            self._run.folder / BEST, state["step"], self._recipe.steps, state["measures"]
        )

    def _extract(self, contexts: Contexts, state: dict[str, Any]) -> tuple[Float32, Tensor]:
        """Return the words' vectors ``[V, d]`` and the sentences' ``[S, d]``."""
        extracted = self._run.load(EXTRACTED)
        if extracted is None:
            with load_encoder(folder_of(self._root, self._recipe.base), self._device) as teacher:
                extraction = Extraction(contexts, self._wanted.rare, teacher.info.dimension)
                self._check(len(contexts.texts), teacher.info.dimension)
                if "sums" in state:
                    extraction.restore(state)
                extraction.run(
                    teacher,
                    self._run.save,
                    lambda done, of, rate: self._progress(
                        TrainingProgress(done, of, {}, rate, {}, "text")
                    ),
                )
                vectors = extraction.vectors()
                self._measure("teacher", teacher)
            extracted = {"vectors": torch.from_numpy(vectors), "measures": self._measures}
            extracted["sentences"] = torch.from_numpy(extraction.sentences)
            self._run.save(extracted, EXTRACTED)
            self._run.save({})  # its sums are not needed any more
        self._measures |= extracted["measures"]
        return extracted["vectors"].numpy(), extracted["sentences"]

    def _check(self, sentences: int, dimension: int) -> None:
        dropped = _dropped(self._wanted, dimension)
        if dropped + self._wanted.dimension > dimension:
            raise TrainingError(
                f"The base has {dimension} dimensions, of which {self._wanted.dimension} after the "
                f"first {dropped} cannot be kept: lower dimension in [static]."
            )
        if sentences <= dimension:
            raise TrainingError(
                f"The recipe's texts give {sentences} different sentences, too few for the "
                f"principal components of {dimension} dimensions: give more text."
            )

    def _project(self, contexts: Contexts, bags: Bags, vectors: Float32) -> Float32:
        """Return the words' components, float32 ``[V, dimension]``; measure those not taken too."""
        wanted = self._wanted
        dropped = _dropped(wanted, vectors.shape[1])
        rows = range(min(wanted.components, len(bags)))
        means = bags.means(torch.from_numpy(vectors), rows).numpy()
        table = components(means, vectors, dropped, wanted.dimension)
        if "components" not in self._measures:
            self._measure_table("extracted", contexts, vectors)
            others = {
                "first components kept": components(means, vectors, 0, wanted.dimension),
                "components of words": components(vectors, vectors, dropped, wanted.dimension),
            }
            for name, other in (*others.items(), ("components", table)):
                self._measure_table(name, contexts, other)
        return table

    def _distil(
        self, contexts: Contexts, bags: Bags, start: Float32, sentences: Tensor
    ) -> dict[str, Any]:
        """Learn the teacher's similarities, write the encoder and return the last state."""
        wanted, recipe = self._wanted, self._recipe
        distillation = Distillation(wanted, bags, torch.from_numpy(start), sentences, recipe.seed)
        state = self._run.load()
        if state and "table" in state:
            distillation.restore(state)
        begun, words = time.monotonic(), 0
        try:
            while distillation.step < recipe.steps and distillation.waited < wanted.patience:
                losses, seen = distillation.learn()
                words += seen
                step = distillation.step
                if step % recipe.save_every == 0:
                    self._run.save(distillation.state() | {"measures": self._measures})
                if step % wanted.every == 0:
                    self._run.log({"step": step, "losses": losses, "measures": self._measures})
                rate = words / max(time.monotonic() - begun, 1e-9)
                self._progress(TrainingProgress(step, recipe.steps, losses, rate, self._measures))
        except KeyboardInterrupt:
            if distillation.whole:
                self._run.save(distillation.state() | {"measures": self._measures})
            raise
        self._measure_table("distilled", contexts, distillation.best.numpy())
        best = self._run.keep(
            BEST, lambda folder: self._write(folder, contexts, distillation.best.numpy())
        )
        with load_encoder(best, "cpu") as encoder:
            self._measure("int8", encoder)
        self._measures |= {"words": len(contexts.words), "sentences": len(contexts.texts)}
        self._run.log({"step": distillation.step, "losses": {}, "measures": self._measures})
        state = {"finished": True, "step": distillation.step, "measures": self._measures}
        self._run.save(state)
        return state

    def _write(
        self, folder: Path, contexts: Contexts, table: Float32, precision: str = "int8"
    ) -> EncoderInfo:
        about = {
            "licence": self._recipe.licence,
            "training_data": ", ".join(text.path for text in self._recipe.text),
        }
        return write_static(
            folder, contexts.words, table, self._recipe.name, precision=precision, about=about
        )

    def _measure_table(self, name: str, contexts: Contexts, table: Float32) -> None:
        """Measure a table; log too how the frequency of the most frequent words goes with norms."""
        if self._pairs:
            with TemporaryDirectory() as folder:
                self._write(Path(folder), contexts, table, "fp32")
                with load_encoder(folder, "cpu") as encoder:
                    self._measure(name, encoder)
            norms = np.linalg.norm(table[:FREQUENT], axis=1)
            correlation = correlate(-np.arange(float(len(norms))), norms.tolist()).spearman
            self._run.log(
                {name: {"spearman": self._measures[name], "frequency and norm": correlation}}
            )

    def _measure(self, name: str, encoder: Encoder) -> None:
        """Note Spearman's correlation of the development pairs' cosines with their scores."""
        if self._pairs:
            self._measures[name] = round(spearman(encoder, self._pairs), 4)


def spearman(encoder: Encoder, pairs: Sequence[ScoredPair]) -> float:
    """Return Spearman's correlation of the cosines of pairs with their scores."""
    first = encoder.encode([pair.first for pair in pairs])
    second = encoder.encode([pair.second for pair in pairs])
    return correlate((first * second).sum(axis=1), [pair.likeness for pair in pairs]).spearman


def _dropped(wanted: Static, dimension: int) -> int:
    return dimension // 100 if wanted.dropped < 0 else wanted.dropped

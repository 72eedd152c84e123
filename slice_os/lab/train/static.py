"""Making a static encoder: contexts, extraction, components, distillation (Wada et al., 2025)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor

from slice_os.encoders import Encoder, EncoderInfo, load_encoder
from slice_os.errors import TrainingError
from slice_os.exporters.static import write_static
from slice_os.lab.evaluate.significance import correlate
from slice_os.lab.train.bags import Bags, Distillation, components
from slice_os.lab.train.contexts import Contexts, read_contexts
from slice_os.lab.train.extraction import Extraction
from slice_os.lab.train.loading import folder_of
from slice_os.lab.train.recipe import Recipe, Static
from slice_os.lab.train.run import BEST, EXTRACTED, RunFolder, TrainingProgress, TrainingReport
from slice_os.lab.train.sampling import ScoredPair, read_pairs
from slice_os.types import Float32

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
        """Make what is not made yet.

        Raises:
            TrainingError: The texts are too few, or the base has too few dimensions.
            EncoderError: The base is not usable.
        """
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
        found = self._run.load(EXTRACTED)
        if found is None:
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
            found = {"vectors": torch.from_numpy(vectors), "measures": self._measures}
            found["sentences"] = torch.from_numpy(extraction.sentences)
            self._run.save(found, EXTRACTED)
            self._run.save({})  # its sums are not needed any more
        self._measures |= found["measures"]
        return found["vectors"].numpy(), found["sentences"]

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
            found = correlate(-np.arange(float(len(norms))), norms.tolist()).spearman
            self._run.log({name: {"spearman": self._measures[name], "frequency and norm": found}})

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

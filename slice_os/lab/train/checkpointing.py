"""Checkpointing: averaged with the base's, weights are measured; the best and last are kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from slice_os.encoders.model_judge import Calibration
from slice_os.errors import TrainingError
from slice_os.exporters.checkpoint import Checkpoint
from slice_os.lab.train.development import DevelopmentSet
from slice_os.lab.train.judging import JudgeDevelopment
from slice_os.lab.train.recipe import Recipe
from slice_os.lab.train.run import BEST, LAST, RunFolder
from slice_os.lab.train.student import Student


class Checkpoints:
    """The checkpoints of a run.

    Attributes:
        score: Of the best weights so far.
        measures: Of the best weights so far, and their step.
    """

    def __init__(
        self,
        recipe: Recipe,
        run: RunFolder,
        base: Checkpoint,
        student: Student,
        development: DevelopmentSet | JudgeDevelopment | None,
        calibration: Calibration | None = None,
    ) -> None:
        """Prepare to measure `student`, which must still have the weights of `base`.

        A judge's `calibration` is kept beside its weights.
        """
        self.score = -np.inf
        self.measures: dict[str, float] = {}
        self._recipe = recipe
        self._run = run
        self._tokenizer = base.tokenizer
        self._tokenizer.model_max_length = base.max_tokens  # the export reads as much
        self._base_card = base.card
        self._student = student
        self._base = {name: value.clone() for name, value in student.model.state_dict().items()}
        self._development = development
        self._calibration = calibration

    def measure(self, step: int) -> None:
        """Measure the averaged weights and keep them if they are the best, or the last.

        The student has afterwards, and after an interrupt, what it learnt.

        Raises:
            TrainingError: A measure is not a number, or the disk is full.
        """
        model = self._student.model
        learned = {name: value.clone() for name, value in model.state_dict().items()}
        try:
            model.load_state_dict(_averaged(self._base, learned, self._recipe.average))
            model.eval()
            self._keep(step)
        finally:
            model.load_state_dict(learned)
            model.train()
            self._student.seen = 0

    def _keep(self, step: int) -> None:
        measures = self._development.measure(self._student) if self._development else {}
        score = measures.get("mean", float(step))
        if not np.isfinite(score):
            raise TrainingError(
                f"The measures are not numbers at step {step}: begin again in another folder, with "
                "a lower learning_rate."
            )
        if score > self.score:
            self._run.keep(BEST, lambda folder: self._write(folder, step))
            self.score, self.measures = score, {**measures, "step": step}
        if step == self._recipe.steps:
            self._run.keep(LAST, lambda folder: self._write(folder, step))

    def _write(self, folder: Path, step: int) -> None:
        self._student.model.save_pretrained(folder)
        self._tokenizer.save_pretrained(folder)
        if self._calibration:
            self._calibration.save(folder)
        (folder / "README.md").write_text(self._card(step), encoding="utf-8")

    def _card(self, step: int) -> str:
        recipe, base = self._recipe, self._base_card
        known = base.training_data.split(", ")
        front = {
            "license": recipe.licence or base.licence,
            "language": list(base.languages),
            "datasets": [*dict.fromkeys([*filter(None, known), *recipe.learnt_from()])],
        }
        lines = [f"{name}: {json.dumps(value)}" for name, value in front.items() if value]
        return "\n".join(
            [
                *("---", *lines, "---"),
                f"# {recipe.name}\n",
                f"Made by `slice-os train`, step {step} of {recipe.steps}; run.json beside "
                "this folder says from what.\n",
            ]
        )


def _averaged(
    base: Mapping[str, torch.Tensor], learned: Mapping[str, torch.Tensor], share: float
) -> dict[str, torch.Tensor]:
    return {
        name: torch.lerp(base[name], value, share) if value.is_floating_point() else value
        for name, value in learned.items()
    }

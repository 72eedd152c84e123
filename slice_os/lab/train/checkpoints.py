"""The development set, and the checkpoints of a run: weights are measured, the best kept."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch

from slice_os.encoders.judge import Calibration
from slice_os.errors import TrainingError
from slice_os.exporters.checkpoint import Checkpoint
from slice_os.exporters.pooled import CheckpointEncoder
from slice_os.lab.evaluate.scorers import Encoded, rescored, single_pass, target_alone, window
from slice_os.lab.evaluate.significance import correlate
from slice_os.lab.train.judging import JudgeDevelopment
from slice_os.lab.train.recipe import Recipe
from slice_os.lab.train.run import BEST, LAST, RunFolder
from slice_os.lab.train.sampling import FILLERS, ScoredPair, place, read_pairs
from slice_os.lab.train.student import Student

MEASURES = {
    "alone": target_alone,
    "single": single_pass,
    "window": window,
    "rescored": rescored,
}


TRIES = 200
"""Texts that are looked at for those that stand around one."""


class DevelopmentSet:
    """Pairs, and for each a passage that contains its second text among other pairs' sentences.

    The fillers of a passage come from the same file, unlike enough to both texts to say something
    else: words in common would let them pass for the text itself.
    """

    def __init__(
        self, path: Path, rows: int, seed: int = 0, fillers: tuple[int, int] = FILLERS
    ) -> None:
        """Read `path` and make the passages, each with `fillers` (from, to) other sentences."""
        rng = np.random.default_rng([seed, 1])
        pairs = read_pairs(path)
        if rows < 3 or len({pair.likeness for pair in pairs}) < 3:
            raise TrainingError(
                f"{path} is measured by correlation: give at least three pairs of different scores."
            )
        order = rng.permutation(len(pairs))[:rows]
        self.pairs: list[ScoredPair] = [pairs[k] for k in order]
        texts = sorted({text for pair in pairs for text in (pair.first, pair.second)})
        self.passages: list[str] = []
        for pair in self.pairs:
            others: list[str] = []
            count = rng.integers(fillers[0], fillers[1] + 1)
            tries = 0
            while len(others) < count:
                text = texts[rng.integers(len(texts))]
                tries += 1
                words = set(text.lower().split())
                shared = max(
                    len(words & set(own.lower().split())) for own in (pair.first, pair.second)
                )
                # Where all texts are made of the same words, any other text has to do.
                if len(texts) < 50 or tries > TRIES or shared <= len(words) / 2:
                    others.append(text)
            self.passages.append(place(rng, pair.second, others))

    def measure(self, student: Student) -> dict[str, float]:
        """Return Pearson correlations of the scorers with the likeness.

        `alone` is of the two texts; `single` of the first and the best span of any length of the
        passage; `window` of the best span within the query's length window; `rescored` of the best
        of that window's first spans encoded alone, as a search verifies; `mean`, of the last two,
        decides which step is the best.
        """
        encoded = Encoded(
            CheckpointEncoder(student),
            [pair.first for pair in self.pairs],
            self.passages,
            [pair.second for pair in self.pairs],
            lambda scorer, done, of: None,
        )
        gold = [pair.likeness for pair in self.pairs]
        measures = {
            name: correlate(scores(encoded), gold).pearson for name, scores in MEASURES.items()
        }
        measures["mean"] = (measures["rescored"] + measures["window"]) / 2
        return {name: round(value, 4) for name, value in measures.items()}


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
        """
        model = self._student.model
        learned = {name: value.clone() for name, value in model.state_dict().items()}
        try:
            averaged = {
                name: torch.lerp(self._base[name], value, self._recipe.average)
                if value.is_floating_point()
                else value
                for name, value in learned.items()
            }
            model.load_state_dict(averaged)
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
        lines = [f"{name}: {json.dumps(value)}\n" for name, value in front.items() if value]
        return (
            f"---\n{''.join(lines)}---\n# {recipe.name}\n\nMade by `slice-os train`, step {step} "
            f"of {recipe.steps}; run.json beside this folder says from what.\n"
        )

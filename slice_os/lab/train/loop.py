"""The training loop, which resumes a killed run at its last saved state."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator

from slice_os.encoders import Encoder, load_encoder
from slice_os.encoders.judge import Calibration
from slice_os.errors import TrainingError
from slice_os.exporters.checkpoint import load_checkpoint
from slice_os.exporters.pooled import PooledModel
from slice_os.lab.train.checkpoints import Checkpoints, DevelopmentSet
from slice_os.lab.train.judging import JudgeDevelopment, Judging
from slice_os.lab.train.objectives import (
    LabelledPairs,
    PhraseTriplets,
    RankingDistillation,
    SpanDistillation,
    Triples,
)
from slice_os.lab.train.recipe import Recipe, folder_of
from slice_os.lab.train.run import BEST, RunFolder, TrainingProgress, TrainingReport
from slice_os.lab.train.sampling import Passages, read_pairs
from slice_os.lab.train.student import Objective, Student


class Loop:
    """The steps of a run, from its last saved state on."""

    def __init__(
        self,
        recipe: Recipe,
        root: Path,
        run: RunFolder,
        accelerator: Accelerator,
        progress: Callable[[TrainingProgress], None] | None,
    ) -> None:
        """Load the base, the objectives and, if there is one, the state to resume from."""
        self._recipe = recipe
        self._run = run
        self._accelerator = accelerator
        self._progress = progress
        torch.manual_seed(recipe.seed)
        checkpoint = load_checkpoint(folder_of(root, recipe.base))
        self._student = Student(checkpoint)
        self._student.model.to(accelerator.device).train()
        if recipe.judge:
            # A word that no row holds is to go on standing beside those like it that rows hold.
            self._student.model.get_input_embeddings().requires_grad_(False)
        # Gradients are averaged once a step, below: a wrapped model would want one forward pass a
        # backward pass, and the objectives take several.
        self._optimizer = accelerator.prepare_optimizer(
            torch.optim.AdamW(
                self._student.model.parameters(),
                lr=recipe.learning_rate,
                weight_decay=recipe.weight_decay,
            )
        )
        self._objectives = objectives_of(
            recipe,
            root,
            str(accelerator.device),
            accelerator.process_index,
            accelerator.num_processes,
        )
        self._checkpoints = Checkpoints(
            recipe,
            run,
            checkpoint,
            self._student,
            _development(recipe, root),
            Calibration() if recipe.judge else None,
        )
        self._step = 0
        self._unmeasured = False  # whether this step is to be measured and was not yet
        self._unsaved = False  # whether the weights are to be saved once they gave a loss
        self._whole = True  # whether weights, optimizer and step belong together
        self._restore()

    def run(self) -> TrainingReport:
        """Run the remaining steps."""
        recipe = self._recipe
        begun, words = time.monotonic(), 0
        try:
            self._measure()
            while self._step < recipe.steps:
                losses = self._learn()
                words += losses.pop("words", 0)
                self._measure()
                if self._step == recipe.steps:
                    self._save()
                if not self._accelerator.is_main_process:
                    continue
                step, measures = self._step, self._checkpoints.measures
                self._run.log({"step": step, "losses": losses, "measures": measures})
                if self._progress:
                    rate = words / max(time.monotonic() - begun, 1e-9)
                    self._progress(TrainingProgress(step, recipe.steps, losses, rate, measures))
        except KeyboardInterrupt:
            if self._whole:
                self._save()
            raise
        return TrainingReport(
            self._run.folder / BEST, self._step, recipe.steps, dict(self._checkpoints.measures)
        )

    def _learn(self) -> dict[str, Any]:
        """Take a step; return its losses."""
        recipe, accelerator = self._recipe, self._accelerator
        for group in self._optimizer.param_groups:
            group["lr"] = recipe.learning_rate * _schedule(self._step, recipe)
        by_name: dict[str, float] = {}
        for part in range(recipe.accumulate):
            # Two processes see what one that accumulates two batches sees.
            batch = part * accelerator.num_processes + accelerator.process_index
            rng = np.random.default_rng([recipe.seed, self._step, batch])
            for objective in self._objectives:
                with accelerator.autocast():
                    losses = objective.losses(self._student, rng)
                total = torch.stack([*losses.values()]).sum()
                accelerator.backward(total / recipe.accumulate)
                for name, loss in losses.items():
                    by_name[name] = by_name.get(name, 0.0) + loss.item() / recipe.accumulate
        by_name = self._shared(by_name)
        norm = accelerator.clip_grad_norm_(self._student.model.parameters(), 1.0)
        # A scaler leaves out steps whose gradients overflow, and tries a smaller scale.
        finite = accelerator.scaler is not None or bool(torch.isfinite(norm))
        if not finite or not np.isfinite(sum(by_name.values())):
            raise TrainingError(
                f"The loss is not a number at step {self._step + 1}: begin again in another "
                "folder, with a lower learning_rate or the precision fp32."
            )
        if self._unsaved:
            self._save()
        self._whole = False
        self._optimizer.step()
        self._optimizer.zero_grad()
        self._step += 1
        every = recipe.development.every if recipe.development else recipe.steps
        self._unmeasured = self._due(every)
        self._unsaved = self._due(recipe.save_every)
        self._whole = True
        by_name["words"] = int(self._student.seen) * accelerator.num_processes
        self._student.seen = 0
        return by_name

    def _due(self, every: int) -> bool:
        return self._step == self._recipe.steps or self._step % every == 0

    def _shared(self, found: dict[str, float]) -> dict[str, float]:
        """Average gradients and losses over the processes."""
        accelerator = self._accelerator
        if accelerator.num_processes == 1:
            return found
        for parameter in self._student.model.parameters():
            if parameter.grad is not None:
                parameter.grad = accelerator.reduce(parameter.grad, "mean")
        losses = accelerator.reduce(torch.tensor([*found.values()]).to(accelerator.device), "mean")
        return dict(zip(found, losses.tolist(), strict=True))

    def _measure(self) -> None:
        """Measure the weights, if that is due."""
        if self._unmeasured and self._accelerator.is_main_process:
            self._checkpoints.measure(self._step)
            self._unmeasured = False

    def _save(self) -> None:
        self._unsaved = False
        if not self._accelerator.is_main_process:
            return
        model = self._student.model
        scaler = self._accelerator.scaler
        self._run.save(
            {
                "step": self._step,
                "best": float(self._checkpoints.score),
                "measures": self._checkpoints.measures,
                "unmeasured": self._unmeasured,
                "model": model.state_dict(),
                "optimizer": self._optimizer.state_dict(),
                "scaler": scaler.state_dict() if scaler else None,
            }
        )

    def _restore(self) -> None:
        state = self._run.load()
        if state is None:
            return
        self._step, self._unmeasured = state["step"], state.get("unmeasured", False)
        self._checkpoints.score, self._checkpoints.measures = state["best"], state["measures"]
        self._student.model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])
        if self._accelerator.scaler and state["scaler"]:
            self._accelerator.scaler.load_state_dict(state["scaler"])
        for objective in self._objectives:
            objective.skip(self._step * self._recipe.accumulate)


def objectives_of(
    recipe: Recipe, root: Path, device: str, process: int = 0, processes: int = 1
) -> Sequence[Objective]:
    """Return the objectives of `recipe`, whose paths are relative to `root`, for one process."""
    passages = Passages(
        [(root / text.path, text.weight) for text in recipe.text], recipe.passage_words
    )
    objectives: list[Objective] = []
    wanted = recipe.distillation
    second = [_teacher(root, name, device) for name in wanted.second] if wanted else []
    ranking = None
    if recipe.ranking:
        folder = folder_of(root, recipe.ranking.teacher or recipe.base)
        ranker = PooledModel(load_checkpoint(folder))
        ranker.model.to(device)
        ranking = RankingDistillation(recipe.ranking, passages, ranker, second[:1])
    if wanted:
        teacher = _teacher(root, wanted.teacher or recipe.base, device)
        objectives.append(SpanDistillation(wanted, passages, teacher, second, ranking))
    elif ranking:
        objectives.append(ranking)
    if recipe.slice:
        path = root / recipe.slice.triples
        objectives.append(Triples(recipe.slice, path, process, processes))
    if recipe.triplets:
        objectives.append(PhraseTriplets(recipe.triplets, root, process, processes))
    if recipe.judge:
        objectives.append(Judging(recipe.judge, root))
    for pairs in recipe.pairs:
        rows = read_pairs(root / pairs.path, pairs.most)
        objectives.append(LabelledPairs(pairs, rows, passages))
    return objectives


def _teacher(root: Path, name: str, device: str) -> Encoder:
    """Load any kind of encoder, on the GPU unless the training runs on the CPU."""
    return load_encoder(folder_of(root, name), "cpu" if device == "cpu" else "auto")


def _development(recipe: Recipe, root: Path) -> DevelopmentSet | JudgeDevelopment | None:
    wanted = recipe.development
    if not wanted:
        return None
    if not recipe.judge:
        return DevelopmentSet(root / wanted.pairs, wanted.rows, recipe.seed)
    opposites = root / wanted.opposites if wanted.opposites else None
    return JudgeDevelopment(root / wanted.pairs, opposites, wanted.rows)


def _schedule(step: int, recipe: Recipe) -> float:
    """Return the share of the learning rate at a step: linear warm-up, then linear decay."""
    warm = max(1, round(recipe.warmup * recipe.steps))
    if step < warm:
        return (step + 1) / warm
    return (recipe.steps - step) / max(1, recipe.steps - warm)

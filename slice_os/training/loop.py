"""The loop: steps, measures, checkpoints; it goes on where a killed run left off."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from slice_os.errors import MissingExtraError, TrainingError
from slice_os.exporters.checkpoint import load_checkpoint
from slice_os.training.development import DevelopmentSet
from slice_os.training.progress import Progress, TrainingReport
from slice_os.training.recipe import Recipe
from slice_os.training.run import BEST, LAST, Run
from slice_os.training.student import Student

try:
    import torch
    from accelerate import Accelerator
except ImportError as exc:
    raise MissingExtraError("Training an encoder", "train") from exc

from slice_os.training.objectives import folder_of, objectives_of


class Loop:
    """A run's steps, from its last state."""

    def __init__(
        self,
        recipe: Recipe,
        root: Path,
        run: Run,
        accelerator: Accelerator,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        """Load the base, the objectives and, if there is one, the state to go on from.

        Raises:
            TrainingError: The data or the state is not usable.
            ExportError: The base is not a usable checkpoint.
        """
        self._recipe = recipe
        self._run = run
        self._accelerator = accelerator
        self._progress = progress
        torch.manual_seed(recipe.seed)
        checkpoint = load_checkpoint(folder_of(root, recipe.base))
        self._tokenizer = checkpoint.tokenizer
        self._tokenizer.model_max_length = checkpoint.max_tokens  # the export reads as much
        self._base_card = checkpoint.card
        self._student = Student(checkpoint)
        self._base = {
            name: value.clone() for name, value in self._student.model.state_dict().items()
        }
        self._student.model.to(accelerator.device).train()
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
        development = recipe.development
        self._development = development and DevelopmentSet(
            root / development.pairs, development.rows, recipe.seed
        )
        self._step = 0
        self._best = -np.inf
        self._measures: dict[str, float] = {}
        self._restore()

    def run(self) -> TrainingReport:
        """Run what is left of the steps."""
        recipe = self._recipe
        begun, words = time.monotonic(), 0
        try:
            while self._step < recipe.steps:
                losses = self._learn()
                self._step += 1
                words += losses.pop("words", 0)
                last = self._step == recipe.steps
                every = recipe.development.every if recipe.development else recipe.steps
                if last or self._step % every == 0:
                    self._measure()
                if last or self._step % recipe.save_every == 0:
                    self._save()
                rate = words / max(time.monotonic() - begun, 1e-9)
                if self._accelerator.is_main_process:
                    self._run.log(
                        {"step": self._step, "losses": losses, "measures": self._measures}
                    )
                    if self._progress:
                        self._progress(
                            Progress(self._step, recipe.steps, losses, rate, self._measures)
                        )
        except KeyboardInterrupt:
            self._save()
            raise
        return TrainingReport(
            self._run.folder / BEST, self._step, recipe.steps, dict(self._measures)
        )

    def _learn(self) -> dict[str, Any]:
        """Take a step; return its losses."""
        recipe, accelerator = self._recipe, self._accelerator
        for group in self._optimizer.param_groups:
            group["lr"] = recipe.learning_rate * _schedule(self._step, recipe)
        found: dict[str, float] = {}
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
                    found[name] = found.get(name, 0.0) + loss.item() / recipe.accumulate
        found = self._shared(found)
        accelerator.clip_grad_norm_(self._student.model.parameters(), 1.0)
        if not np.isfinite(sum(found.values())):
            self._optimizer.zero_grad()
            raise TrainingError(
                f"The loss is not a number at step {self._step + 1}: lower learning_rate, or use "
                "the precision fp32; the last state is kept."
            )
        self._optimizer.step()
        self._optimizer.zero_grad()
        found["words"] = int(self._student.seen) * accelerator.num_processes
        self._student.seen = 0
        return found

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
        """Measure the averaged weights, and keep them if they are the best."""
        if not self._accelerator.is_main_process:
            return
        model = self._student.model
        learned = {name: value.clone() for name, value in model.state_dict().items()}
        share = self._recipe.average
        model.load_state_dict(_averaged(self._base, learned, share))
        model.eval()
        measures = self._development.measure(self._student) if self._development else {}
        score = measures.get("mean", float(self._step))
        if not np.isfinite(score):
            raise TrainingError("The measures are not numbers: lower learning_rate.")
        if score > self._best:
            self._best = score
            self._measures = {**measures, "step": self._step}
            self._run.keep(BEST, model, self._tokenizer, self._card())
        if self._step == self._recipe.steps:
            self._run.keep(LAST, model, self._tokenizer, self._card())
        model.load_state_dict(learned)
        model.train()

    def _save(self) -> None:
        if not self._accelerator.is_main_process:
            return
        model = self._student.model
        scaler = self._accelerator.scaler
        self._run.save(
            {
                "step": self._step,
                "best": float(self._best),
                "measures": self._measures,
                "model": model.state_dict(),
                "optimizer": self._optimizer.state_dict(),
                "scaler": scaler.state_dict() if scaler else None,
            }
        )

    def _restore(self) -> None:
        state = self._run.load()
        if state is None:
            return
        self._step, self._best = state["step"], state["best"]
        self._measures = state["measures"]
        self._student.model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])
        if self._accelerator.scaler and state["scaler"]:
            self._accelerator.scaler.load_state_dict(state["scaler"])
        for objective in self._objectives:
            objective.skip(self._step * self._recipe.accumulate)

    def _card(self) -> str:
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
                f"Made by `slice-os train`, step {self._step} of {recipe.steps}; run.json beside "
                "this folder says from what.\n",
            ]
        )


def _schedule(step: int, recipe: Recipe) -> float:
    """Return the share of the learning rate at a step: linear warm-up, then linear decay."""
    warm = max(1, round(recipe.warmup * recipe.steps))
    if step < warm:
        return (step + 1) / warm
    return (recipe.steps - step) / max(1, recipe.steps - warm)


def _averaged(
    base: Mapping[str, torch.Tensor], learned: Mapping[str, torch.Tensor], share: float
) -> dict[str, torch.Tensor]:
    return {
        name: torch.lerp(base[name].to(value), value, share) if value.is_floating_point() else value
        for name, value in learned.items()
    }

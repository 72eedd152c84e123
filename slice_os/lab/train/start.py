"""Starting or resuming the training that a recipe describes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from slice_os.errors import TrainingError, needs
from slice_os.exporters.checkpoint import quiet
from slice_os.lab.train.run import RunFolder, TrainingProgress, TrainingReport, data_hash

if TYPE_CHECKING:
    from accelerate import Accelerator


def train(
    recipe: str | Path,
    output: str | Path,
    *,
    data: str | Path | None = None,
    device: str = "auto",
    progress: Callable[[TrainingProgress], None] | None = None,
) -> TrainingReport:
    """Train an encoder as `recipe` says and return where its best checkpoint is.

    A killed run resumes at its last saved state with the batches that it would have had.

    Args:
        recipe: The TOML file, see docs/training.md.
        output: The run's folder: ``best`` in it is the checkpoint to export.
        data: The folder that the recipe's paths are relative to; the recipe's own if None.
        device: "cpu", "cuda", or "auto": a GPU where there is one.
        progress: Called after every step.

    Raises:
        TrainingError: The recipe, its data or the run's folder is not usable, or the loss is not a
            number.
        ExportError: The base is not a usable checkpoint.
        MissingExtraError: torch, transformers or accelerate is not installed.
    """
    with needs("Training an encoder", "train"):
        import accelerate  # noqa: F401
        import msgspec
        import torch
    from slice_os.lab.train.loop import Loop
    from slice_os.lab.train.recipe import folder_of, read_recipe
    from slice_os.lab.train.static import StaticRun

    wanted = read_recipe(recipe)
    root = Path(data) if data is not None else Path(recipe).parent
    if device not in ("auto", "cpu", "cuda"):
        raise TrainingError(f"There is no device {device!r}: use auto, cpu or cuda.")
    if device == "cuda" and not torch.cuda.is_available():
        raise TrainingError(
            "torch sees no GPU here",
            hint="use --device cpu, or install torch for CUDA.",
        )
    models = {name: folder_of(root, name) for name in wanted.models()}
    for path in (*(root / name for name in wanted.paths()), *models.values()):
        if not path.exists():
            raise TrainingError(
                f"{path} does not exist, which the recipe {recipe} names",
                hint="correct the path, or give its folder with --data.",
            )
    about = {
        "recipe": msgspec.to_builtins(wanted),
        "data": {name: data_hash(root / name) for name in wanted.paths()},
        "models": {name: data_hash(path) for name, path in models.items()},
    }
    with quiet():
        accelerator = _accelerator(device, wanted.precision)
        about["processes"] = accelerator.num_processes
        with accelerator.main_process_first():
            run = RunFolder(Path(output), about)
        if wanted.static:
            if accelerator.num_processes > 1:
                raise TrainingError("A static encoder is made by one process: start it alone.")
            on = "cpu" if accelerator.device.type == "cpu" else "auto"
            return StaticRun(wanted, wanted.static, root, run, on, progress).run()
        return Loop(wanted, root, run, accelerator, progress).run()


def _accelerator(device: str, precision: str) -> Accelerator:
    import torch
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState

    on_gpu = device != "cpu" and torch.cuda.is_available()
    if precision == "auto":
        precision = "bf16" if on_gpu else "fp32"
    if precision == "fp16" and not on_gpu:
        raise TrainingError("The precision fp16 needs a GPU: use auto, bf16 or fp32.")
    AcceleratorState._reset_state()  # a run before this one may have had another precision
    return Accelerator(cpu=not on_gpu, mixed_precision="no" if precision == "fp32" else precision)

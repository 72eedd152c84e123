"""Starting or resuming the training that a recipe describes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from slice_os.encoders import Encoder, load_encoder
from slice_os.errors import TrainingError, needs
from slice_os.exporters.checkpoint import load_checkpoint, quiet
from slice_os.exporters.pooled import PooledModel
from slice_os.lab.train.distillation import RankingDistillation, SpanDistillation
from slice_os.lab.train.judging import Judging
from slice_os.lab.train.labelled import LabelledPairs, PhraseTriplets, Triples
from slice_os.lab.train.recipe import Recipe
from slice_os.lab.train.run import RunFolder, TrainingProgress, TrainingReport, data_hash
from slice_os.lab.train.sampling import Passages, read_pairs
from slice_os.lab.train.student import Objective

if TYPE_CHECKING:
    from accelerate import Accelerator


PACKAGED = "package:"


def objectives_of(
    recipe: Recipe, root: Path, device: str, process: int = 0, processes: int = 1
) -> Sequence[Objective]:
    """Return the objectives of `recipe`.

    Args:
        recipe: What is wanted.
        root: What its paths are relative to.
        device: Where teachers run.
        process: Which of the processes that train together this is.
        processes: How many there are.
    """
    passages = Passages(
        [(root / text.path, text.weight) for text in recipe.text], recipe.passage_words
    )
    objectives: list[Objective] = []
    wanted = recipe.distillation
    second = None
    if wanted and wanted.second:
        second = _teacher(root, wanted.second, device)
    ranking = None
    if recipe.ranking:
        folder = folder_of(root, recipe.ranking.teacher or recipe.base)
        ranker = PooledModel(load_checkpoint(folder))
        ranker.model.to(device)
        ranking = RankingDistillation(recipe.ranking, passages, ranker, second)
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
        judged = _teacher(root, recipe.judge.encoder, device)
        objectives.append(Judging(recipe.judge, root, judged))
    for pairs in recipe.pairs:
        rows = read_pairs(root / pairs.path, pairs.most)
        objectives.append(LabelledPairs(pairs, rows, passages))
    return objectives


def _teacher(root: Path, name: str, device: str) -> Encoder:
    """Load any kind of encoder, on the GPU unless the training runs on the CPU."""
    return load_encoder(folder_of(root, name), "cpu" if device == "cpu" else "auto")


def folder_of(root: Path, name: str) -> Path:
    """Return the folder that a recipe names; ``package:NAME/FOLDER`` is in an installed package."""
    if not name.startswith(PACKAGED):
        return root / name
    package, _, inner = name.removeprefix(PACKAGED).partition("/")
    spec = find_spec(package) if package.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        raise TrainingError(f"The recipe names {name}, but there is no such package: install it.")
    return Path(spec.submodule_search_locations[0]) / inner


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
    from slice_os.lab.train.recipe import read_recipe
    from slice_os.lab.train.start import folder_of
    from slice_os.lab.train.static import StaticRun

    wanted = read_recipe(recipe)
    root = Path(data) if data is not None else Path(recipe).parent
    if device not in ("auto", "cpu", "cuda"):
        raise TrainingError(f"There is no device {device!r}: use auto, cpu or cuda.")
    if device == "cuda" and not torch.cuda.is_available():
        raise TrainingError("torch sees no GPU here: use --device cpu, or install torch for CUDA.")
    models = {name: folder_of(root, name) for name in wanted.models()}
    for path in (*(root / name for name in wanted.paths()), *models.values()):
        if not path.exists():
            raise TrainingError(
                f"{path} does not exist, which the recipe {recipe} names: correct the path, "
                "or give its folder with --data."
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

"""From a recipe's tables to objectives, with their data read and their teachers loaded."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from slice_os.encoders import Encoder, load_encoder
from slice_os.errors import TrainingError
from slice_os.exporters.checkpoint import load_checkpoint
from slice_os.exporters.pooled import PooledModel
from slice_os.lab.train.distillation import RankingDistillation, SpanDistillation
from slice_os.lab.train.judging import Judging
from slice_os.lab.train.labelled import LabelledPairs, Triples
from slice_os.lab.train.recipe import Recipe
from slice_os.lab.train.sampling import Passages, read_pairs
from slice_os.lab.train.student import Objective
from slice_os.lab.train.triplets import PhraseTriplets

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

    Raises:
        TrainingError: The data cannot be used.
        EncoderError: A teacher's encoder folder is not usable.
        ExportError: A checkpoint is not usable.
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

"""A room to train in."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from slice_os.exporters.checkpoint import load_checkpoint
from slice_os.exporters.graph import sentences
from slice_os.lab.train.student import Student

RECIPE = """
name = "tiny"
base = "base"
steps = {steps}
save_every = {save_every}
learning_rate = {rate}
passage_words = [6, 20]
licence = "Apache-2.0"
{more}

[[text]]
path = "text.txt"

[distillation]
passages = 4
spans = 4
alone = 8
{distillation}

[development]
pairs = "pairs.tsv"
every = 2
rows = 20
"""


@pytest.fixture
def room(checkpoint, tmp_path):
    """Return a folder with a base, data, and a function that writes a recipe into it."""
    lines = sentences()
    (tmp_path / "base").symlink_to(checkpoint("bert"))
    (tmp_path / "text.txt").write_text("\n\n".join(lines), encoding="utf-8")
    pairs = [(k % 6, lines[k], lines[-k - 1]) for k in range(30)]
    rows = "".join(f"{score}\t{first}\t{second}\n" for score, first, second in pairs)
    (tmp_path / "pairs.tsv").write_text(f"score\tsentence1\tsentence2\n{rows}", encoding="utf-8")
    triples = "".join(f"{lines[k][:20]}\t{lines[k]}\t{lines[k + 1]}\n" for k in range(10))
    (tmp_path / "triples.tsv").write_text(triples, encoding="utf-8")

    def write(
        *tables, name="recipe.toml", steps=4, save_every=1, rate=1e-4, more="", distillation=""
    ):
        text = RECIPE.format(
            steps=steps, save_every=save_every, rate=rate, more=more, distillation=distillation
        )
        (tmp_path / name).write_text(text + "\n".join(tables), encoding="utf-8")
        return tmp_path / name

    return write


@pytest.fixture
def losses_of(tmp_path):
    """Return a function: an objective's mean losses of the base and of what a run made of it.

    Of several batches: one may say anything of a model that has learnt a little.
    """

    def losses(objective):
        for folder in ("base", "run/last"):
            student = Student(load_checkpoint(tmp_path / folder))
            with torch.no_grad():
                found = [objective.losses(student, np.random.default_rng(n)) for n in range(8)]
            yield {name: np.mean([one[name].item() for one in found]) for name in found[0]}

    return losses

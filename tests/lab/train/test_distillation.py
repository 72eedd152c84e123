"""Span and ranking distillation: what one teacher or two ask for."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import slice_os
from slice_os.exporters.checkpoint import load_checkpoint
from slice_os.lab.train.losses import blended
from slice_os.lab.train.objectives import RankingDistillation, SpanDistillation
from slice_os.lab.train.recipe import Distillation, Ranking
from slice_os.lab.train.sampling import Passages
from slice_os.lab.train.student import Student


def test_a_second_teacher_of_another_space_gives_relations(room, checkpoint, losses_of, tmp_path):
    (tmp_path / "other").symlink_to(checkpoint("mpnet"))
    second = 'second = ["other"]\nmix = 0.9\nanchor = 0.1\npull = 0.1'
    ranking = "[ranking]\ntexts = 3\nsecond = 0.4\n"
    recipe = room(ranking, steps=40, save_every=40, rate=1e-3, distillation=second)
    slice_os.train(recipe, tmp_path / "run")
    passages = Passages([(tmp_path / "text.txt", 1.0)], (6, 20))
    objective = SpanDistillation(
        Distillation(passages=32, mix=1.0),
        passages,
        slice_os.load_encoder(tmp_path / "base"),
        [slice_os.load_encoder(tmp_path / "other")],
    )
    before, after = losses_of(objective)
    assert after["degrees"] < 0.9 * before["degrees"]
    assert after["matrix"] < before["matrix"]


class Vectors:
    """A teacher of two texts, whose cosine it is told."""

    def __init__(self, cosine):
        self.rows = np.array([[1, 0], [cosine, np.sqrt(1 - cosine**2)]], np.float32)

    def encode(self, texts):
        return self.rows[: len(texts)]


def test_teachers_agree_on_what_is_far():
    first = torch.tensor([[1.0, 0.2], [0.2, 1.0]])
    second = [Vectors(0.6), Vectors(0.9)]  # the same likeness, spread over less
    torch.testing.assert_close(blended(first, second, 0.4, ["a", "b"]), first)


def test_the_base_ranks_as_itself(room, tmp_path):
    room()
    passages = Passages([(tmp_path / "text.txt", 1.0)], (6, 20))
    base, student = (Student(load_checkpoint(tmp_path / "base")) for _ in range(2))
    objective = RankingDistillation(Ranking(mean=0.0), passages, base)
    loss = objective.losses(student, np.random.default_rng(3))["ranking"]
    assert loss.item() == pytest.approx(0, abs=1e-5)
    loss.backward()
    other = RankingDistillation(Ranking(mean=1.0), passages, base)
    assert other.losses(student, np.random.default_rng(3))["ranking"].item() > 0.01


def test_another_teacher_than_the_base_may_say_the_order(room, checkpoint, losses_of, tmp_path):
    (tmp_path / "other").symlink_to(checkpoint("mpnet"))
    recipe = room('[ranking]\ntexts = 3\nteacher = "other"\n', steps=60, save_every=60, rate=1e-3)
    slice_os.train(recipe, tmp_path / "run")
    passages = Passages([(tmp_path / "text.txt", 1.0)], (6, 20))
    other = Student(load_checkpoint(tmp_path / "other"))
    before, after = losses_of(RankingDistillation(Ranking(), passages, other))
    assert after["ranking"] < before["ranking"]

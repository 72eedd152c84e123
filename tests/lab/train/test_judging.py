"""A judge: trained by a recipe, exported, and the same as in torch."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import torch

import slice_os
from slice_os.encoders.judge import CALIBRATION, KINDS, Calibration, ModelJudge, Placed
from slice_os.errors import EncoderError, TrainingError
from slice_os.exporters.checkpoint import load_checkpoint
from slice_os.exporters.graph import sentences
from slice_os.lab.train.judging import read_judge_pairs
from slice_os.lab.train.student import Student

PAIRS = "judge-pairs.jsonl"
RECIPE = """
name = "tiny-judge"
base = "base"
steps = {steps}
save_every = 20
learning_rate = 1e-2
licence = "Apache-2.0"

[judge]
pairs = "judge-pairs.jsonl"
batch = 8
{more}

[development]
pairs = "pairs.tsv"
opposites = "opposites.tsv"
every = 20
rows = 20
"""


@pytest.fixture
def recipe(room, tmp_path):
    """Return a function that writes a recipe, with rows whose negatives say "never"."""
    room()
    rows, opposites = [], ["phrase\tparaphrase\topposite"]
    for n, line in enumerate(sentences()[:40]):
        words = re.findall(r"\w+", line)[:8]
        query, never = " ".join(words), " ".join(["never", *words])
        placed = {"span": " ".join(words[2:]), "before": " ".join(words[:2])}
        against = [["negation"], ["negation", "antonym"]][n % 2]
        rows.append({"query": query, "placed": placed, "said": ["same"]})
        rows.append({"query": query, "placed": {"span": never}, "said": against})
        opposites.append(f"{query}\t{placed['span']}\t{never}")
    (tmp_path / PAIRS).write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (tmp_path / "opposites.tsv").write_text("\n".join(opposites), encoding="utf-8")

    def write(steps=15, more=""):
        text = RECIPE.format(steps=steps, more=more)
        (tmp_path / "judge.toml").write_text(text, encoding="utf-8")
        return tmp_path / "judge.toml"

    return write


def test_a_judge_learns_and_is_exported(recipe, tmp_path):
    seen = []
    report = slice_os.train(recipe(40), tmp_path / "run", progress=seen.append)
    assert set(seen[0].losses) == {"judged"}
    begun, ended = (np.mean([one.losses["judged"] for one in seen[a:][:10]]) for a in (0, -10))
    assert ended < begun - 0.1
    assert set(report.measures) == {"alike", "kept", "seen", "mean", "step"}
    slice_os.export(report.checkpoint, tmp_path / "judge")
    assert Calibration.load(tmp_path / "judge") == Calibration()

    asked = [
        ("the Queen", Placed("the Queen of Hearts", "never the", "said")),
        (sentences()[0], Placed(sentences()[1])),
        ("a", Placed("")),
    ]
    verified = np.array([0.9, 0.7, 0.5], np.float32)
    with torch.no_grad():
        logits = Student(load_checkpoint(report.checkpoint)).judge(asked).numpy()
    with slice_os.load_judge(tmp_path / "judge") as judge:
        np.testing.assert_allclose(judge.logits(asked), logits, atol=2e-3)
        found = judge.degrees(asked, verified)
        assert (found <= verified).all()
        assert judge.reasons(asked[:1]) == [(KINDS[1 + logits[0, 1:-1].argmax()],)]
        for n, pair in enumerate(asked):
            assert judge.degrees([pair], verified[n : n + 1])[0] == found[n]


def test_a_killed_run_goes_on_to_the_same_judge(recipe, tmp_path):
    def stop(progress):
        if progress.step == 3:
            raise KeyboardInterrupt

    whole = slice_os.train(recipe(5), tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        slice_os.train(recipe(5), tmp_path / "run", progress=stop)
    assert slice_os.train(recipe(5), tmp_path / "run").measures == whole.measures


def test_kinds_can_be_held_back_and_bad_pairs_are_said(recipe, tmp_path):
    recipe()
    file = tmp_path / PAIRS
    assert len(read_judge_pairs(file)) == 80
    assert len(read_judge_pairs(file, ["negation"])) == 60
    assert not any(pair.said[1:-1].any() for pair in read_judge_pairs(file, KINDS[1:]))
    whole = file.read_text(encoding="utf-8")
    for bad in (
        '{"said": ["negation"]}',
        '{"query": "a", "placed": {"span": "b"}, "said": ["no"]}',
    ):
        file.write_text(f"{whole}\n{bad}", encoding="utf-8")
        with pytest.raises(TrainingError, match=re.escape("line 81, is no pair for a judge")):
            slice_os.train(tmp_path / "judge.toml", tmp_path / "run")
    file.write_text('{"query": "a", "placed": {"span": "b"}, "said": ["role"]}', encoding="utf-8")
    with pytest.raises(TrainingError, match="holds no pair of another kind"):
        read_judge_pairs(file, ["role"])


def test_a_recipe_makes_a_judge_or_an_encoder(recipe, tmp_path):
    path = recipe(more='[[pairs]]\npath = "pairs.tsv"\n')
    with pytest.raises(TrainingError, match="makes a judge"):
        slice_os.train(path, tmp_path / "run")


def test_a_folder_that_is_no_judge_is_said(tmp_path, checkpoint):
    slice_os.export(checkpoint("bert"), tmp_path / "encoder")
    with pytest.raises(EncoderError, match=r"holds no judge \(judge.json is missing\)"):
        slice_os.load_judge(tmp_path / "encoder")
    (tmp_path / "encoder" / CALIBRATION).write_text('{"level": 0.6}')
    with pytest.raises(EncoderError, match="lacks or misstates a field"):
        ModelJudge(tmp_path / "encoder")

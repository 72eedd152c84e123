"""A judge: trained by a recipe, exported, and the same as in torch."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import torch

import slice_os
from slice_os.encoders.judge import Placed
from slice_os.encoders.model_judge import CALIBRATION, ModelJudge
from slice_os.errors import EncoderError, TrainingError
from slice_os.exporters.checkpoint import load_checkpoint
from slice_os.exporters.graph import sentences
from slice_os.lab.train.judging import alone, calibrated, read_judge_rows
from slice_os.lab.train.sampling import read_pairs
from slice_os.lab.train.student import Student

RECIPE = """
name = "tiny-judge"
base = "base"
steps = {steps}
save_every = 20
learning_rate = 1e-2
licence = "Apache-2.0"

[judge]
rows = "rows.jsonl"
pairs = "pairs.tsv"
encoder = "package:slice_os/encoders/default"
batch = 8
rated = 4
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
    rows = []
    for n, line in enumerate(sentences()[:40]):
        words = re.findall(r"\w+", line)[:8]
        said = {"span": " ".join(words[2:]), "before": " ".join(words[:2])}
        against = {"span": " ".join(["never", *words])}
        kind = ("negation", "contradiction")[n % 2]
        rows.append({"kind": kind, "query": " ".join(words), "positive": said, "negative": against})
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    lines = ["phrase\tparaphrase\topposite"]
    lines += [f"{r['query']}\t{r['positive']['span']}\t{r['negative']['span']}" for r in rows]
    (tmp_path / "opposites.tsv").write_text("\n".join(lines), encoding="utf-8")

    def write(steps=15, more=""):
        text = RECIPE.format(steps=steps, more=more)
        (tmp_path / "judge.toml").write_text(text, encoding="utf-8")
        return tmp_path / "judge.toml"

    return write


def test_a_judge_learns_and_is_exported(recipe, tmp_path):
    seen = []
    report = slice_os.train(recipe(40), tmp_path / "run", progress=seen.append)
    assert set(seen[0].losses) == {"order", "opposite", "kept", "rated"}
    begun, ended = (np.mean([one.losses["order"] for one in seen[a:][:10]]) for a in (0, -10))
    assert ended < begun - 0.1
    assert set(report.measures) == {"rated", "above", "mean", "step"}
    slice_os.export(report.checkpoint, tmp_path / "judge")
    kept = json.loads((tmp_path / "judge" / CALIBRATION).read_text("utf-8"))
    assert kept["weights_hash"] == slice_os.encoder_info().weights_hash

    asked = [
        ("the Queen", Placed("the Queen of Hearts", "never the", "said")),
        (sentences()[0], Placed(sentences()[1])),
        ("a", Placed("")),
    ]
    verified = np.array([0.9, 0.7, 0.5], np.float32)
    with torch.no_grad():
        z = Student(load_checkpoint(report.checkpoint)).judge(asked).numpy()
    with slice_os.load_judge(tmp_path / "judge") as judge:
        found = judge.degrees(asked, verified)
        np.testing.assert_allclose(found, judge.calibration.degrees(verified, z), atol=1e-4)
        assert (found <= judge.calibration.degrees(verified) + 1e-6).all()
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


def test_its_calibration_is_that_of_rated_pairs(recipe, tmp_path):
    recipe()
    pairs = read_pairs(tmp_path / "pairs.tsv")
    with slice_os.load_encoder() as encoder:
        degrees = alone(encoder, [(one.first, one.second) for one in pairs])
        found = calibrated(pairs, degrees, encoder.info.weights_hash)
    gold = np.array([one.likeness for one in pairs])

    def loss(slope, intercept):
        said = 1 / (1 + np.exp(-slope * degrees - intercept))
        return -(gold * np.log(said) + (1 - gold) * np.log(1 - said)).mean()

    best = loss(found.slope, found.intercept)
    for slope, intercept in ((0.5, 0), (-0.5, 0), (0, 0.2), (0, -0.2)):
        assert best <= loss(found.slope + slope, found.intercept + intercept) + 1e-6
    assert found.degrees(np.float32([found.least(0.6)]))[0] == pytest.approx(0.6, abs=1e-4)


def test_kinds_can_be_held_back_and_bad_rows_are_said(recipe, tmp_path):
    recipe()
    rows = tmp_path / "rows.jsonl"
    assert {row.kind for row in read_judge_rows(rows, ["negation"])} == {"contradiction"}
    with pytest.raises(TrainingError, match="holds no row of another kind"):
        read_judge_rows(rows, ["negation", "contradiction"])
    rows.write_text(rows.read_text() + '\n{"kind": "negation"}', encoding="utf-8")
    with pytest.raises(TrainingError, match=re.escape("line 41, is no row of a judge")):
        slice_os.train(tmp_path / "judge.toml", tmp_path / "run")


def test_a_recipe_makes_a_judge_or_an_encoder(recipe, tmp_path):
    path = recipe(more='[[pairs]]\npath = "pairs.tsv"\n')
    with pytest.raises(TrainingError, match="makes a judge"):
        slice_os.train(path, tmp_path / "run")


def test_a_folder_that_is_no_judge_is_said(tmp_path, checkpoint):
    slice_os.export(checkpoint("bert"), tmp_path / "encoder")
    with pytest.raises(EncoderError, match=r"holds no judge \(judge.json is missing\)"):
        slice_os.load_judge(tmp_path / "encoder")
    (tmp_path / "encoder" / CALIBRATION).write_text('{"weights_hash": "x"}')
    with pytest.raises(EncoderError, match="lacks or misstates a field"):
        ModelJudge(tmp_path / "encoder")

"""`slice-os train`: what it makes and what it survives."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import slice_os
from slice_os.exporters.checkpoint import load_checkpoint
from slice_os.exporters.graph import sentences
from slice_os.lab.train import run as runs
from slice_os.lab.train.checkpoints import DevelopmentSet
from slice_os.lab.train.losses import in_batch_loss, slice_loss
from slice_os.lab.train.objectives import LabelledPairs, SpanDistillation, Triples
from slice_os.lab.train.recipe import Distillation, Pairs, Slice, read_recipe
from slice_os.lab.train.sampling import Passages, read_pairs
from slice_os.lab.train.student import Student

SLICE_OS = Path(sys.executable).with_name("slice-os")
SLICE = '[slice]\ntriples = "triples.tsv"\nbatch = 3\nin_batch = {in_batch}\n'
RANKING = "[ranking]\ntexts = 3\npassages = 2\n"
PAIRS = '[[pairs]]\npath = "pairs.tsv"\nbatch = 3\n'


def weights(run):
    return load_file(run / runs.LAST / "model.safetensors")


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


def test_a_student_pools_as_the_exported_encoder_does(checkpoint, tmp_path):
    for kind in ("bert", "mpnet", "xlm-roberta", "modernbert"):
        student = Student(load_checkpoint(checkpoint(kind)))
        slice_os.export(checkpoint(kind), tmp_path / kind)
        texts = [*(text[:60] for text in sentences()[:8]), "one", "", "\u200b", "word " * 300]
        with torch.no_grad(), slice_os.load_encoder(tmp_path / kind) as encoder:
            words, alone = student.words(texts), student.encode(texts[:-1]).numpy()
            np.testing.assert_allclose(alone, encoder.encode(texts[:-1]), atol=2e-4)
            for row, theirs in enumerate(encoder.encode_words(texts[:-1])):
                count = int(words.counts[row])
                assert count == len(theirs.vectors)
                ours = words.vectors[row, :count].numpy()
                np.testing.assert_allclose(ours, theirs.vectors, atol=2e-3)
                assert not words.vectors[row, count:].any()
        assert 0 < words.counts[-1] < 300  # what does not fit is left out


@pytest.mark.parametrize("over", ["span", "passage"])
def test_the_published_run_and_its_control_learn(room, tmp_path, over):
    """recipes/slice.toml for 20 steps, of a small model and with few triples."""
    room()
    text = (Path(__file__).parents[3] / "recipes/slice.toml").read_text(encoding="utf-8")
    for key, value in (("base", '"base"'), ("steps", 20), ("triples", '"triples.tsv"')):
        text, count = re.subn(rf"^{key} = .*$", f"{key} = {value}", text, flags=re.MULTILINE)
        assert count == 1
    text = text.replace('over = "span"', f'over = "{over}"')
    (tmp_path / "slice.toml").write_text(text, encoding="utf-8")
    wanted = read_recipe(tmp_path / "slice.toml").slice
    assert (wanted.batch, wanted.scale, wanted.max_words, wanted.over) == (32, 30.0, 10, over)
    seen = []
    report = slice_os.train(tmp_path / "slice.toml", tmp_path / "run", progress=seen.append)
    assert report.step == 20
    losses = [one.losses["slice"] for one in seen]
    assert losses[-1] < losses[0]


def test_the_control_compares_whole_passages(room, checkpoint, tmp_path):
    room()
    student = Student(load_checkpoint(checkpoint("bert")))
    rows = [line.split("\t") for line in (tmp_path / "triples.tsv").read_text().splitlines()[:3]]
    queries, good, bad = (student.encode(texts) for texts in zip(*rows, strict=True))
    for in_batch in (False, True):
        settings = Slice("triples.tsv", over="passage", batch=3, in_batch=in_batch)
        objective = Triples(settings, tmp_path / "triples.tsv")
        (found,) = objective.losses(student, np.random.default_rng(0)).values()
        cosines = queries @ torch.cat((good, bad)).T
        expected = (
            in_batch_loss(cosines)
            if in_batch
            else slice_loss(cosines[:, :3].diagonal(), cosines[:, 3:].diagonal())
        )
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    "tables",
    [(), (SLICE.format(in_batch="false"), PAIRS, RANKING), (SLICE.format(in_batch="true"),)],
)
def test_a_run_makes_a_checkpoint_that_exports(room, tmp_path, tables):
    seen = []
    report = slice_os.train(room(*tables), tmp_path / "run", progress=seen.append)
    assert [one.step for one in seen] == [1, 2, 3, 4]
    assert seen[-1].rate > 0
    names = {"context", "matrix", "alone", "degrees"} | ({"slice"} if tables else set())
    names |= {"ranking", "pairs", "pairs alone"} if RANKING in tables else set()
    assert names <= set(seen[-1].losses)
    assert set(report.measures) == {"alone", "single", "window", "rescored", "mean", "step"}
    assert not same(weights(tmp_path / "run"), load_file(tmp_path / "base/model.safetensors"))
    info = slice_os.export(report.checkpoint, tmp_path / "encoder", "fp32")
    assert info.licence == "Apache-2.0"
    learnt = {"triples.tsv": bool(tables), "pairs.tsv": PAIRS in tables}
    named = ["text.txt", *(name for name, used in learnt.items() if used)]
    assert info.training_data == ", ".join(named)
    assert info.max_tokens == load_checkpoint(tmp_path / "base").max_tokens
    about = json.loads((tmp_path / "run/run.json").read_text())
    assert set(about["made_of"]["data"]) >= {"text.txt", "pairs.tsv"}
    assert about["with"]["torch"]
    log = [json.loads(line) for line in (tmp_path / "run/log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in log] == [1, 2, 3, 4]


def test_learning_lowers_the_loss(room, losses_of, tmp_path):
    recipe = room(steps=60, rate=3e-4)
    slice_os.train(recipe, tmp_path / "run")
    passages = Passages([(tmp_path / "text.txt", 1.0)], (6, 20))
    teacher = slice_os.load_encoder(tmp_path / "base")
    objective = SpanDistillation(Distillation(passages=32), passages, teacher)
    before, after = losses_of(objective)
    assert before["alone"] == pytest.approx(0, abs=1e-5)  # it is its own teacher
    assert after["context"] < 0.85 * before["context"]
    assert after["matrix"] < before["matrix"]


SENTENCES = """
name = "teacher"
base = "base"
steps = 30
learning_rate = 1e-3
[[pairs]]
path = "pairs.tsv"
context = false
"""


def test_a_teacher_of_sentences_learns_from_pairs_alone(room, losses_of, tmp_path):
    room()
    (tmp_path / "sentences.toml").write_text(SENTENCES, encoding="utf-8")
    slice_os.train(tmp_path / "sentences.toml", tmp_path / "run")
    wanted = Pairs("pairs.tsv", context=False, batch=30)
    pairs = read_pairs(tmp_path / "pairs.tsv")
    before, after = losses_of(LabelledPairs(wanted, pairs, Passages([], (6, 20))))
    assert before.keys() == {"pairs alone"}
    assert after["pairs alone"] < 0.9 * before["pairs alone"]


@pytest.mark.parametrize("kind", ["mpnet", "xlm-roberta", "modernbert"])
def test_every_architecture_trains_exports_and_searches(room, checkpoint, tmp_path, kind):
    recipe = room(SLICE.format(in_batch="false"), PAIRS, RANKING, steps=2)
    recipe.write_text(recipe.read_text().replace('base = "base"', f'base = "{checkpoint(kind)}"'))
    report = slice_os.train(recipe, tmp_path / "run")
    slice_os.export(report.checkpoint, tmp_path / "encoder", "int8")
    with slice_os.open(tmp_path / "i.slice", encoder=tmp_path / "encoder") as index:
        index.add([slice_os.Document(str(k), text) for k, text in enumerate(sentences()[:20])])
        (hit,) = index.search(sentences()[7], size=1)
    assert hit.document == "7"


def test_weights_are_averaged_with_the_base(room, tmp_path):
    slice_os.train(room(), tmp_path / "whole")
    slice_os.train(room(more="average = 0.5", name="half.toml"), tmp_path / "half")
    base = load_file(tmp_path / "base/model.safetensors")
    whole, half = weights(tmp_path / "whole"), weights(tmp_path / "half")
    for name in whole:
        torch.testing.assert_close(half[name], (base[name] + whole[name]) / 2)


def test_a_killed_run_goes_on_to_the_same_weights(room, tmp_path):
    recipe = room(SLICE.format(in_batch="false"), PAIRS, steps=12)
    slice_os.train(recipe, tmp_path / "whole", device="cpu")
    command = [SLICE_OS, "train", recipe, "--device", "cpu", "--output", tmp_path / "cut"]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    log = tmp_path / "cut/log.jsonl"
    while not log.exists() or len(log.read_text().splitlines()) < 3:
        assert child.poll() is None
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    seen = []
    slice_os.train(recipe, tmp_path / "cut", progress=lambda one: seen.append(one.step))
    assert 1 < seen[0] <= seen[-1] == 12
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "cut"))


def test_two_processes_learn_what_one_learns_of_both_their_batches(room, tmp_path):
    tables = (RANKING, SLICE.format(in_batch="true"), PAIRS)
    room(*tables, name="one.toml", more="accumulate = 2")
    slice_os.train(tmp_path / "one.toml", tmp_path / "one", device="cpu")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2"]
    command += ["-m", "slice_os", "train", room(*tables), "--output", tmp_path / "two"]
    found = subprocess.run([*command, "--device", "cpu"], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert found.stdout.count("single") == 1  # one of them speaks
    told = [line for line in found.stderr.splitlines() if line.startswith("step ")]
    assert [line.split(":")[0] for line in told] == [f"step {n} of 4" for n in (1, 2, 3, 4)]
    assert "words/s; best: alone" in told[-1]
    one, two = weights(tmp_path / "one"), weights(tmp_path / "two")
    for name in one:
        torch.testing.assert_close(one[name], two[name], atol=2e-5, rtol=1e-3)


@pytest.mark.parametrize("at", [2, 4])
def test_an_interrupt_while_measuring_loses_nothing(room, tmp_path, monkeypatch, at):
    recipe = room(save_every=100, more="average = 0.5")
    slice_os.train(recipe, tmp_path / "whole", device="cpu")
    measure, calls = DevelopmentSet.measure, []

    def interrupted(self, student):
        calls.append(1)
        if 2 * len(calls) == at:
            raise KeyboardInterrupt
        return measure(self, student)

    monkeypatch.setattr(DevelopmentSet, "measure", interrupted)
    with pytest.raises(KeyboardInterrupt):
        slice_os.train(recipe, tmp_path / "run", device="cpu")
    report = slice_os.train(recipe, tmp_path / "run", device="cpu")
    assert len(calls) == 3  # twice at the step of the interrupt
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "run"))
    log = (tmp_path / "whole/log.jsonl").read_text().splitlines()
    assert report.measures == json.loads(log[-1])["measures"]


def test_an_interrupt_keeps_the_state(room, tmp_path):
    def interrupt(one):
        if one.step == 3:
            raise KeyboardInterrupt

    recipe = room(save_every=100)
    with pytest.raises(KeyboardInterrupt):
        slice_os.train(recipe, tmp_path / "run", progress=interrupt)
    seen = []
    slice_os.train(recipe, tmp_path / "run", progress=lambda one: seen.append(one.step))
    assert seen == [4]

"""Static encoders: what `slice-os train` makes of [static], step by step."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch

import slice_os
from slice_os.encoders import load_encoder
from slice_os.errors import TrainingError
from slice_os.exporters.graph import sentences
from slice_os.lab.train import contexts as contexts_module
from slice_os.lab.train.contexts import Extraction, apart, read_contexts
from slice_os.lab.train.losses import row_loss
from slice_os.lab.train.recipe import Static, read_recipe
from slice_os.lab.train.static import Bags, Distillation, components

ROOT = Path(__file__).parents[3]
SMALL = Static(dimension=16, batch=16, rare=2, every=4, learning_rate=1e-2)


@pytest.fixture
def recipe(checkpoint, tmp_path):
    """Return a function that writes recipes/static.toml for a small model and the examples."""
    (tmp_path / "base").symlink_to(checkpoint("bert"))
    (tmp_path / "text.txt").write_text("\n\n".join(sentences()), encoding="utf-8")
    lines = [line for line in sentences() if line.isascii()]
    rows = "".join(f"{k % 6}\t{lines[k]}\t{lines[-k - 1]}\n" for k in range(30))
    (tmp_path / "pairs.tsv").write_text(f"score\tsentence1\tsentence2\n{rows}", encoding="utf-8")

    def write(text="text.txt", steps=40, static="", more="", name="static.toml"):
        found = (ROOT / "recipes/static.toml").read_text(encoding="utf-8")
        found = re.sub(r"\[\[text\]\]\n(?:.+\n?)*\n?", "", found)
        keys = f"dimension = 16\nbatch = 16\nrare = 2\nevery = 4\nlearning_rate = 1e-2\n{static}"
        for old, new in (
            (r"^base = .*$", 'base = "base"'),
            (r"^steps = .*$", f"steps = {steps}\n{more}"),
            (r"^\[static\].*$", f"[static]\n{keys}"),
            (r"^pairs = .*$", 'pairs = "pairs.tsv"'),
        ):
            found, count = re.subn(old, new, found, flags=re.MULTILINE)
            assert count == 1
        path = tmp_path / name
        path.write_text(f'{found}\n[[text]]\npath = "{text}"\n', encoding="utf-8")
        return path

    return write


def test_the_recipe_makes_an_encoder_of_the_examples(recipe, tmp_path):
    path = recipe(str(ROOT / "examples/contracts/1025953_2000-11-13.txt"))
    seen = []
    report = slice_os.train(path, tmp_path / "run", progress=seen.append)
    assert {one.unit for one in seen} == {"text", "step"}
    steps = ("teacher", "extracted", "components", "distilled", "int8")
    ablations = ("first components kept", "components of words")
    assert {*steps, *ablations, "words", "sentences"} == set(report.measures)
    lines = [json.loads(line) for line in (tmp_path / "run/log.jsonl").read_text().splitlines()]
    assert -1 < lines[0]["extracted"]["frequency and norm"] < 1
    losses = [line["losses"]["validation"] for line in lines if line.get("losses")]
    assert losses[-1] < losses[0]  # it learns its teacher's similarities
    info = slice_os.encoder_info(report.checkpoint, check=True)
    assert (info.precision, info.dimension, info.licence) == ("int8", 16, "Apache-2.0")
    assert len(info.weights_hash) == 32
    with load_encoder(report.checkpoint) as encoder:
        alone, inside = encoder.encode_words(["rabbit hole", "Down the Rabbit-Hole, again"])
        np.testing.assert_allclose(inside.vectors[2], alone.vectors.sum(axis=0), atol=1e-6)
    with slice_os.open(tmp_path / "i.slice", encoder=report.checkpoint) as index:
        index.add([slice_os.Document(str(k), text) for k, text in enumerate(sentences()[:20])])
        assert index.search(sentences()[7], size=1)[0].document == "7"
        words = " ".join(sentences()[3].split()[:5])
        assert "3" in {match.document for match in index.mine([words], min_degree=0.99)}
    # What is finished is not made again.
    assert slice_os.train(path, tmp_path / "run") == report


def test_the_shortest_sentences_of_a_word_are_its_contexts(tmp_path):
    text = "Cats sleep. Cats sleep a lot today. Big cats sleep. Cats, cats roar!\n\nCatsuits sell."
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    wanted = Static(words=4, contexts=2)
    found = read_contexts([tmp_path / "text.txt"], wanted, 0)
    assert found.words[:2] == ["cats", "sleep"]
    chosen = {
        found.texts[k]
        for k in range(len(found.texts))
        for row, one in zip(
            found.ids[found.bounds[k] : found.bounds[k + 1]],
            found.chosen[found.bounds[k] : found.bounds[k + 1]],
            strict=True,
        )
        if one and found.words[row] == "cats"
    }
    assert chosen < {"Cats sleep .", "Big cats sleep .", "Cats , cats roar !"}
    assert len(chosen) == 2
    assert "Cats sleep ." in chosen
    every = read_contexts([tmp_path / "text.txt"], Static(words=4), 0)
    known = dict(zip(every.texts, range(len(every.texts)), strict=True))
    if "Catsuits sell ." in known:  # its longest known prefix stands in for it, and learns nothing
        at = every.bounds[known["Catsuits sell ."]]
        assert every.words[every.ids[at]] == "cats"
        assert not every.chosen[at]


def test_a_words_vector_is_the_mean_of_its_tokens_in_its_contexts(checkpoint, tmp_path):
    (tmp_path / "text.txt").write_text("\n\n".join(sentences()), encoding="utf-8")
    contexts = read_contexts([tmp_path / "text.txt"], SMALL, 0)
    saved = []
    with load_encoder(checkpoint("bert")) as teacher:
        found = Extraction(contexts, SMALL.rare, teacher.info.dimension)
        found.run(teacher, saved.append, lambda *_: None)
        for word in ("alice", "the", "and"):
            row = contexts.words.index(word)
            means = []
            for text in contexts.texts:
                if f" {word} " in f" {text.lower()} ":
                    (tokens,) = teacher.encode_tokens([text])
                    begin = f" {text.lower()} ".index(f" {word} ")
                    means.append(tokens.vectors[tokens.starts == begin].mean(axis=0))
            if len(means) <= SMALL.contexts:
                np.testing.assert_allclose(
                    found.vectors()[row], np.mean(means, axis=0), atol=1e-4, rtol=1e-3
                )
        rare = next(
            row
            for row in range(len(contexts.words))
            if contexts.chosen[contexts.ids == row].sum() == 1
        )
        alone = teacher.encode(contexts.words[rare])
        ours = found.vectors()[rare]
        np.testing.assert_allclose(ours / np.linalg.norm(ours), alone, atol=1e-4)
        whole = teacher.encode(contexts.texts[:5])
        np.testing.assert_allclose(found.sentences[:5], whole, atol=1e-3)


def test_words_stand_apart_from_what_is_none():
    assert apart("“Don’t,” she said—well-known!") == "“ Don't ,” she said — well - known !"


def test_components_are_those_of_the_sample_but_for_the_first():
    rng = np.random.default_rng(0)
    sample = (rng.normal(size=(500, 8)) * np.arange(8, 0, -1) + 3).astype(np.float32)
    found = components(sample, sample, 2, 4)
    whole = components(sample, sample, 0, 8)
    np.testing.assert_allclose(found, whole[:, 2:6], atol=1e-4)
    covariance = np.cov(whole.T)
    np.testing.assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-3)
    assert (np.diff(np.diag(covariance)) < 0).all()
    np.testing.assert_allclose(whole.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(  # a rotation: no distance changes
        np.linalg.norm(whole[0] - whole[1]), np.linalg.norm(sample[0] - sample[1]), rtol=1e-4
    )


def test_the_loss_is_the_formula():
    rng = np.random.default_rng(0)
    s, t = rng.uniform(-1, 1, (2, 4, 4))
    total = 0.0
    for i in range(4):
        others = [j for j in range(4) if j != i]
        p = np.exp(s[i] / 0.05) / np.exp(s[i, others] / 0.05).sum()
        q = np.exp(t[i] / 0.05) / np.exp(t[i, others] / 0.05).sum()
        total -= sum(q[j] * np.log(p[j]) for j in others) / 4
    student = torch.from_numpy(s).requires_grad_()
    loss = row_loss(student, torch.from_numpy(t), 0.05)
    assert loss.item() == pytest.approx(total)
    loss.backward()
    assert torch.isfinite(student.grad).all()
    assert not student.grad.diagonal().any()


def test_the_table_kept_is_the_one_of_the_lowest_validation(tmp_path):
    (tmp_path / "text.txt").write_text("\n\n".join(sentences()), encoding="utf-8")
    contexts = read_contexts([tmp_path / "text.txt"], SMALL, 0)
    rng = np.random.default_rng(0)
    start, taught = (
        torch.from_numpy(rng.normal(size=(len(rows), 16)).astype(np.float32))
        for rows in (contexts.words, contexts.texts)
    )
    taught = torch.nn.functional.normalize(taught, dim=1)
    wanted = msgspec.structs.replace(SMALL, learning_rate=0.3)
    learning = Distillation(wanted, Bags(contexts), start, taught, 0)
    lowest = []
    for _ in range(400):
        losses, _ = learning.learn()
        lowest.append(losses["validation"])
        if learning.waited == SMALL.patience:
            break
    assert learning.waited == SMALL.patience  # noise cannot be learnt for long
    assert lowest == sorted(lowest, reverse=True)
    kept = Distillation(SMALL, Bags(contexts), learning.best, taught, 0)
    assert kept.state()["lowest"] == pytest.approx(lowest[-1])


@pytest.mark.parametrize("unit", ["text", "step"])
def test_an_interrupted_run_goes_on_to_the_same_encoder(recipe, tmp_path, monkeypatch, unit):
    monkeypatch.setattr(contexts_module, "BLOCK", 64)
    path = recipe(steps=12)
    whole = slice_os.train(path, tmp_path / "whole")
    seen = []

    def interrupt(one):
        seen.append(one.unit)
        if seen.count(unit) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        slice_os.train(path, tmp_path / "run", progress=interrupt)
    assert not (tmp_path / "run/best").exists()
    later = []
    again = slice_os.train(path, tmp_path / "run", progress=later.append)
    assert later[0].unit == unit
    assert later[0].step == (256 if unit == "text" else 4)
    assert again.measures == whole.measures
    graphs = [(tmp_path / name / "best/model.onnx").read_bytes() for name in ("run", "whole")]
    assert graphs[0] == graphs[1]


@pytest.mark.parametrize(
    ("text", "static", "message"),
    [
        ("Cats sleep. Dogs bark at night. Birds sing.", "", "No word .* two different sentences"),
        ("Cats sleep.\n\n" * 90, "", "No word .* two different sentences"),
        ("Cats sleep. Some cats bark. Birds like cats.", "", "3 different sentences, too few for"),
        ("... !\n\n— ?", "", "No word .* two different sentences"),
        (None, "dropped = 20", "32 dimensions, of which 16 after the first 20"),
        (None, "validation = 400\n", None),
    ],
)
def test_texts_that_cannot_be_used(recipe, tmp_path, text, static, message):
    path = recipe(static=static, steps=1)
    if text:
        (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    if message is None:
        assert slice_os.train(path, tmp_path / "run").step == 1
        return
    with pytest.raises(TrainingError, match=message) as caught:
        slice_os.train(path, tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run/best").exists()


def test_recipes_that_cannot_be_used(recipe, tmp_path):
    path = recipe(steps=1)
    slice_os.train(path, tmp_path / "run")
    with pytest.raises(TrainingError, match=r"recipe\.static differ"):
        slice_os.train(recipe(steps=1, static="contexts = 7"), tmp_path / "run")
    path.write_text(path.read_text() + '[[pairs]]\npath = "pairs.tsv"\n')
    with pytest.raises(TrainingError, match="learns from its base alone"):
        read_recipe(path)

"""What `slice-os train` refuses, in one sentence, and what it leaves as it was."""

from __future__ import annotations

import pytest
import torch

import slice_os
from slice_os.errors import ExportError, TrainingError


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('base = "base"', 'base = "base"\nstepz = 3'), "stepz"),
        (("steps = 4", 'steps = "many"'), r"expected `int`.*steps"),
        (("steps = 4", "steps = = 4"), "is not TOML"),
        (('name = "tiny"\n', ""), "misses.*name"),
        (("spans = 4", "span = 4"), r"span.*distillation"),
        (('path = "text.txt"', 'path = "texts.txt"'), "texts.txt does not exist"),
        (('[[text]]\npath = "text.txt"\n', ""), "names no text"),
        (("[6, 20]", "[20, 6]"), "swap"),
        (('base = "base"', 'base = "package:nothing_such/model"'), "no such package"),
    ],
)
def test_a_recipe_that_cannot_be_used(room, tmp_path, change, message):
    recipe = room()
    recipe.write_text(recipe.read_text().replace(*change))
    with pytest.raises(TrainingError, match=message) as caught:
        slice_os.train(recipe, tmp_path / "run")
    assert "\n" not in str(caught.value)


def test_a_recipe_without_an_objective_or_a_file(room, tmp_path):
    recipe = room()
    text = recipe.read_text()
    recipe.write_text(text[: text.index("[distillation]")])
    with pytest.raises(TrainingError, match="nothing to learn from"):
        slice_os.train(recipe, tmp_path / "run")
    with pytest.raises(TrainingError, match="cannot be read"):
        slice_os.train(tmp_path / "none.toml", tmp_path / "run")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb\n1\t2\n", "no column score"),
        ("score\tsentence1\tsentence2\n7\ta\tb\n", "line 2.*from 0 to 5"),
        ("score\tsentence1\tsentence2\n1\ta\n", "line 2"),
        ("score\tsentence1\tsentence2\n", "no pair"),
        (b"score\tsentence1\tsentence2\n1\t\xff\tb\n", "UTF-8"),
    ],
)
def test_pairs_of_another_format(room, tmp_path, text, message):
    recipe = room('[[pairs]]\npath = "pairs.tsv"\nbatch = 3\n')
    (tmp_path / "pairs.tsv").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(TrainingError, match=message):
        slice_os.train(recipe, tmp_path / "run")


def test_other_data_or_another_recipe_does_not_go_on(room, tmp_path):
    slice_os.train(room(steps=1), tmp_path / "run")
    with pytest.raises(TrainingError, match=r"recipe\.steps differ"):
        slice_os.train(room(steps=2), tmp_path / "run")
    with (tmp_path / "text.txt").open("a") as file:
        file.write("\n\nOne more line of text, which nobody has seen before today.")
    with pytest.raises(TrainingError, match=r"data\.text\.txt differ"):
        slice_os.train(room(steps=1), tmp_path / "run")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").touch()
    with pytest.raises(TrainingError, match="holds no run"):
        slice_os.train(room(), tmp_path / "other")


def test_a_checkpoint_without_weights(room, tmp_path):
    recipe = room()
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty/config.json").write_text("{}")
    recipe.write_text(recipe.read_text().replace('base = "base"', 'base = "empty"'))
    with pytest.raises(ExportError, match="no weights"):
        slice_os.train(recipe, tmp_path / "run")


def test_a_loss_that_is_no_number_stops_the_run(room, tmp_path):
    with pytest.raises(TrainingError, match="not a number at step"):
        slice_os.train(room(steps=60, rate=1e30), tmp_path / "run")
    state = torch.load(tmp_path / "run/state.pt", weights_only=True)
    assert state["step"] < 60


def test_a_full_disk_leaves_the_state_before_it(room, tmp_path, monkeypatch):
    def full(state, file):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    recipe = room(save_every=2)
    save = torch.save
    calls = []

    def second(state, file):
        calls.append(1)
        (full if len(calls) > 1 else save)(state, file)

    monkeypatch.setattr(torch, "save", second)
    with pytest.raises(TrainingError, match=r"No space left.*make room"):
        slice_os.train(recipe, tmp_path / "run")
    assert not list((tmp_path / "run").glob(".*"))
    monkeypatch.setattr(torch, "save", save)
    seen = []
    slice_os.train(recipe, tmp_path / "run", progress=lambda one: seen.append(one.step))
    assert seen == [3, 4]

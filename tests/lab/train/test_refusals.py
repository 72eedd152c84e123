"""What `slice-os train` refuses, in one sentence, and what it leaves as it was."""

from __future__ import annotations

import shutil

import pytest
import torch

import slice_os
from slice_os.encoders.info import DEFAULT_FOLDER
from slice_os.errors import EvaluationError, ExportError, TrainingError
from slice_os.lab.train.checkpoints import DevelopmentSet
from slice_os.lab.train.objectives import SpanDistillation


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
        (('base = "base"', 'base = "bse"'), "bse does not exist"),
        (("[distillation]", "[ranking]\nsecond = 0.5\n[distillation]"), "name it as second"),
        (("steps = 4", "steps = 4\nseed = -1"), "seed"),
        (("alone = 8", "alone = -8"), "alone"),
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
        ("a\tb\n1\t2\n", "no column sentence1"),
        ("score\tsentence1\tsentence2\n7\ta\tb\n", "line 2.*from 0 to 5"),
        ("score\tsentence1\tsentence2\n1\ta\n", "line 2"),
        ("score\tsentence1\tsentence2\n", "no pair"),
        (b"score\tsentence1\tsentence2\n1\t\xc3\xa9\xff\tb\n", "UTF-8"),
    ],
)
def test_pairs_of_another_format(room, tmp_path, text, message):
    recipe = room('[[pairs]]\npath = "pairs.tsv"\nbatch = 3\n')
    (tmp_path / "pairs.tsv").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(EvaluationError, match=message):
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
    # The first step's weights are ruined, so they are not what a run goes on from.
    assert not (tmp_path / "run/state.pt").exists()


@pytest.mark.parametrize("what", ["loss", "gradient"])
def test_the_last_state_is_one_that_gave_a_loss(room, tmp_path, monkeypatch, what):
    losses, calls = SpanDistillation.losses, []

    def ruined(self, student, rng):
        calls.append(1)
        found = dict(losses(self, student, rng))
        if len(calls) == 3:
            if what == "loss":
                found["context"] = found["context"] * float("nan")
            else:
                found["context"].register_hook(lambda gradient: gradient * float("inf"))
        return found

    recipe = room(steps=4)
    monkeypatch.setattr(SpanDistillation, "losses", ruined)
    with pytest.raises(TrainingError, match=r"not a number at step 3.*lower learning_rate"):
        slice_os.train(recipe, tmp_path / "run")
    state = torch.load(tmp_path / "run/state.pt", weights_only=True)
    assert state["step"] == 1  # the second step's weights gave no loss
    assert all(torch.isfinite(one).all() for one in state["model"].values())
    assert slice_os.train(recipe, tmp_path / "run").step == 4


def test_what_was_corrected_begins_in_the_same_folder(room, tmp_path):
    recipe = room()
    text = recipe.read_text()
    (tmp_path / "half").mkdir()
    recipe.write_text(text.replace('base = "base"', 'base = "half"'))
    with pytest.raises(ExportError, match=r"no config\.json"):
        slice_os.train(recipe, tmp_path / "run")
    (tmp_path / "run/.partial-run.json").touch()  # left by a kill or a full disk
    recipe.write_text(text)
    assert slice_os.train(recipe, tmp_path / "run").step == 4


def test_another_base_or_number_of_processes_does_not_go_on(room, checkpoint, tmp_path):
    recipe = room()
    slice_os.train(recipe, tmp_path / "run")
    about = tmp_path / "run/run.json"
    text = about.read_text()
    about.write_text(text.replace('"processes": 1', '"processes": 2'))
    with pytest.raises(TrainingError, match="processes differ"):
        slice_os.train(recipe, tmp_path / "run")
    about.write_text(text)
    shutil.copytree(checkpoint("bert"), tmp_path / "other")
    (tmp_path / "other/notes.txt").touch()
    (tmp_path / "base").unlink()
    (tmp_path / "base").symlink_to(tmp_path / "other")
    with pytest.raises(TrainingError, match=r"models\.base differ"):
        slice_os.train(recipe, tmp_path / "run")


def test_a_teacher_of_another_dimension(room, tmp_path):
    recipe = room(distillation=f'teacher = "{DEFAULT_FOLDER}"')
    with pytest.raises(TrainingError, match="384 dimensions and the student"):
        slice_os.train(recipe, tmp_path / "run")


def test_fp16_without_a_gpu(room, tmp_path):
    with pytest.raises(TrainingError, match="fp16 needs a GPU"):
        slice_os.train(room(more='precision = "fp16"'), tmp_path / "run", device="cpu")
    slice_os.train(room(more='precision = "bf16"'), tmp_path / "run", device="cpu")
    slice_os.train(room(), tmp_path / "other", device="cpu")  # after another precision


def test_pairs_that_nothing_correlates_with(room, tmp_path):
    recipe = room()
    rows = [f"5\tplease cancel order {k}\tplease cancel the order {k}\n" for k in range(60)]
    (tmp_path / "pairs.tsv").write_text("\ufeffscore\tsentence1\tsentence2\n" + "".join(rows))
    with pytest.raises(TrainingError, match="different scores"):
        slice_os.train(recipe, tmp_path / "run")
    rows = [row.replace("5", str(k % 6), 1) for k, row in enumerate(rows)]
    (tmp_path / "pairs.tsv").write_text("score\tsentence1\tsentence2\n" + "".join(rows))
    # All are alike: what stands around one has to be another of them.
    assert len(DevelopmentSet(tmp_path / "pairs.tsv", 20).passages) == 20


def test_a_full_disk_leaves_the_state_before_it(room, tmp_path, monkeypatch):
    def full(state, file):
        file.write_bytes(b"half")
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

"""Triples from a file, and Phrase-BERT's objective over phrases and their contexts."""

from __future__ import annotations

import gzip
import itertools
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch

import slice_os
from slice_os.errors import EvaluationError, TrainingError
from slice_os.exporters.checkpoint import load_checkpoint
from slice_os.exporters.graph import sentences
from slice_os.lab.train import Triple, read_triples
from slice_os.lab.train.objectives import PhraseTriplets
from slice_os.lab.train.recipe import Triplets, read_recipe
from slice_os.lab.train.student import Student

ROWS = [("what", f"this is it {n}", f"this is not {n}") for n in range(5)]
TEXT = "".join("\t".join(row) + "\n" for row in ROWS)


def write(path, data):
    data = data.encode() if isinstance(data, str) else data
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", ["triples.tsv", "triples.tsv.gz"])
def test_rows_are_triples(tmp_path, name):
    path = write(tmp_path / name, TEXT)
    assert list(read_triples(path)) == [Triple(*row) for row in ROWS]
    assert next(read_triples(str(path))).positive == "this is it 0"


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("a\tb\tc", ("a", "b", "c")),
        ("a\tb\tc\r\n", ("a", "b", "c")),
        ("\ufeffa\tb\tc\n", ("a", "b", "c")),
        # Neither a quote nor any other control character ends a field or a row.
        ('"a\tb "c" d\te\u0085f\u2028g\rh\n', ('"a', 'b "c" d', "e\u0085f\u2028g\nh")),
        ("何\tä\té\n", ("何", "ä", "é")),
    ],
)
def test_only_tabs_and_line_ends_separate(tmp_path, text, row):
    assert list(read_triples(write(tmp_path / "t.tsv", text))) == [row]


@pytest.mark.parametrize("line", ["a\tb", "a\tb\tc\td", "\tb\tc", "a\t \tc", "a\tb\t"])
@pytest.mark.parametrize("name", ["triples.tsv", "triples.tsv.gz"])
def test_a_row_that_is_none_is_named_after_those_before_it(tmp_path, name, line):
    path = write(tmp_path / name, f"{TEXT}{line}\na\tb\tc\n")
    triples = read_triples(path)
    assert list(itertools.islice(triples, 5)) == ROWS
    with pytest.raises(TrainingError) as caught:
        next(triples)
    assert str(caught.value).startswith(f"{path}, line 6, is not query<TAB>positive<TAB>negative")
    assert str(caught.value).endswith(".")


def test_files_that_are_none(tmp_path):
    cut = tmp_path / "cut.gz"
    cut.write_bytes(gzip.compress(TEXT.encode() * 1000)[:-20])
    plain = tmp_path / "plain.gz"
    plain.write_text(TEXT)
    cases = {
        tmp_path / "absent.tsv": "There is no file .*absent.tsv: check the path.",
        tmp_path: "cannot be read",
        write(tmp_path / "empty.tsv", ""): "is empty",
        cut: "cannot be unpacked .*: download or pack it again.",
        plain: "cannot be unpacked .*: download or pack it again.",
        write(tmp_path / "packed.tsv", gzip.compress(b"\0" * 1000)): "looks binary",
    }
    for path, message in cases.items():
        with pytest.raises(EvaluationError, match=message):
            list(read_triples(path))


def test_memory_does_not_grow_with_the_file(tmp_path):
    path = write(tmp_path / "long.tsv", TEXT * 60_000)
    tracemalloc.start()
    assert sum(1 for _ in read_triples(path)) == 300_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < path.stat().st_size / 2


def test_importing_training_loads_no_torch():
    code = (
        "import sys, slice_os.lab.train as t; t.read_triples, t.Triple; dir(t);"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_training_says_what_it_lacks():
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import slice_os.lab.train as t\n"
        "from slice_os.errors import MissingExtraError\n"
        "try: t.slice_loss\n"
        "except MissingExtraError as exc: print(exc)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'slice-os[train]'" in done.stdout


ROOT = Path(__file__).parents[3]


@pytest.fixture
def data(room, tmp_path):
    """Return a folder with rows of both kinds, and a base whose [UNK] stands for what is masked."""
    from transformers import AutoTokenizer  # here, since it takes seconds

    room()
    base = Path((tmp_path / "base").resolve())
    (tmp_path / "base").unlink()
    (tmp_path / "base").mkdir()
    for file in base.iterdir():
        (tmp_path / "base" / file.name).write_bytes(file.read_bytes())
    tokenizer = AutoTokenizer.from_pretrained(base)
    tokenizer.mask_token = "[UNK]"
    tokenizer.save_pretrained(tmp_path / "base")
    texts = sentences()
    phrases = [(text[:15], text[15:40], texts[-k - 1][:20]) for k, text in enumerate(texts[:20])]
    contexts = [
        (text[:15], f"[MASK] {text[15:]}", f"{texts[-k - 1][:30]} [MASK] {texts[-k - 1][45:]}")
        for k, text in enumerate(texts[:20])
    ]
    for name, rows in (("phrase-rows.tsv", phrases), ("context-rows.tsv", contexts)):
        text = "".join("\t".join(field.strip() or "x" for field in row) + "\n" for row in rows)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def recipe(data, *without):
    """Write recipes/phrase.toml for a small model and 20 steps, without some of the files."""
    text = (ROOT / "recipes/phrase.toml").read_text(encoding="utf-8")
    for key, value in (("base", '"base"'), ("steps", 20), ("learning_rate", 1e-3)):
        text, count = re.subn(rf"^{key} = .*$", f"{key} = {value}", text, flags=re.MULTILINE)
        assert count == 1
    for key in without:
        text, count = re.subn(rf"^{key} = .*\n", "", text, flags=re.MULTILINE)
        assert count == 1
    (data / "phrase.toml").write_text(text, encoding="utf-8")
    return data / "phrase.toml"


def test_vectors_are_means_of_tokens_at_any_length(checkpoint):
    student = Student(load_checkpoint(checkpoint("bert")))
    texts = [text[:40] for text in sentences()[:5]]
    with torch.no_grad():
        raw, unit = student.encode(texts, unit=False), student.encode(texts)
        tokens = student.words(texts, by_token=True)
    means = tokens.vectors.sum(dim=1) / tokens.counts[:, None]
    torch.testing.assert_close(raw, means, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(unit, torch.nn.functional.normalize(raw), atol=1e-6, rtol=1e-6)
    assert (raw.norm(dim=1) - 1).abs().min() > 0.1


@pytest.mark.parametrize("without", [(), ("phrases",), ("contexts",)])
def test_the_recipe_and_its_ablations_learn(data, without, losses_of):
    path = recipe(data, *without)
    wanted = read_recipe(path).triplets
    assert (wanted.batch, wanted.margin) == (16, 1.0)
    seen = []
    report = slice_os.train(path, data / "run", progress=seen.append)
    assert report.step == 20
    assert {*seen[0].losses} == {"phrases", "contexts"} - set(without)
    assert seen[0].rate > 0
    assert {*read_recipe(path).learnt_from()} == set(wanted.files.values())
    whole = Triplets("phrase-rows.tsv", "context-rows.tsv", batch=20)
    before, after = losses_of(PhraseTriplets(whole, data))
    for kind in seen[0].losses:
        assert after[kind] < 0.7 * before[kind]


def test_rows_are_read_in_order_and_skipped(data):
    objective, other = (
        PhraseTriplets(Triplets("phrase-rows.tsv", batch=3), data) for _ in range(2)
    )
    student, rng = Student(load_checkpoint(data / "base")), np.random.default_rng(0)
    with torch.no_grad():
        losses = [objective.losses(student, rng)["phrases"].item() for _ in range(8)]
        other.skip(5)
        assert other.losses(student, rng)["phrases"].item() == losses[5]


def test_a_phrase_is_masked_by_the_bases_own_token(data):
    base = Student(load_checkpoint(data / "base"))
    rows = (data / "context-rows.tsv").read_text().splitlines()
    fields = [row.replace("[MASK]", "[UNK]").split("\t") for row in rows[:4]]
    with torch.no_grad():
        found = PhraseTriplets(Triplets(contexts="context-rows.tsv", batch=4), data).losses(
            base, np.random.default_rng(0)
        )
        vectors = [base.encode(list(column), unit=False) for column in zip(*fields, strict=True)]
    p, near, far = (one.numpy() for one in vectors)  # the formula of the paper, section 3.1
    distances = np.linalg.norm(p - near, axis=1) - np.linalg.norm(p - far, axis=1)
    expected = np.maximum(0, 1 + distances).mean()
    assert found["contexts"].item() == pytest.approx(expected, rel=1e-4)


def test_a_base_that_masks_nothing(data, checkpoint):
    student = Student(load_checkpoint(checkpoint("bert")))
    objective = PhraseTriplets(Triplets(contexts="context-rows.tsv"), data)
    with pytest.raises(TrainingError, match="no token for a masked word"):
        objective.losses(student, np.random.default_rng(0))


def test_recipes_that_cannot_be_used(data):
    with pytest.raises(TrainingError, match="no file: name its phrases"):
        read_recipe(recipe(data, "phrases", "contexts"))
    (data / "phrase-rows.tsv").write_text("one\ttwo\n")
    with pytest.raises(TrainingError, match="line 1, is not query<TAB>positive"):
        slice_os.train(recipe(data), data / "run")
    (data / "phrase-rows.tsv").unlink()
    with pytest.raises(TrainingError, match=r"phrase-rows\.tsv does not exist"):
        slice_os.train(recipe(data), data / "run")

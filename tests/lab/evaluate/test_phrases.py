"""Phrase similarity, and encoders joined."""

from __future__ import annotations

import json
import runpy
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import scipy

import slice_os
from slice_os.encoders import load_encoder
from slice_os.errors import EncoderError, EvaluationError
from slice_os.exporters.graph import write_static
from slice_os.lab.evaluate import evaluate_phrases, lexical_diversity
from slice_os.lab.evaluate.phrase_sets import read_paws
from slice_os.lab.evaluate.phrases import _threshold
from support.verbs import run

BIRD = (
    "pair\tterm1\tterm2\tterm2: unigram or bigram\tsource\trelation\trelatedness score\tpos\n"
    + (
        "x\ttraffic jam\tcongestion\tunigram\tW\tNone\t0.9\tn-n\n"
        "x\ttraffic jam\tmarmalade\tunigram\tW\tNone\t0.2\tn-n\n"
        "x\tcourt case\tlawsuit\tunigram\tW\tNone\t0.85\tn-n\n"
        "x\tcourt case\ttennis\tunigram\tW\tNone\t0.15\tn-n\n"
    )
)
TURNEY = (
    "bass fiddle | contrabass | bass | fiddle | pitch | violin | speedway | snood\n"
    "traffic jam | congestion | traffic | jam | guitar | beetle | marriage | noun\n"
)
DEV = "in spite of|||despite|||4.8\ntalk to|||speak with|||4.5\nin spite of|||banana|||1\n"
DEV += "red car|||the parliament|||1.2\nrun away|||escape|||4.4\nof the|||cheese|||1.0\n"
TEST = "a big house|||a large house|||4.9\nquickly|||rapidly|||4.7\nquickly|||potato|||1.0\n"
TEST += "the old dog|||the old law|||1.5\nas well as|||in addition to|||3.0\n"
TRAIN = "".join(
    f"{a} of item {k}|||{b} {k}|||1.0\n{a} {k} here|||{b} thing {k}|||1.0\n"
    for k in range(30)
    for a, b in (("the price", "cost"), ("a picture", "photo"), ("my house", "home"))
)
PIC = {
    "data": [
        {"phrase1": a, "phrase2": b, "sentence1": s, "sentence2": s.replace(a, b), "label": label}
        for a, b, s, label in [
            ("big house", "large home", "They live in a big house by the sea.", "positive"),
            ("dark room", "photo laboratory", "He sat in the dark room and wept.", "negative"),
            ("first glass", "initial drink", "He broke the first glass again.", "negative"),
            ("fair deal", "just treatment", "It was a fair deal for all.", "positive"),
        ]
    ]
}
PAWS = "id\tsentence1\tsentence2\tlabel\n" + "".join(
    f"{k}\t{a}\t{b}\t{label}\n"
    for k, (a, b, label) in enumerate(
        [
            ("He flew from Paris to Rome", "He flew from Rome to Paris", 0),
            ("She quickly ate it", "She ate it quickly", 1),
            ("The good old man", "The old good man", 1),
            ("Dogs chase cats here", "Cats chase dogs here", 0),
            ("word " * 12, "word " * 12, 1),
        ]
    )
)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "bird.txt").write_text(BIRD)
    (tmp_path / "turney.txt").write_text(TURNEY)
    (tmp_path / "ppdb-train.txt").write_text(TRAIN)
    (tmp_path / "ppdb-dev.txt").write_text(DEV)
    (tmp_path / "ppdb-test.txt").write_text(TEST)
    (tmp_path / "pic-ps-train.json").write_text(json.dumps(PIC))
    (tmp_path / "pic-ps-dev.json").write_text(json.dumps(PIC))
    (tmp_path / "paws.tsv").write_text(PAWS)
    return tmp_path


def test_figures_agree_with_a_naive_computation(folder):
    told = []
    report = evaluate_phrases(folder, progress=told.append)
    tasks = ["BiRD", "Turney", "PPDB", "PPDB, probe", "PAWS-short", "PAWS-short, probe", "PiC-PS"]
    assert told == tasks
    assert report.absent == []
    # Four pairs do not make three parts of both answers.
    assert list(report.left_out) == ["PAWS-short, probe"]
    found = {(one.task, one.measure): one for one in report.figures}
    with slice_os.load_encoder() as encoder:

        def cosine(one, other):
            first, second = encoder.encode([one, other])
            return float(first @ second)

        rows = [line.split("\t") for line in BIRD.splitlines()[1:]]
        ours, gold = [cosine(row[1], row[2]) for row in rows], [float(row[6]) for row in rows]
        assert found["BiRD", "Pearson"].value == pytest.approx(scipy.stats.pearsonr(ours, gold)[0])
        right = {"all choices": 0, "without the components": 0}
        dots = 0
        for line in TURNEY.splitlines():
            bigram, answer, *others = line.split(" | ")
            best = cosine(bigram, answer)
            right["all choices"] += all(best > cosine(bigram, other) for other in others)
            right["without the components"] += all(
                best > cosine(bigram, other) for other in others[2:]
            )
            texts = [bigram, answer, *others[2:]]
            raw = np.stack([one.vectors.mean(axis=0) for one in encoder.encode_tokens(texts)])
            dots += (raw[1:] @ raw[0]).argmax() == 0
        for how, count in right.items():
            assert found[f"Turney, {how}", "accuracy"].value == count / 2
        products = found["Turney, without the components, dot products", "accuracy"]
        assert products.value == dots / 2
        pairs = [line.split("|||") for line in TEST.splitlines()]
        ours, gold = [cosine(a, b) for a, b, _ in pairs], [float(s) for _, _, s in pairs]
        expected = scipy.stats.spearmanr(ours, gold)[0]
        assert found["PPDB", "Spearman"].value == pytest.approx(expected)
    assert found["PPDB", "accuracy"].count == 4  # a score of 3 is neither yes nor no
    # "house" and "old" are in common.
    assert found["PPDB, no common word", "accuracy"].count == 2
    assert found["PPDB, no common word", "accuracy"].value == 1
    assert found["PPDB, probe", "accuracy"].count == 2 * round(0.15 * 180)
    assert found["PPDB, probe, filtered", "accuracy"].count > 20
    assert found["PAWS-short", "accuracy"].count == 4
    assert found["PiC-PS, in context", "accuracy"].count == 4


def test_a_threshold_makes_most_answers_right():
    rng = np.random.default_rng(2)
    for _ in range(50):
        cosines, yes = rng.random(12), rng.random(12) < 0.5
        bounds = [-1, *np.sort(cosines), 1]
        best = max(((cosines > bound) == yes).sum() for bound in bounds)
        assert ((cosines > _threshold(cosines, yes)) == yes).sum() == best


def test_lexical_diversity():
    found = lexical_diversity(
        [("The cat sat", ["a cat sat down", "the dog"]), ("one", ["one", "two"])]
    )
    # New are a, down and dog; the longest common substrings are " cat sat", "the " and "one".
    assert found.new_tokens == pytest.approx((3 / 3 + 1 / 1) / 2)
    assert found.lcs_precision == pytest.approx(((8 / 14 + 4 / 7) / 2 + (1 + 1 / 3) / 2) / 2)
    assert found.levenshtein == pytest.approx(((8 + 7) / 2 + (0 + 3) / 2) / 2)
    for none in ([], [("one", [])]):
        with pytest.raises(EvaluationError, match="no phrase to compare"):
            lexical_diversity(none)


def test_the_nearest_of_a_vocabulary(folder):
    words = [f"{a} {b}" for a in ("red", "blue", "old", "new") for b in ("car", "house", "dog")]
    (folder / "vocabulary.txt").write_text("\n".join([*words, "car", "house", "", "car"]))
    for file in ("turney.txt", "ppdb-train.txt", "ppdb-dev.txt", "paws.tsv", "pic-ps-dev.json"):
        (folder / file).unlink()
    report = evaluate_phrases(folder, vocabulary=folder / "vocabulary.txt")
    found = {one.measure: one.value for one in report.figures if one.task == "10 nearest phrases"}
    texts = [*words, "car", "house"]
    with slice_os.load_encoder() as encoder:
        vectors = encoder.encode(texts)
    near = [
        sorted(set(range(len(texts))) - {row}, key=lambda k: -float(vectors[row] @ vectors[k]))
        for row in range(len(words))
    ]
    groups = [(texts[row], [texts[k] for k in rows[:10]]) for row, rows in enumerate(near)]
    expected = lexical_diversity(groups)
    assert found["new_tokens"] == pytest.approx(expected.new_tokens)
    assert found["lcs_precision"] == pytest.approx(expected.lcs_precision)
    assert found["levenshtein"] == pytest.approx(expected.levenshtein)
    for few in ("car\nhouse\n", "\n".join(f"word{k}" for k in range(20))):
        (folder / "vocabulary.txt").write_text(few)
        with pytest.raises(EvaluationError, match="too small: give more than 10, among them"):
            evaluate_phrases(folder, vocabulary=folder / "vocabulary.txt")


def test_several_encoders_are_compared_with_the_best(tmp_path):
    rng = np.random.default_rng(3)
    pairs = [(f"w{k}", f"v{k}", round(float(rng.random()), 3)) for k in range(60)]
    rows = "".join(f"x\t{a}\t{b}\tu\tW\tN\t{score}\tn\n" for a, b, score in pairs)
    (tmp_path / "bird.txt").write_text(BIRD.splitlines()[0] + "\n" + rows)
    (tmp_path / "turney.txt").write_text(
        "".join(f"w{k} | v{k} | x | y | w{(k + 1) % 60}\n" for k in range(60))
    )
    words = [word for a, b, _ in pairs for word in (a, b)] + ["x", "y"]
    good, bad = rng.normal(size=(2, len(words), 8)).astype(np.float32)
    for k, (_, _, score) in enumerate(pairs):
        good[2 * k + 1] = score * good[2 * k] + 0.1 * good[2 * k + 1]
    for name, vectors in (("good", good), ("bad", bad)):
        write_static(tmp_path / name, words, vectors, name)
    encoders = [tmp_path / "bad", tmp_path / "good"]
    report = evaluate_phrases(tmp_path, encoder=encoders)
    assert report.encoders == [str(one) for one in encoders]
    found = {(one.encoder, one.measure, one.task): one for one in report.figures}
    choices = "Turney, all choices"
    for task, measure in (("BiRD", "Pearson"), ("BiRD", "Spearman"), (choices, "accuracy")):
        worse, best = (found[name, measure, task] for name in report.encoders)
        assert best.value > worse.value
        assert best.p is None
        assert worse.p < 0.01
    for one in encoders:
        alone = {(f.measure, f.task): f for f in evaluate_phrases(tmp_path, encoder=one).figures}
        assert all(figure.p is None for figure in alone.values())
        for (name, measure, task), figure in found.items():
            if name == str(one):
                assert figure.value == pytest.approx(alone[measure, task].value)
    # McNemar's exact test: of the examples that one alone has right, a fair coin decides.
    with load_encoder(tmp_path / "good") as first, load_encoder(tmp_path / "bad") as second:
        right = []
        for encoder in (first, second):
            vectors = dict(zip(words, encoder.encode(words), strict=True))
            right.append(
                [
                    vectors[f"w{k}"] @ vectors[f"v{k}"]
                    > max(vectors[f"w{k}"] @ vectors[x] for x in ("x", "y", f"w{(k + 1) % 60}"))
                    for k in range(60)
                ]
            )
    apart = Counter(zip(*right, strict=True))
    alone = apart[True, False] + apart[False, True]
    expected = scipy.stats.binomtest(apart[True, False], alone).pvalue
    p = found[report.encoders[0], "accuracy", choices].p
    assert p == pytest.approx(expected)
    shown = run("evaluate", "phrases", tmp_path, "--encoder", encoders[0], "--encoder", encoders[1])
    lines = shown.stdout.splitlines()
    assert "Williams' test of correlations, McNemar's of accuracies" in lines[0]
    assert lines[1].split() == ["task", "measure", "examples", *report.encoders]
    assert "*" in lines[2]
    assert lines[2].endswith("+")
    with pytest.raises(EvaluationError, match="No encoder is given"):
        evaluate_phrases(tmp_path, encoder=[])


def test_only_short_sentences_of_paws(folder):
    assert len(read_paws(folder / "paws.tsv")) == 4


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("bird.txt", "a\tb\n1\t2\n", "line 2, has no column term1"),
        ("bird.txt", BIRD.replace("0.85", "8.5"), "line 4"),
        ("turney.txt", "bass fiddle | contrabass\n", "line 1, is not a bigram"),
        ("ppdb-test.txt", "one|||two\n", "line 1, has no column score"),
        ("pic-ps-dev.json", '{"data": [{"phrase1": 1}]}', "not PiC-PS's JSON"),
        ("paws.tsv", "id\tsentence1\n1\ta\n", "line 2, has no column sentence2"),
        ("bird.txt", "", "is empty"),
        ("bird.txt", BIRD.splitlines()[0], "holds no pair"),
    ],
)
def test_a_file_that_cannot_be_used(folder, name, text, message):
    (folder / name).write_text(text)
    with pytest.raises(EvaluationError, match=message) as caught:
        evaluate_phrases(folder)
    assert "\n" not in str(caught.value)


def test_the_command_line(folder, tmp_path, monkeypatch):
    (folder / "paws.tsv").unlink()
    shown = run("evaluate", "phrases", folder)
    assert shown.stdout.splitlines()[0].split() == ["task", "measure", "examples", "value"]
    assert "Not in the folder: paws." in shown.stderr
    assert "left out" not in shown.stderr
    monkeypatch.setenv("SLICE_OS_ENCODER", str(tmp_path / "none"))
    assert str(tmp_path / "none") in run("evaluate", "phrases", folder, ok=1).stderr
    monkeypatch.delenv("SLICE_OS_ENCODER")
    for path in folder.glob("ppdb*"):  # a probe takes long
        path.unlink()
    said = json.loads(run("evaluate", "phrases", folder, "--json").stdout)
    assert said["absent"] == ["ppdb-train", "ppdb-dev", "ppdb-test", "paws"]
    (tmp_path / "empty").mkdir()
    failed = run("evaluate", "phrases", tmp_path / "empty", ok=1)
    assert "holds none of bird.txt" in failed.stderr


def test_no_threshold_parts_what_is_equal():
    assert _threshold(np.full(4, 0.5), [False, True, True, True]) < 0.5
    assert _threshold(np.full(4, 0.5), [True, False, False, False]) > 0.5
    assert 0.2 < _threshold(np.array([0.2, 0.2, 0.7, 0.7]), [False, False, True, True]) < 0.7


Ensemble = runpy.run_path(str(Path(__file__).parents[3] / "recipes/static_peers.py"))["Ensemble"]
TEXTS = ["red fox", "a red dog", "the fox", "dog"]


@pytest.fixture
def encoders(tmp_path):
    words = ["red", "fox", "dog", "a", "the"]
    for size in (4, 9):
        vectors = np.random.default_rng(size).normal(size=(5, size)).astype(np.float32) * size
        write_static(tmp_path / str(size), words, vectors, str(size))
    return [load_encoder(tmp_path / str(size)) for size in (4, 9)]


@pytest.mark.parametrize("weights", [(), (1.0, 3.0)])
def test_a_cosine_is_the_weighted_mean_of_the_encoders(encoders, weights):
    joined = Ensemble(encoders, weights).encode(TEXTS)
    squares = np.square(weights or (1, 1))
    cosines = [one @ one.T for one in (encoder.encode(TEXTS) for encoder in encoders)]
    wanted = np.average(cosines, axis=0, weights=squares)
    assert joined.shape == (4, 13)
    np.testing.assert_allclose(joined @ joined.T, wanted, atol=1e-5)


def test_no_spans_and_no_bad_weights(encoders):
    with pytest.raises(EncoderError, match="not words in context"):
        Ensemble(encoders).encode_words(TEXTS)
    for weights in ((1.0,), (1.0, 0.0)):
        with pytest.raises(EncoderError, match="cannot be joined"):
            Ensemble(encoders, weights)
    with pytest.raises(EncoderError, match="cannot be joined"):
        Ensemble([])

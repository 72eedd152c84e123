"""`slice-os evaluate spans` and `slice-os calibrate`: marked spans, thresholds, samples."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import slice_os
from slice_os import Document
from slice_os.calibration.gold import (
    GoldSpan,
    at_threshold,
    average_precision,
    evaluate_spans,
    judge,
    read_gold,
)
from slice_os.calibration.labels import Labels, draw_sample, labels_from_gold, read_labels
from slice_os.calibration.thresholds import calibrate, curve
from slice_os.errors import EvaluationError
from slice_os.exporters.graph import sentences
from slice_os.types import Match
from support.verbs import run

QUERY = "the customer wants to cancel"
SAID = ["I would like to cancel my contract", "please end my subscription", "I want to cancel it"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spans")
    fillers = sentences()
    texts = [f"{fillers[k]} {said}. {fillers[k + 5]}" for k, said in enumerate(SAID)]
    texts.append(fillers[30])
    with slice_os.open(folder / "i.slice") as index:
        index.add([Document(f"d{k}", text) for k, text in enumerate(texts)])
    rows = [
        {"query": QUERY, "document": f"d{k}", "start": texts[k].index(said)}
        for k, said in enumerate(SAID)
    ]
    rows = [{**row, "end": row["start"] + len(SAID[k])} for k, row in enumerate(rows)]
    (folder / "gold.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


def match(document, start, end, degree, phrase="q"):
    return Match(phrase, phrase, document, 0, start, end, "", degree, start, end)


def test_measures_agree_with_a_naive_computation():
    gold = [GoldSpan("q", "a", 0, 10), GoldSpan("q", "a", 50, 60), GoldSpan("q", "b", 5, 9)]
    matches = [
        match("a", 5, 15, 0.9),  # half of the first
        match("b", 20, 30, 0.85),  # wrong
        match("a", 0, 4, 0.8),  # the first again
        match("b", 5, 9, 0.7),  # right
        match("z", 0, 5, 0.95),  # nobody judged it
    ]
    judged, unjudged = judge(gold, matches)
    assert unjudged == 1
    assert [(one.correct, bool(one.found)) for one in judged] == [
        (True, True),
        (False, False),
        (True, False),
        (True, True),
    ]
    # The first is found at rank 1 of 1, the third at rank 3 of what is right or wrong, the second
    # never.
    assert average_precision(judged, 3) == pytest.approx((1 / 1 + 2 / 3) / 3)
    found = at_threshold(judged, 3, 0.8)
    assert (found.precision, found.recall, found.matches) == (2 / 3, 1 / 3, 3)
    assert found.f1 == pytest.approx(2 * (2 / 3) * (1 / 3) / (2 / 3 + 1 / 3))


def test_marked_spans_are_found(place):
    with slice_os.open(place / "i.slice") as index:
        report = evaluate_spans(place / "gold.jsonl", index, rescore=True)
        plain = evaluate_spans(place / "gold.jsonl", index, min_degree=0.7)
    assert (report.gold, report.documents) == (3, 3)
    assert report.overlap == 1
    assert 0.5 < report.best_span_f1 <= 1
    assert 0.5 < report.average_precision <= 1
    assert [one.degree for one in plain.thresholds] == [0.7, 0.75, 0.8, 0.85, 0.9, 0.95]
    recalls = [one.recall for one in report.thresholds]
    assert recalls == sorted(recalls, reverse=True)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ('{"query": "a", "document": "d", "start": 5, "end": 5}', "line 1: the span 5 to 5"),
        ('{"query": "a", "document": "d", "start": -5, "end": 5}', "line 1: '-5' is not a score"),
        ('{"query": "a", "document": "d", "start": 5}', "line 1, has no column end"),
        ('{"query": "a", "document": ""}', "line 1, has nothing in the column document"),
        ("", "holds no span"),
        ("[1]", "line 1, is list, not an object"),
        ('{"query": "q", "document": "a", "start": 15.9, "end": 20}', "must be whole numbers"),
        ('{"query": "q", "document": "a", "start": null, "end": 20}', "nothing in the column"),
    ],
)
def test_marked_spans_that_cannot_be_used(tmp_path, rows, message):
    (tmp_path / "gold.jsonl").write_text(rows)
    with pytest.raises(EvaluationError, match=message):
        read_gold(tmp_path / "gold.jsonl")


def test_documents_that_the_index_has_not(place, tmp_path):
    row = {"query": QUERY, "document": "elsewhere", "start": 0, "end": 5}
    (tmp_path / "gold.jsonl").write_text(json.dumps(row))
    with (
        slice_os.open(place / "i.slice") as index,
        pytest.raises(EvaluationError, match="check their ids"),
    ):
        evaluate_spans(tmp_path / "gold.jsonl", index)


def labels(count=400, seed=0):
    """Return matches that are right with a probability that grows with the degree."""
    rng = np.random.default_rng(seed)
    degrees = rng.uniform(0.6, 1.0, count)
    correct = rng.random(count) < (degrees - 0.6) / 0.4
    return Labels(degrees, correct, np.ones(count))


def test_the_lowest_degree_of_a_precision_and_the_highest_of_a_recall():
    one = labels()
    found = calibrate(one, precision=0.85)
    kept = one.degrees >= found.degree
    assert one.correct[kept].mean() == pytest.approx(found.precision)
    assert found.precision >= 0.85
    lower = one.degrees[one.degrees < found.degree]
    assert all(one.correct[one.degrees >= degree].mean() < 0.85 for degree in lower)
    found = calibrate(one, recall=0.9)
    assert one.correct[one.degrees >= found.degree].sum() >= 0.9 * one.correct.sum()
    assert one.correct[one.degrees > found.degree].sum() < 0.9 * one.correct.sum()


def test_the_interval_holds_what_is_true():
    # Matches of degree d are right with (d - 0.6)/0.4, so those from t on with (t - 0.2)/0.8.
    true = 0.2 + 0.8 * 0.85
    inside = 0
    for seed in range(20):
        low, high = calibrate(labels(seed=seed), precision=0.85).degree_interval
        inside += low <= true <= high
    assert inside >= 15


def test_weights_stand_for_what_was_not_drawn():
    degrees = np.array([0.9, 0.8, 0.7])
    correct = np.array([True, False, True])
    _, precision, recall = curve(Labels(degrees, correct, np.array([1.0, 3.0, 4.0]), missed=5))
    np.testing.assert_allclose(precision, [1, 1 / 4, 5 / 8])
    np.testing.assert_allclose(recall, [1 / 10, 1 / 10, 5 / 10])


@pytest.mark.parametrize(
    ("correct", "weights", "target", "message"),
    [
        ([True, True], [1, 1], {}, "either a precision or a recall"),
        ([True, True], [1, 1], {"precision": 0.5, "recall": 0.5}, "either a precision or a recall"),
        ([False, False], [1, 1], {"precision": 0.5}, "No match is labelled as right"),
        ([True, False], [0, 0], {"recall": 0.9}, "No match is labelled as right"),
        ([False, True], [1, 1], {"precision": 0.9}, "No degree reaches a precision"),
        ([True], [1], {"precision": 0.9}, "fewer than two labels"),
    ],
)
def test_what_cannot_be_calibrated(correct, weights, target, message):
    degrees = np.array([0.9, 0.8][: len(correct)])
    with pytest.raises(EvaluationError, match=message):
        calibrate(Labels(degrees, np.array(correct), np.array(weights, float)), **target)


def test_labels_from_marked_spans(place):
    with slice_os.open(place / "i.slice") as index:
        found = labels_from_gold(place / "gold.jsonl", index, 0.6, rescore=True)
    assert found.correct.sum() + found.missed == 3
    assert 0.6 <= calibrate(found, recall=0.3).degree <= 1


def test_a_sample_is_drawn_labelled_and_read(place, tmp_path):
    out = tmp_path / "sample.csv"
    matches = [match("d", k, k + 5, 0.6 + 0.4 * (k / 200) ** 2) for k in range(200)]
    assert draw_sample(matches, out, 50) == 50
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert sum(float(row["weight"]) for row in rows) == pytest.approx(200, abs=0.1)
    degrees = np.array([float(row["degree"]) for row in rows])
    assert (degrees > 0.8).sum() >= 20  # two thirds of the matches are below
    with pytest.raises(EvaluationError, match="exists, perhaps with labels"):
        draw_sample(matches, out, 50)
    with pytest.raises(EvaluationError, match="no labelled row"):
        read_labels(out)
    text = out.read_text().splitlines()
    labelled = [text[0], *("yes" + line for line in text[1:31]), *text[31:]]
    out.write_text("\n".join(labelled))
    assert len(read_labels(out).degrees) == 30
    out.write_text("\n".join([text[0], "maybe" + text[1]]))
    with pytest.raises(EvaluationError, match="line 2: the column correct says 'maybe'"):
        read_labels(out)
    with pytest.raises(EvaluationError, match="Nothing was mined"):
        draw_sample([], tmp_path / "none.csv")


def test_the_command_line(place, tmp_path):
    gold, index = place / "gold.jsonl", ["--index", place / "i.slice"]
    command = ["evaluate", "spans", gold, *index]
    shown = run(*command).stdout
    assert shown.startswith("3 spans in 3 documents: best-span F1 ")
    assert json.loads(run(*command, "--json").stdout)["gold"] == 3
    command = ["calibrate", gold, *index, "--recall", "0.3"]
    command += ["--plot", tmp_path / "plot.svg"]
    shown = run(*command).stdout
    assert "95 % interval" in shown
    assert "<svg" in (tmp_path / "plot.svg").read_text()
    (tmp_path / "phrases.txt").write_text(QUERY + "\n")
    out = tmp_path / "sample.csv"
    run("calibrate", tmp_path / "phrases.txt", *index, "--draw", 5, "--output", out)
    lines = out.read_text().splitlines()
    assert lines[0].startswith("correct,degree,name,phrase")
    with out.open(newline="") as file, slice_os.open(place / "i.slice") as opened:
        for row in csv.DictReader(file):
            assert f"«{' '.join(row['text'].split())}»" in row["sentence"]
            said = " ".join(row["sentence"].replace("«", "").replace("»", "").split()).strip("… ")
            assert said in " ".join(opened.show(row["document"]).text.split())
            assert len(said) >= len(row["text"])
    out.write_text("\n".join([lines[0], *("yes" + line for line in lines[1:])]))
    shown = run("calibrate", out, "--precision", 0.9).stdout
    assert "precision  1.000" in shown
    failed = run("calibrate", out, ok=1)
    assert "either a precision or a recall" in failed.stderr


def test_a_match_of_two_marked_spans_finds_both():
    gold = [GoldSpan("q", "a", 0, 10), GoldSpan("q", "a", 11, 20)]
    judged, _ = judge(gold, [match("a", 0, 20, 0.9)])
    assert average_precision(judged, 2) == 1.0
    assert at_threshold(judged, 2, 0.8).recall == 1.0


def test_intervals_hold_what_other_labels_say_at_the_same_degree():
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(40):
        degrees = rng.uniform(0.5, 1, 60)
        found = calibrate(Labels(degrees, rng.random(60) < degrees, np.ones(60)), precision=0.85)
        truth = (found.degree + 1) / 2  # the mean of what lies above, as each is right so often
        held += found.precision_interval[0] <= truth <= found.precision_interval[1]
    assert held >= 32  # of those re-chosen for the precision wanted, half are


def test_twelve_right_labels_prove_no_precision_of_one():
    found = calibrate(Labels(np.linspace(0.6, 1, 12), np.ones(12), np.ones(12)), precision=0.9)
    assert found.precision == 1.0
    assert found.precision_interval == pytest.approx((0.757, 1.0), abs=0.001)  # Wilson, 12 of 12


def test_a_sample_with_labels_is_read_as_one_whatever_index_is_set(place, monkeypatch):
    monkeypatch.setenv("SLICE_OS_INDEX", str(place / "i.slice"))
    rows = "".join(
        f"{said},{n / 10},q,t,d0,0,{n}\n" for n, said in enumerate(["no", "yes", "yes"], 6)
    )
    (place / "sample.csv").write_text(f"correct,degree,phrase,text,document,start,end\n{rows}")
    done = run("calibrate", place / "sample.csv", "--precision", 0.9, "--json")
    assert json.loads(done.stdout)["labels"] == 3
    with pytest.raises(EvaluationError, match="a sample with labels"):
        read_gold(place / "sample.csv")


def test_a_picture_is_refused_before_the_work(place):
    done = run("calibrate", place / "nothing.csv", "--precision", 0.9, "--plot", "x.foo", ok=1)
    assert "x.foo cannot be drawn" in done.stderr


def test_documents_that_the_index_does_not_hold_are_counted_and_said(place, tmp_path):
    row = {"query": QUERY, "document": "nowhere", "start": 1, "end": 9}
    gold = (place / "gold.jsonl").read_text()
    (tmp_path / "gold.jsonl").write_text(f"{gold}\n{json.dumps(row)}")
    with slice_os.open(place / "i.slice") as index:
        assert index.holds(["d0", "nowhere", "d2"]) == {"d0", "d2"}
        assert evaluate_spans(tmp_path / "gold.jsonl", index).missing == 1
        assert labels_from_gold(tmp_path / "gold.jsonl", index, 0.6).missing == 1
    done = run("evaluate", "spans", tmp_path / "gold.jsonl", "--index", place / "i.slice")
    assert "does not hold 1 document of the file" in done.stderr

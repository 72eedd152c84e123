"""Topics measured beside LDA's, on themes that are known."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import slice_os
from slice_os.cli.main import main
from slice_os.errors import EvaluationError
from slice_os.lab.topics import comparing


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(comparing, "PASSES", 2)
    monkeypatch.setattr(comparing, "ITERATIONS", 20)


def evaluate(corpus, vectors, **more):
    read = slice_os.read(corpus, id_global=True)
    return slice_os.evaluate_topics(read, [3], encoder=vectors, least=3, seeds=2, **more)


def test_every_model_is_measured(corpus, vectors):
    found = {one.model: one for one in evaluate(corpus, vectors, label="theme")}
    assert list(found) == ["topics", "topics, nearest phrases", "as published", "LDA"]
    ours = found["topics"].means
    assert (ours["NMI"], ours["purity"], ours["topics"]) == (1, 1, 3)
    assert ours["relatedness, rater"] == 1
    assert ours["intrusion, rater"] > 0.9
    assert -1 < ours["NPMI"] < 1
    assert found["topics, nearest phrases"].means["NMI"] == ours["NMI"]
    lda = found["LDA"]
    assert lda.means["NMI"] < 1
    assert lda.deviations["NMI"] > 0


def test_the_label_may_be_a_part_of_the_id(corpus, vectors):
    arguments = (corpus, "--encoder", vectors, "-k", 3, "--seeds", 1, "--least", 3)
    label = ("--id-global", "--label", "id", "--label-pattern", "^[a-z]+")
    given = map(str, ["evaluate", "topics", *arguments, *label])
    done = CliRunner().invoke(main, [*given, "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found[0]["means"]["purity"] == 1
    assert [one["model"] for one in found] == [*comparing.MODELS]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"label": "colour"}, "has no label in colour"),
        ({"label": "id", "pattern": "^[0-9]+"}, "has no label in id"),
        ({"label": "id", "pattern": "("}, "is no regular expression"),
        ({"label": "id", "pattern": "-"}, "All documents have the same id"),
    ],
)
def test_labels_that_are_none(more, message, corpus, vectors):
    with pytest.raises(EvaluationError, match=message):
        evaluate(corpus, vectors, **more)

"""Measures of topics by definition and by gensim, and topics measured beside LDA's."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import slice_os
from slice_os.cli.main import main
from slice_os.errors import EvaluationError
from slice_os.lab.topics import comparing
from slice_os.lab.topics.comparing import (
    coherence,
    cooccurrence,
    intrusion,
    nmi,
    purity,
    relatedness,
)
from slice_os.lab.topics.vocabulary import occurrences, read_texts


def test_topics_that_are_the_labels_under_other_names():
    labels = np.array([0, 0, 1, 1, 2, 2])
    assert nmi(labels[::-1], labels) == pytest.approx(1)
    assert purity(np.array([2, 2, 0, 0, 1, 1]), labels) == 1


def test_topics_that_say_nothing_of_labels():
    labels = np.array([0, 1] * 50)
    assert nmi(np.zeros(100, int), labels) == 0
    assert nmi(np.repeat([0, 1], 50), labels) == pytest.approx(0)
    assert purity(np.zeros(100, int), labels) == 0.5


def test_nmi_by_hand():
    topics, labels = np.array([0, 0, 0, 1]), np.array([0, 0, 1, 1])
    shared = 0.5 * np.log(0.5 / (0.75 * 0.5)) + 0.25 * np.log(0.25 / (0.75 * 0.5))
    shared += 0.25 * np.log(0.25 / (0.25 * 0.5))
    entropies = -0.75 * np.log(0.75) - 0.25 * np.log(0.25) + np.log(2)
    assert nmi(topics, labels) == pytest.approx(2 * shared / entropies)
    assert purity(topics, labels) == 0.75


def test_npmi_is_gensims():
    from gensim.corpora import Dictionary
    from gensim.models import CoherenceModel

    rng = np.random.default_rng(0)
    words = ["tea", "milk", "sugar", "anchor", "ship", "sail"]
    texts = [rng.choice(words, 4).tolist() for _ in range(200)]
    topics = [words[:3], words[3:]]
    wanted = CoherenceModel(
        topics=topics,
        texts=texts,
        dictionary=Dictionary(texts),
        coherence="c_npmi",
        window_size=100,
        topn=3,
        processes=1,
    ).get_coherence()
    held = occurrences(read_texts(map(" ".join, texts)), words)
    assert coherence(topics, cooccurrence(held, len(texts))) == pytest.approx(wanted, abs=1e-6)


def test_npmi_at_its_ends():
    held = {"a": np.array([0, 1]), "b": np.array([0, 1]), "c": np.array([2])}
    found = cooccurrence(held, 4)(["a", "b", "c"])
    assert found[0, 1] == pytest.approx(1)
    assert found[0, 2] == -1


def described(likeness_within):
    """Return three topics of 60 items, and how alike items are: of one topic so much, else 0."""
    topics = [[f"{name}{k}" for k in range(60)] for name in "xyz"]

    def likeness(items):
        own = np.array([item[0] for item in items])
        return likeness_within * (own[:, None] == own).astype(float)

    return topics, likeness


def test_an_intruder_is_found_if_topics_are_alike_within():
    assert intrusion(*described(1.0), seed=0) == 1
    assert intrusion(*described(-1.0), seed=0) == 0


def test_without_another_topic_there_is_no_intruder():
    assert np.isnan(intrusion([["a", "b", "c", "d", "e"]], lambda items: np.eye(len(items)), 0))


def test_passages_are_nearer_to_their_own_topic():
    topics = np.arange(30) % 3
    described = np.eye(3, dtype=np.float32)
    assert relatedness(described[topics], topics, described, 0) == 1
    assert relatedness(described[(topics + 1) % 3], topics, described, 0) < 0.7
    assert relatedness(np.ones((30, 3), np.float32), topics, described, 0) == 0


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

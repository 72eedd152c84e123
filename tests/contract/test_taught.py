"""A taught phrase finds the same on every backend, at the cost of a phrase."""

from __future__ import annotations

import numpy as np
import pytest

import slice_os
from slice_os.spans import SpanTables
from slice_os.teaching.record import Label, Prototype, TaughtPhrase
from slice_os.teaching.retrieval import compared

from .conftest import TEXTS

PHRASE = "the customer wants to cancel"


@pytest.fixture
def taught(encoder):
    info = encoder.info
    vectors = encoder.encode(["I would like to end my subscription", "the ship sank"])
    prototypes = tuple(Prototype(vector, 15.0, -9.0, 2, 7) for vector in vectors)
    return TaughtPhrase("ends", (PHRASE,), prototypes, info.name, info.weights_hash)


def naive(index, taught):
    """Return the best probability of each passage, of all its spans."""
    found = {}
    for stored in index.passages():
        tables = SpanTables(stored.packed, stored.passage.text)
        logits = compared(tables, taught.prototypes)[1]
        found[stored.passage.document, stored.passage.number] = float(
            1 / (1 + np.exp(-logits.max()))
        )
    return found


@pytest.mark.parametrize("probability", [0.05, 0.5, 0.9])
def test_mining_finds_every_passage_that_has_the_probability(index, taught, probability):
    best = naive(index, taught)
    found = list(index.mine(taught, min_probability=probability))
    expected = {key for key, chance in best.items() if chance >= probability}
    assert {(one.document, one.passage) for one in found} == expected
    for one in found:
        text = TEXTS[one.document]
        assert text[one.document_start : one.document_end] == one.text
        assert one.name == "ends"
        assert probability <= one.probability <= best[one.document, one.passage] + 1e-6
    by_passage = {}
    for one in found:
        for other in by_passage.setdefault((one.document, one.passage), []):
            assert one.end <= other.start or other.end <= one.start
        by_passage[one.document, one.passage].append(one)


def test_a_filter_and_the_graph(index, taught):
    every = list(index.mine(taught, min_probability=0.1))
    some = list(index.mine(taught, min_probability=0.1, filters={"year": 2018}))
    assert some == [one for one in every if one.document == "cancel"]
    by_graph = list(index.mine(taught, min_probability=0.5, graph=True))
    assert by_graph
    assert {one.document for one in by_graph} <= {one.document for one in every}


def test_hits_are_ranked_by_probability(index, taught):
    best = naive(index, taught)
    hits = index.search_taught(taught, size=5)
    assert [hit.probability for hit in hits] == pytest.approx(
        sorted(best.values(), reverse=True)[:5], abs=1e-4
    )
    assert {hit.document for hit in hits[:2]} == {"cancel", "ship"}


def test_teaching_asks_and_learns(index, tmp_path):
    file = tmp_path / "ends.json"
    session = index.teach(PHRASE, output=file)
    for _ in range(2):
        for one in session.ask(3):
            session.answer(one, one.document == "cancel" and "subscription" in one.text)
        session.learn()
    again = index.teach(output=file)
    assert again.labels == session.labels
    assert again.taught().prototypes[0].vector == pytest.approx(
        session.taught().prototypes[0].vector, abs=0.3
    )


def test_labels_are_found_in_the_index(index):
    start = TEXTS["cancel"].index("end my subscription")
    labels = [
        Label("cancel", start, start + 19, True, "end my subscription", True),
        Label("ship", 0, 12, False, TEXTS["ship"][:12]),
        Label("bill", 0, 12, False, TEXTS["bill"][:12]),
    ]
    session = index.teach(PHRASE, labels=labels)
    assert session.stale == []
    best = max(index.mine(session.taught(), min_probability=0.01), key=lambda one: one.probability)
    assert best.document == "cancel"


def test_liked_and_disliked_hits(index):
    liked = index.search("a text", size=7, mode="dense", late=0, liked=["the ship sank"])
    assert liked[0].document == "ship"
    away = index.search("the ship sank", size=7, mode="dense", late=0, disliked=[liked[0]])
    assert away[0].score < index.search("the ship sank", size=1, mode="dense", late=0)[0].score


def test_it_goes_to_a_new_index_with_its_labels(index, encoder, new_location, tmp_path):
    file = tmp_path / "ends.json"
    session = index.teach(PHRASE, output=file)
    for one in session.ask(4):
        session.answer(one, one.document == "cancel")
    session.learn()
    with slice_os.open(new_location(), encoder=encoder) as other:
        other.add([slice_os.Document(name, text) for name, text in TEXTS.items()])
        anew = other.teach(taught=file)
        assert len(anew.teacher.answers) == len(session.teacher.answers)

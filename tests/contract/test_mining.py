"""What mining promises, on every backend."""

from __future__ import annotations

import numpy as np
import pytest

import slice_os
from slice_os.errors import QueryError
from slice_os.spans import (
    Weights,
    degree,
)
from slice_os.storage.cluster.mining_scan import Scan
from slice_os.text import count_words, split
from slice_os.text.normal_form import plain, same_words

from .conftest import TEXTS, corpus
from .exhaustive import naive


def shown_degrees(encoder, phrase):
    """Return the degree of every span, each encoded alone: (document, passage, start, end)."""
    in_context = naive(encoder, phrase)
    passages = {(p.document, p.number): p.text for d in corpus() for p in split(d, 40)}
    texts = [passages[key[:2]][key[2] : key[3]] for key in in_context]
    alone = encoder.encode(list(map(plain, texts))) @ encoder.encode([plain(phrase)])[0]
    weights = Weights.of(count_words(phrase))
    context = 2 * np.array(list(in_context.values())) - 1
    degrees = degree(weights.combine(context, alone.astype(float)))
    same = [same_words(text, phrase) for text in texts]
    return dict(zip(in_context, np.where(same, 1, degrees).tolist(), strict=True))


def test_mining_finds_what_an_exhaustive_scan_finds(index, encoder):
    phrases = {"end": "end my subscription", "boat": "the boat went down", "price": "too expensive"}
    for threshold in (0.75, 0.85):
        mined = list(index.mine(phrases, min_degree=threshold))
        assert [m.degree >= threshold - 1e-6 for m in mined] == [True] * len(mined)
        for name, phrase in phrases.items():
            spans = shown_degrees(encoder, phrase)
            own = [m for m in mined if m.name == name]
            found = [  # or a better one that overlaps it
                any(
                    (m.document, m.passage) == key[:2] and m.start < key[3] and key[2] < m.end
                    for m in own
                )
                for key, value in spans.items()
                if value > threshold + 0.002
            ]
            assert sum(found) >= 0.97 * len(found)  # few are encoded: docs/results.md
            for match in own:
                place = match.document, match.passage, match.start, match.end
                assert match.degree == pytest.approx(spans[place], abs=0.002)
            for a in own:
                assert not any(
                    b is not a and b.document == a.document and b.passage == a.passage
                    and b.start < a.end and a.start < b.end
                    for b in own
                )  # fmt: skip
        for match in mined:
            text = TEXTS[match.document]
            assert text[match.document_start : match.document_end] == match.text


def test_the_graph_names_some_of_the_passages(index, monkeypatch):
    monkeypatch.setattr(Scan, "graph_pays", lambda self: True)
    key = lambda match: (match.name, match.document, match.start, match.degree)  # noqa: E731
    phrases = ["end my subscription", "the boat went down"]
    every = set(map(key, index.mine(phrases, min_degree=0.75)))
    assert set() < set(map(key, index.mine(phrases, min_degree=0.75, graph=True))) <= every


@pytest.mark.slow
def test_mining_many_phrases_is_mining_each(index):
    phrases = [f"{word} number {n}" for n in range(140) for word in ("seat", "ship")]
    together = {m.to_dict().values().__str__() for m in index.mine(phrases, min_degree=0.68)}
    some = phrases[:3] + phrases[-3:]
    apart = {m.to_dict().values().__str__() for p in some for m in index.mine([p], min_degree=0.68)}
    assert apart <= together
    assert len({m.phrase for m in index.mine(phrases, min_degree=0.0)}) == len(phrases)


SAID = {
    "no": "Hello. I do not want to cancel my subscription, I want to keep it for another year.",
    "yes": "Hello. I want to cancel my subscription, I have no use for it any more.",
    "close": "Hello. Please close my account today, I have no use for it any more.",
    "twice": "I want to cancel my subscription. As I said: please, cancel my subscription now.",
}
LEAVE = ["I want to cancel my subscription", "close my account"]
STAY = "I do not want to cancel my subscription"


@pytest.fixture(scope="module")
def said(new_location):
    location = new_location()
    slice_os.index([slice_os.Document(name, text) for name, text in SAID.items()], location)
    with slice_os.open(location, judge=None) as opened:
        yield opened


@pytest.mark.parametrize("rescore", [False, True])
def test_any_phrase_of_a_name_matches_unless_a_counter_example_is_nearer(said, rescore):
    asked = {"min_degree": 0.85, "rescore": rescore}
    found = list(said.mine({"leave": LEAVE, "other": "a ship"}, **asked))
    assert {m.name for m in found} == {"leave"}
    assert {(m.document, m.phrase) for m in found} == {
        ("close", LEAVE[1]), *((name, LEAVE[0]) for name in ("no", "yes", "twice"))
    }  # fmt: skip
    alone = [m for phrase in LEAVE for m in said.mine([phrase], **asked)]
    for match in found:
        best = max(
            one.degree for one in alone
            if one.document == match.document and one.start < match.end and match.start < one.end
        )  # fmt: skip
        assert match.degree == pytest.approx(best, abs=1e-6)
        assert SAID[match.document][match.document_start : match.document_end] == match.text
    left = list(said.mine({"leave": LEAVE}, counter_examples={"leave": STAY}, **asked))
    assert {m.document for m in left} == {"close", "yes", "twice"}
    places = {(m.document, m.start, m.end) for m in found}
    assert all((m.document, m.start, m.end) in places for m in left)
    every = {"leave": [*LEAVE, STAY]}  # what is as near to both stays
    same = said.mine({"leave": [*LEAVE, STAY]}, counter_examples=every, **asked)
    assert {m.document for m in same} == set(SAID)
    if rescore:
        with slice_os.open(said.location) as judged:  # "I don't want to …" needs none then
            kept = {m.document for m in judged.mine({"leave": LEAVE}, **asked)}
        assert kept == {"close", "yes", "twice"}


def test_a_match_names_who_says_it(new_location):
    turns = "Ann: my card was stolen\nBob: sorry\nand thank you for calling\nAnn: thank you"
    talk = slice_os.Document("talk", turns, metadata={"speakers": ["Bob", "Ann"]})
    row = slice_os.Document("other", "Ann: thank you for the card", metadata={"speakers": 3})
    location = new_location()
    slice_os.index([talk, row], location)
    with slice_os.open(location) as index:
        matches = list(index.mine("thank you", min_degree=0.99))
    said = [(match.document, match.speaker) for match in matches]
    assert sorted(said) == [("other", ""), ("talk", "Ann"), ("talk", "Bob")]


def test_the_best_matches(said):
    sought = {"leave": LEAVE, "use": "I have no use for it"}
    every = list(said.mine(sought, min_degree=0.7))
    by_degree = list(said.mine(sought, min_degree=0.7, sort="degree"))
    assert by_degree == sorted(every, key=lambda m: -m.degree)
    top = list(said.mine(sought, min_degree=0.7, top=2))
    for name in sought:
        best = [m.degree for m in by_degree if m.name == name][:2]
        assert [m.degree for m in top if m.name == name] == best
    each = list(said.mine(sought, min_degree=0.7, per_document=True))
    assert {(m.name, m.document) for m in each} == {(m.name, m.document) for m in every}
    assert len(each) == len({(m.name, m.document) for m in each}) < len(every)
    for match in each:
        assert match.degree == max(
            m.degree for m in every if (m.name, m.document) == (match.name, match.document)
        )
    (best,) = said.mine({"leave": LEAVE}, min_degree=0.7, per_document=True, top=1, sort="degree")
    assert best.degree == max(m.degree for m in every if m.name == "leave")
    for bad in ({"top": 0}, {"sort": "name"}, {"counter_examples": {"go": "x"}}):
        with pytest.raises(QueryError):
            said.mine({"leave": LEAVE}, **bad)
    with pytest.raises(QueryError, match="no phrase for 'leave'"):
        said.mine({"leave": []})


@pytest.mark.parametrize("graph", [False, True])
def test_mining_tells_what_share_is_done(index, graph, monkeypatch):
    monkeypatch.setattr(Scan, "graph_pays", lambda self: graph)
    for least in (0.6, 1.0):  # with matches and without
        told: list[float] = []
        list(index.mine(["a seat", "a ship"], min_degree=least, on_progress=told.append))
        assert told == sorted(told)
        assert told[-1] == 1.0


def test_mining_that_is_left_early_ends(index):
    matches = index.mine(["a seat"] + [f"seat {n}" for n in range(600)], min_degree=0.5)
    assert next(matches).phrase
    matches.close()
    assert list(index.mine(["a seat"], min_degree=0.6))


def test_mining_at_degree_1_finds_the_very_words(index):
    phrases = ["end my subscription", "money could be sent", "month's bill is far too"]
    found = {m.phrase: m.text for m in index.mine(phrases, min_degree=1, rescore=True)}
    assert found == {phrase: phrase for phrase in phrases}


def test_a_short_sentence_is_found_for_a_long_phrase(new_location):
    """Whatever the threshold: what a lower one finds with a higher degree, that one finds too."""
    location, phrase = new_location(), " ".join(["cancel my subscription right now please"] * 3)
    text = "Cancel my subscription! The weather in Paris has been lovely all week, and so was food."
    slice_os.index([slice_os.Document("a", text)], location)
    with slice_os.open(location) as index:
        found = list(index.mine([phrase], min_degree=0.5))
        best = max(found, key=lambda match: match.degree)
        assert best.text == "Cancel my subscription!"
        assert best in list(index.mine([phrase], min_degree=best.degree - 1e-4))


def test_what_two_passages_share_is_found_and_counted_once(new_location):
    """A sentence of 400 words is cut, the passages share words: every place is one match."""
    rng = np.random.default_rng(1)
    words = rng.choice(" ".join(TEXTS.values()).replace(".", "").lower().split(), 400).tolist()
    phrase = "zebras eat orange marmalade"
    places = range(3, 390, 9)
    for place in places:
        words[place : place + 4] = phrase.split()
    text = " ".join(words)
    # A judge of words would hear a "not" that stands before the phrase by chance.
    with slice_os.open(new_location(), passage_words=60, judge=None) as own:
        report = own.add([slice_os.Document("long", text)])
        assert report.words == own.status().words == 400
        assert report.encoded_words > 400
        for options in ({"min_degree": 1, "rescore": True}, {"min_degree": 0.9}):
            matches = list(own.mine([phrase], **options))
            found = [(m.document_start, m.document_end) for m in matches]
            assert len(found) == len(set(found))
            if "rescore" in options:
                starts = sorted(len(text[:start].split()) for start, _ in found)
                assert starts == list(places)
            for match in matches:
                assert text[match.document_start : match.document_end] == match.text
        hits = own.search(phrase, size=50, mode="dense")
        said = [(h.document, text.find(h.text) + s.start) for h in hits for s in h.spans]
        assert len(said) == len(set(said))
        (document,) = [slice_os.Document("long", text.replace("orange", "lemon", 1))]
        again = own.add([document])
        assert 0 < again.encoded_words <= 120
        assert own.status().words == 400

"""What search and mining promise, on every backend."""

from __future__ import annotations

import json
import shutil
from itertools import groupby, pairwise

import numpy as np
import pytest

import slice_os
from slice_os.encoders.info import DEFAULT_FOLDER
from slice_os.errors import CorpusError, EncoderMismatchError, LocationError, QueryError
from slice_os.spans import (
    Weights,
    degree,
    enumerate_spans,
    fit_window,
    full_range,
    length_window,
    query_words,
)
from slice_os.storage.cluster.mining_scan import Scan
from slice_os.storage.fusion import DEFAULT_FUSION, FUSIONS
from slice_os.text import count_words, split
from slice_os.text.filters import parse_filters
from slice_os.text.normal_form import plain, same_words
from support.filters import holds_of
from support.local import late_interaction

from .conftest import TEXTS, corpus

QUERY = "the customer wants to cancel"
WAYS = [
    *(("hybrid", fusion) for fusion in FUSIONS),
    ("dense", DEFAULT_FUSION), ("lexical", DEFAULT_FUSION),
]  # fmt: skip


def naive(encoder, query, lengths=None):
    """Form every span vector of every passage: (document, passage, start, end) -> degree."""
    vector = encoder.encode([query])[0].astype(np.float64)
    passages = [p for document in corpus() for p in split(document, 40)]
    found = {}
    for passage, words in zip(
        passages, encoder.encode_words(p.text for p in passages), strict=True
    ):
        window = fit_window(lengths or length_window(count_words(query)), len(words))
        for i, j in enumerate_spans(len(words), window.start, window.stop - 1).tolist():
            total = words.vectors[i:j].sum(0, dtype=np.float64)
            cosine = float(vector @ total / np.linalg.norm(total))
            key = passage.document, passage.number, int(words.starts[i]), int(words.ends[j - 1])
            found[key] = degree(cosine)
    return found


@pytest.mark.parametrize(("mode", "fusion"), WAYS)
def test_degrees_are_true_in_every_mode(index, encoder, mode, fusion):
    spans, all_spans = naive(encoder, QUERY), naive(encoder, QUERY, full_range())
    hits = index.search(QUERY + " the bill of the ship", mode=mode, fusion=fusion, size=50)
    assert hits
    hits = index.search(QUERY, mode=mode, fusion=fusion, size=50, rescore=0)
    for hit in hits:
        shown = all_spans[hit.document, hit.passage, hit.spans[0].start, hit.spans[0].end]
        assert hit.spans[0].in_context_degree == pytest.approx(shown, abs=0.002)
        assert hit.degree == hit.spans[0].degree
    assert [h.score for h in hits] == sorted((h.score for h in hits), reverse=True)
    if mode != "lexical":
        assert len(hits) == len({key[:2] for key in spans})
        assert hits[0].document == "cancel"


def test_hits_sorted_by_their_degrees(index):
    for more in ({"size": 10}, {"size": 3, "group": True}, {"size": 5, "min_degree": 0.5}):
        plain = index.search(QUERY, **more)
        found = index.search(QUERY, **more, sort="degree")
        by_key = lambda hit: (hit.document, hit.passage)  # noqa: E731
        assert sorted(found, key=by_key) == sorted(plain, key=by_key)
        best = [hit.degree for hit in found]
        if "group" in more:
            documents = [list(hits) for _, hits in groupby(found, lambda hit: hit.document)]
            assert len(documents) == 3
            best = [hits[0].degree for hits in documents]
            assert all(hit.degree <= hits[0].degree for hits in documents for hit in hits)
        assert best == sorted(best, reverse=True)
    with pytest.raises(QueryError, match="no order 'score': choose degree"):
        index.search(QUERY, sort="score")


def test_late_interaction_ranks_and_changes_no_degree(index, encoder):
    (words,) = encoder.encode_words([QUERY])
    query = query_words(words.vectors)
    best = {
        (h.document, h.passage): h.score
        for h in index.search(QUERY, mode="dense", size=50, rescore=0, late=0)
    }
    for mode in ("dense", "hybrid"):
        plain, late = (
            {
                (h.document, h.passage): h
                for h in index.search(QUERY, mode=mode, size=50, rescore=0, late=share)
            }
            for share in (0, 0.4)
        )
        assert plain.keys() == late.keys()
        for key, hit in late.items():
            degrees = [s.degree for s in plain[key].spans]
            assert [s.degree for s in hit.spans] == pytest.approx(degrees, abs=1e-6)
            (own,) = encoder.encode_words([hit.text])
            said = degree(late_interaction(query, own.vectors))
            share = 0.4 * (1 if mode == "dense" else 0.8)
            assert hit.score - plain[key].score == pytest.approx(
                share * (said - best[key]), abs=0.003
            )
    usual = index.search(QUERY, size=50)
    assert usual == index.search(QUERY, size=50, late=0.3)
    for asked in ({"mode": "lexical"}, {"fusion": "rrf"}, {"fusion": "min_max"}):
        assert index.search(QUERY, **asked, late=0) == index.search(QUERY, **asked, late=1)
    with pytest.raises(QueryError, match=r"late interaction is 1.5: it must be from 0 to 1"):
        index.search(QUERY, late=1.5)


def test_hits_say_where_and_why(index):
    for hit in index.search(QUERY, size=50):
        for span in hit.spans:
            assert hit.text[span.start : span.end] == span.text
            assert 0 <= span.degree <= 1
            assert sum(span.contributions) == pytest.approx(
                2 * span.in_context_degree - 1, abs=1e-4
            )
            assert len(span.contributions) == len(span.text.split())
        assert hit.degree == max(span.degree for span in hit.spans)
        ranges = sorted((span.start, span.end) for span in hit.spans)
        assert all(a[1] <= b[0] for a, b in pairwise(ranges))


def test_a_rescored_degree_is_made_of_the_context_and_the_words_alone(index, encoder):
    query, weights = encoder.encode([QUERY])[0], Weights.of(count_words(QUERY))
    for hit in index.search(QUERY, size=3, rescore=3):
        for span in hit.spans:
            alone = float(query @ encoder.encode([plain(span.text)])[0])
            in_context = 2 * span.in_context_degree - 1
            wanted = weights.combine(np.float64(in_context), np.float64(alone))
            assert span.degree == pytest.approx(degree(float(wanted)), abs=1e-4)
            assert span.degree >= degree(alone) - 1e-6


def test_pages_do_not_overlap(index):
    for mode in ("hybrid", "dense", "lexical"):
        whole = index.search("the bill of the ship", mode=mode, size=6, rescore=0)
        paged = [
            index.search("the bill of the ship", mode=mode, size=2, offset=n, rescore=0)
            for n in (0, 2, 4)
        ]
        assert [h.document for page in paged for h in page] == [h.document for h in whole]
    for fusion in ("saturation", "rrf", "min_max"):
        assert index.search(QUERY, fusion=fusion, size=5, offset=900) == []


@pytest.mark.parametrize("mode", ["hybrid", "dense", "lexical"])
@pytest.mark.parametrize("rescore", [8, 0])
def test_only_hits_of_a_degree(index, mode, rescore):
    asked = {"mode": mode, "rescore": rescore}
    query = "the old bill of the ship and the seat"
    every = index.search(query, size=50, **asked)
    least = sorted(hit.degree for hit in every)[len(every) // 2]
    found = index.search(query, size=50, min_degree=least, **asked)
    assert [hit for hit in every if hit.degree >= least - 1e-6] == found
    assert 0 < len(found) < len(every)
    pages = [
        index.search(query, size=1, offset=n, min_degree=least, **asked)
        for n in range(len(found) + 1)
    ]
    assert [hit for page in pages for hit in page] == found
    assert pages[-1] == []
    assert index.search("zzzzzzzz", min_degree=0.85, **asked) == []


def test_hits_by_document(new_location):
    line = (
        "I would like to end my subscription. The seat by the window was torn and the bill is high."
    )
    documents = {f"d{n}": "\n\n".join([line] * n) for n in range(1, 6)}
    with slice_os.open(new_location(), passage_words=20) as own:
        own.add(slice_os.Document(name, text) for name, text in documents.items())
        for mode in ("hybrid", "dense", "lexical"):
            plain = own.search("end my subscription", mode=mode, size=15)
            assert len(plain) == 15
            ranks = list(dict.fromkeys(hit.document for hit in plain))
            found = own.search("end my subscription", mode=mode, group=True)
            assert [hit.document for hit in found] == sorted(
                (hit.document for hit in plain), key=ranks.index
            )
            assert {hit.passage for hit in found if hit.document == "d5"} == set(range(5))
            pages = [
                own.search("end my subscription", mode=mode, group=True, size=2, offset=n)
                for n in (0, 2, 4, 6)
            ]
            assert [list(dict.fromkeys(h.document for h in page)) for page in pages] == [
                ranks[:2], ranks[2:4], ranks[4:], []
            ]  # fmt: skip
        assert own.search("finish subscribing", group=True, min_degree=1.0, rescore=0) == []


def test_a_hits_place_in_its_document(index):
    texts = {document.id: document.text for document in corpus()}
    for hit in index.search(QUERY, size=50):
        text = texts[hit.document]
        assert text[hit.document_start : hit.document_end] == hit.text
        for span in hit.spans:
            start = hit.document_start + span.start
            assert text[start : start + len(span.text)] == span.text


def test_documents_are_listed_in_pages(new_location):
    names = sorted([f"n{n:02}" for n in range(23)] + ["\u00e9", "Z", "\U0001f680", "\uffee"])
    documents = [
        slice_os.Document(name, "One two three. " * 20, f"Title {name}", {"n": {"of": name}})
        for name in reversed(names)
    ]
    with slice_os.open(new_location(), passage_words=20) as own:
        own.add(documents)
        whole = own.list()
        assert [one.document for one in whole] == names
        for one in whole:
            assert (one.title, one.words) == (f"Title {one.document}", 60)
            assert one.metadata == {"n.of": one.document}
            assert one.passages >= 3
        assert sum(one.passages for one in whole) == own.status().passages
        pages = [own.list(size=10, offset=at) for at in (0, 10, 20, 30)]
        assert [one for page in pages for one in page] == whole
        assert [one.document for one in own.list(filters={"n.of": "Z"})] == ["Z"]
        assert own.list(filters=["n.of=z"]) == []
        own.delete(["Z"])
        assert "Z" not in [one.document for one in own.list()]
        for bad in ({"size": 0}, {"offset": -1}, {"filters": ["n"]}):
            with pytest.raises(QueryError):
                own.list(**bad)


def test_a_document_is_shown_as_it_was(new_location):
    text = "\n\n".join(
        f"This is the paragraph of number {n}. It has two sentences!\n  - and a line {n}"
        for n in range(30)
    )
    with slice_os.open(new_location(), passage_words=25) as own:
        own.add([slice_os.Document("a#1", text, "T"), slice_os.Document("b", "Another one.")])
        whole = own.show("a#1")
        assert (whole.document, whole.title, whole.start, whole.end) == ("a#1", "T", 0, len(text))
        assert len(whole.text) == len(text)
        assert whole.text.split() == text.split()
        for hit in own.search("the paragraph of number 17", size=3, filters=[]):
            if hit.document != "a#1":
                continue
            alone = own.show("a#1", at=hit.document_start, context=0)
            assert (alone.text, alone.start, alone.end) == (
                hit.text, hit.document_start, hit.document_end
            )  # fmt: skip
            assert own.show("a#1", passage=hit.passage, context=0) == alone
            around = own.show("a#1", at=hit.document_end - 1, context=2)
            assert own.show("a#1", passage=hit.passage, context=2) == around
            assert around.start < alone.start <= alone.end < around.end
            shown = whole.text[around.start : around.end]
            assert around.text == shown
        assert own.show("a#1", at=0).start == 0
        assert own.show("a#1", at=len(text) - 1).end == len(text)
        assert own.show("a#1", at=700, context=99) == whole
        with pytest.raises(QueryError, match=r"There is no document 'c'.*slice-os list"):
            own.show("c")
        for at in (-1, len(text), 10**9):
            with pytest.raises(QueryError, match=f"no character {at}"):
                own.show("a#1", at=at)
        for number in (-1, 999):
            with pytest.raises(QueryError, match=f"no passage {number}"):
                own.show("a#1", passage=number)
        with pytest.raises(QueryError, match="context"):
            own.show("a#1", at=1, context=-1)
        with pytest.raises(QueryError, match="no document"):
            own.show("\ud800")


def test_filters(index):
    for filters in (["year>=2020", "year<=2021"], ["kind.of=l"], {"year": 2020}):
        found = {hit.document for hit in index.search("ship", filters=filters, size=50)}
        assert found
        assert found <= {"licence", "ship"}
    assert index.search("ship", filters={"year": 1900}) == []
    matches = list(index.mine(["ship"], min_degree=0.0, filters=["year=2021"]))
    assert {match.document for match in matches} == {"ship"}


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
    asked = {"degree": 0.85, "rescore": rescore}
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


@pytest.mark.parametrize(
    "query",
    [
        *("x", "?!", "cancel \U0001f680", "取消 it", "ยกเลิก", "إلغاء", "a\0b", "say \ud800"),
        *('AND "OR" NEAR(', "word " * 600, "cancel " * 1500),
    ],
)
def test_any_text_is_a_query(index, query):
    for mode in ("hybrid", "dense", "lexical"):
        hits = index.search(query, mode=mode, size=3, literal=True)
        assert mode == "lexical" or len(hits) == 3
        json.dumps([hit.to_dict() for hit in hits])


@pytest.mark.parametrize("query", ["\U0001f600 \U0001f680", "取消订阅", "cancel" * 5000])
def test_what_the_encoder_has_no_words_for_is_no_query_but_of_bm25(index, query):
    for mode in ("hybrid", "dense"):
        with pytest.raises(QueryError, match=r"holds no word that the encoder knows.*lexical"):
            index.search(query, mode=mode)
    with pytest.raises(QueryError, match="holds no word that the encoder knows"):
        list(index.mine([query], min_degree=0.5))
    assert index.search(query, mode="lexical") == []


def test_bm25_finds_words_that_the_encoder_does_not_know(new_location):
    location = new_location()
    slice_os.index([slice_os.Document("a", "launch \U0001f680\U0001f680 sad \u53d6\u6d88"),
                    slice_os.Document("b", "sad \u8ba2\u9605 day")], location)  # fmt: skip
    with slice_os.open(location) as index:
        (hit,) = index.search("\u53d6\u6d88", mode="lexical")
        assert (hit.document, hit.degree, hit.spans[0].text) == ("a", 1.0, "\u53d6\u6d88")
        with pytest.raises(QueryError, match="no word that the encoder knows"):
            index.search("\u53d6\u6d88")


def test_what_cannot_be_asked_is_one_sentence(index, location, new_location):
    for query in ("", "  \n", "\u200b", "\ud800"):
        with pytest.raises(QueryError):
            index.search(query)
    for bad in (
        {"filters": ["a==1"]}, {"offset": 995}, {"min_degree": 1.1},
        {"offset": 995, "min_degree": 0.5, "mode": "dense"},
    ):  # fmt: skip
        with pytest.raises(QueryError):
            index.search("ship", **bad)
    for bad in ({"mode": "sparse"}, {"fusion": "magic"}, {"weight": 2}, {"size": 0},
                {"filters": ["year"]}):  # fmt: skip
        with pytest.raises(QueryError):
            index.search("ship", **bad)
    for degree_ in (-1, 1.5, float("nan")):
        with pytest.raises(QueryError):
            list(index.mine(["ship"], min_degree=degree_))
    with pytest.raises(LocationError, match="There is no index"):
        slice_os.open(new_location()).search("ship")
    with pytest.raises(LocationError, match="too short"):
        slice_os.open(new_location(), passage_words=0)
    with pytest.raises(LocationError, match="110 were asked for"):
        slice_os.open(location, passage_words=110)
    with pytest.raises(LocationError, match="not known to this version"):
        slice_os.open("ftp://localhost:9200/index")


def test_only_what_changed_is_encoded(new_location):
    location = new_location()
    with slice_os.open(location, passage_words=20) as own:
        first = own.add(corpus())
        assert (first.documents, first.unchanged) == (7, 0)
        again = own.add(corpus())
        assert (again.documents, again.unchanged, again.encoded_words) == (0, 7, 0)
        changed = corpus()
        longer = changed[0].text + "\nI moved to another town and there is no signal there at all."
        changed[0] = slice_os.Document("cancel", longer, metadata={"year": 1999})
        third = own.add(changed)
        assert (third.documents, third.replaced, third.unchanged) == (1, 1, 6)
        assert 0 < third.encoded_words < count_words(longer) / 2
        assert {h.document for h in own.search("no signal", filters={"year": 1999})} == {"cancel"}
        asked = []
        refused = own.add(changed[:2], prune=lambda *numbers: asked.append(numbers) or False)
        assert (asked, refused.pruned, refused.kept) == ([(5, 7)], 0, 5)
        assert own.add(changed[:2], prune=True).kept == 5
        assert own.add(changed[:2], prune="all").pruned == 5
        assert own.status().documents == 2
        assert own.delete(["cancel", "nobody"]) == 1
        assert own.delete(filters={"year": 2019}) == 1
        assert own.status().passages == 0
        assert own.search("ship") == []
        assert list(own.mine(["ship"], min_degree=0)) == []


def test_duplicates_and_wordless_documents_are_rejected_not_lost(new_location):
    rejects = []
    documents = [*corpus(), corpus()[0], slice_os.Document("empty", "\u200b\u200b")]
    with slice_os.open(new_location()) as own:
        report = own.add(documents, on_reject=rejects.append, prune=True)
        assert (report.documents, report.rejected, report.pruned) == (7, 2, 0)
        assert [r.place for r in rejects] == ["cancel", "empty"]
        assert own.add(documents, on_reject=rejects.append).rejected == 2


def test_what_is_no_document_is_rejected_and_the_rest_indexed(new_location):
    rejects = []
    documents = [
        slice_os.Document("half \ud800", "text"),
        slice_os.Document("metadata", "text", metadata={"a": "\udfff"}),
        slice_os.Document("keys", "text", metadata={3: 4, "a": 1}),
        slice_os.Document(7.5, "text"),
        slice_os.Document("none", None),
        slice_os.Document("nan", "A good text.", metadata={"x": float("nan"), "y": {"z": None}}),
    ]
    with slice_os.open(new_location()) as own:
        report = own.add(documents, on_reject=rejects.append)
        assert (report.documents, report.rejected, len(rejects)) == (1, 5, 5)
        (hit,) = own.search("good")
        assert json.loads(json.dumps(hit.to_dict(), allow_nan=False))["metadata"]["x"] == "nan"


def test_a_source_that_fails_midway_loses_nothing_before_it(new_location):
    def failing():
        for number in range(150):
            yield slice_os.Document(f"d{number}", f"Document number {number}.")
        raise RuntimeError("the source broke")

    with slice_os.open(new_location()) as own:
        with pytest.raises(RuntimeError, match="the source broke"):
            own.add(failing())
        assert own.status().documents == 150


def test_prune_keeps_what_was_rejected_and_what_lies_elsewhere(tmp_path, new_location):
    for number in range(12):
        (tmp_path / f"{number}.txt").write_text(f"Document number {number}.")
    (tmp_path / "rows.jsonl").write_text('{"id": "r1", "text": "one"}\n{"id": "r2", "text": "two"}')
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/a.txt").write_text("A text.")

    def held(index):
        return index.holds(
            ["0.txt", "1.txt", "rows.jsonl#r1", "rows.jsonl#r2", "deep/a.txt", "own"]
        )

    with slice_os.open(new_location()) as own:
        own.add([slice_os.Document("own", "No file.")])
        own.add(slice_os.read(tmp_path, root=tmp_path))
        assert own.status().documents == 16
        assert own.status().details["roots"] == {"": str(tmp_path)}
        (tmp_path / "0.txt").write_bytes(b"\0\1\2" * 99)  # cannot be read for now
        (tmp_path / "1.txt").unlink()
        (tmp_path / "rows.jsonl").write_text('{"id": "r1", "text": "one"}\n{"id": "r2", ')
        (tmp_path / "deep/a.txt").unlink()
        report = own.add(slice_os.read(tmp_path / "*.txt"), prune=True)
        assert (report.rejected, report.pruned) == (1, 1)
        assert held(own) == {"0.txt", "rows.jsonl#r1", "rows.jsonl#r2", "deep/a.txt", "own"}
        report = own.add(slice_os.read(tmp_path), prune=True)
        assert (report.rejected, report.pruned) == (2, 1)
        assert held(own) == {"0.txt", "rows.jsonl#r1", "rows.jsonl#r2", "own"}
        (tmp_path / "rows.jsonl").write_text('{"id": "r1", "text": "one"}')
        assert own.add(slice_os.read(tmp_path / "rows.jsonl"), prune="all").pruned == 1
        assert held(own) == {"0.txt", "rows.jsonl#r1", "own"}


def test_a_file_has_one_id_and_two_files_have_two(tmp_path, new_location):
    for name in ("a/docs/price.md", "b/docs/price.md", "a/more/x.txt"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(f"What {name} says.")
    location = new_location()
    slice_os.index(slice_os.read(tmp_path / "a/docs"), location)
    with slice_os.open(location) as own:
        for given in ("a/docs/price.md", "a/docs/*.md", "a"):
            own.add(slice_os.read(tmp_path / given))
        assert own.holds(["docs/price.md", "more/x.txt"]) == {"docs/price.md", "more/x.txt"}
        assert own.status().documents == 2
        for other in (tmp_path / "b", tmp_path / "b/docs/*.md"):
            with pytest.raises(CorpusError, match=r"--root FOLDER and an --id-prefix"):
                own.add(slice_os.read(other))
        with pytest.raises(CorpusError, match=r"has ids that begin with 'more/'"):
            own.add(slice_os.read(tmp_path / "b/docs", id_prefix="more/"))
        own.add(slice_os.read(tmp_path / "b/docs", id_prefix="b/"))
    with slice_os.open(location) as again:
        assert again.add(slice_os.read(tmp_path / "b/docs/price.md")).unchanged == 1
        assert again.status().documents == 3


def test_an_index_that_is_made_elsewhere_is_found(tmp_path, new_location):
    location = new_location()
    with slice_os.open(location) as early, slice_os.open(location) as late:
        assert len(early) == 0
        with pytest.raises(LocationError, match="no index at"):
            early.search("cancel")
        for folder in ("one", "two"):
            (tmp_path / folder / "docs").mkdir(parents=True)
            (tmp_path / folder / "docs" / "a.txt").write_text(f"Cancel my plan number {folder}.")
        late.add(slice_os.read(tmp_path / "one" / "docs"))
        assert len(early) == 1
        assert early.search("cancel my plan")[0].document == "docs/a.txt"
        with pytest.raises(CorpusError, match="is not in"):  # an id is a path below one root
            early.add(slice_os.read(tmp_path / "two" / "docs"))
        assert early.get("docs/a.txt").text.endswith("one.")


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


def test_two_makers_of_one_index_share_it(new_location):
    location = new_location()
    first, second = slice_os.open(location), slice_os.open(location)
    first.add(corpus())
    assert second.add([slice_os.Document("more", "One more text.")]).documents == 1
    assert first.status().documents == second.status().documents == 8
    first.close()
    second.close()


def test_another_encoder_is_refused_with_both_names(location, tmp_path):
    other = shutil.copytree(DEFAULT_FOLDER, tmp_path / "other")
    info = json.loads((other / "encoder.json").read_text())
    info |= {"name": "other-encoder", "weights_hash": "f" * 64}
    (other / "encoder.json").write_text(json.dumps(info))
    with pytest.raises(EncoderMismatchError, match=r"slice-english-v2.*other-encoder"):
        slice_os.open(location, encoder=other).search("ship")


def test_a_line_of_many_thousand_words(new_location):
    location = new_location()
    in_cluster = "://" in location
    count = 5_000 if in_cluster else 50_000  # the graph of so many spans takes a minute
    words = np.random.default_rng(0).choice(" ".join(TEXTS.values()).split(), count)
    words[count // 2 : count // 2 + 3] = ["zebras", "eat", "marmalade"]
    few_spans = {"cluster": {"tolerance": 0.5}} if in_cluster else {}
    with slice_os.open(location, **few_spans) as own:
        report = own.add([slice_os.Document("long", " ".join(words))])
        assert report.words == count
        (hit, *_) = own.search("zebras eat marmalade")
        assert "zebras" in hit.spans[0].text


LONGEST = "\U0001d4b3" * 8500  # more bytes than a term of Lucene may have
WORDED = {
    "plain": ("", "They charged a late fee, and I want the money back."),
    "plural": ("", "They charged late fees, and I want the money back."),
    "shout": ("", "LATE\n- FEE: they charged it, and I want the money back!"),
    "title": ("Late fee", "They charged it, and I want the money back."),
    "apart": ("It was late", "fee or not, I want the money back."),
    "mail": ("", "Send me an e-mail, I want the money back. Or not to be."),
    "email": ("", "Send me an email, I want the money back."),
    "greek": ("", "\u0397 \u039f\u0394\u039f\u03a3 is the road where I want the money back."),
    "han": ("", "\u8bf7\u53d6\u6d88\u8ba2\u9605: I want the money back, na\u00efve as I am."),
    "long": ("", f"{LONGEST} {'x' * 300} and I want the money back."),
}
LATE_FEE = {"plain", "shout", "title"}


@pytest.fixture(scope="module")
def worded(new_location):
    location = new_location()
    documents = [slice_os.Document(name, text, title) for name, (title, text) in WORDED.items()]
    slice_os.index(documents, location)
    with slice_os.open(location) as opened:
        yield opened


@pytest.mark.parametrize(("mode", "fusion"), WAYS)
def test_exact_words_stand_in_every_hit_and_what_must_not_in_none(worded, mode, fusion):
    def found(query, size=20, **wording):
        asked = {"mode": mode, "fusion": fusion, "size": size, "rescore": 0, **wording}
        hits = worded.search(query, **asked)
        assert len(hits) <= size
        return {hit.document for hit in hits}

    asked = "I want the money back"
    assert found(asked) == set(WORDED)
    assert found(f'{asked} "late fee"') == found(asked, must="late fee") == LATE_FEE
    assert found(f'"money back" -"late fee" {asked}') == set(WORDED) - LATE_FEE
    assert found(asked, must_not="LATE fee") == set(WORDED) - LATE_FEE
    assert found(f"{asked} -charged") == set(WORDED) - {"plain", "plural", "shout", "title"}
    assert found(asked, must=["late", "charged"], must_not="fee") == {"plural"}
    assert found(f"{asked} -late -fee -email -x") == {"mail", "greek", "han", "long"}
    for words, names in {
        "e-mail": {"mail"}, "email": {"email"}, "or not to be": {"mail"}, "the": set(WORDED),
        "\u03b7 \u03bf\u03b4\u03bf\u03c3": {"greek"}, "\u53d6\u6d88": {"han"}, "naive": set(),
        "na\u00efve": {"han"}, LONGEST: {"long"}, "x" * 300: {"long"}, "y" * 300: set(),
        "back back": set(),
    }.items():  # fmt: skip
        assert found(asked, must=words) == names, words[:20]
        assert found(asked, must_not=words) == set(WORDED) - names, words[:20]
    # What must (not) be there is left out before the best are chosen, not afterwards.
    assert len(found(asked, size=3, must="late fee")) == 3
    assert found(f"{asked} it is -5 on-line") == set(WORDED)


def test_quotes_do_not_lower_a_degree(worded):
    for mode in ("hybrid", "dense", "lexical"):
        plain = worded.search("want the money back", mode=mode, size=20)
        assert worded.search('want the "money back"', mode=mode, size=20) == plain
        literal = worded.search('want the "money back"', mode=mode, size=20, literal=True)
        assert literal != plain
        assert len(literal) == len(WORDED)


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("rescore", [False, True])
def test_mining_goes_by_exact_words_too(worded, graph, rescore, monkeypatch):
    monkeypatch.setattr(Scan, "graph_pays", lambda self: graph)

    def found(phrase, **wording):
        mined = worded.mine([phrase], min_degree=0.75, rescore=rescore, **wording)
        return {match.document for match in mined}

    every = found("want the money back")
    assert every == set(WORDED)
    assert found("want the money back", must="late fee") == LATE_FEE
    assert found("want the money back", must_not=["late fee"]) == every - LATE_FEE
    assert found('want the "money back" -"late fee"') == every - LATE_FEE
    # One phrase's words are not another's.
    phrases = {"fee": 'money back "late fee"', "mail": 'money back "e-mail"'}
    mined = {(m.name, m.document) for m in worded.mine(phrases, min_degree=0.75, rescore=rescore)}
    assert mined == {("mail", "mail"), *(("fee", name) for name in LATE_FEE)}
    assert list(worded.mine(['"nowhere" money back'], min_degree=0.5)) == []


def test_what_exact_words_cannot_be(worded):
    for asked in ({"must": "!"}, {"must_not": [""]}):
        with pytest.raises(QueryError, match="holds no word"):
            worded.search("money", **asked)
        with pytest.raises(QueryError, match="holds no word"):
            worded.mine("money", **asked)
    with pytest.raises(QueryError, match="only says what must not"):
        worded.search("-money")


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
        for options in ({"degree": 1, "rescore": True}, {"degree": 0.9}):
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


def test_a_filter_may_name_thousands(new_location):
    location = new_location()
    documents = [
        slice_os.Document(f"d{n}", f"Please cancel order {n}.", metadata={"order": n})
        for n in range(3)
    ]
    slice_os.index(documents, location)
    some = ",".join(map(str, range(1, 5000)))
    with slice_os.open(location) as index:
        found = index.search("cancel my order", filters=[f"order in {some}"])
        assert {hit.document for hit in found} == {"d1", "d2"}


def test_filters_in_words_and_on_lists_of_objects(new_location):
    labels = {
        "a": [{"name": "bug", "who": {"id": 7}}, {"name": "ui"}],
        "b": [{"name": "docs"}],
        "c": [],
    }
    documents = [
        slice_os.Document(
            name,
            f"Text number {number}.",
            metadata={"labels": labels[name], "year": 2018 + number, "path": f"docs/{name}.txt"},
        )
        for number, name in enumerate(labels)
    ]
    documents.append(slice_os.Document("d", "Text of another.", metadata={"path": "d", "on": True}))
    wanted = {
        "labels.name=bug": "a",
        "labels.who.id=7": "a",
        "labels.name!=bug": "bcd",
        "labels.name in docs, ui": "ab",
        "labels.name exists": "ab",
        "year exists": "abc",
        "path prefix docs/": "abc",
        "year prefix 201": "ab",
        "on prefix tr": "d",
        "year=2018 or on=true": "ad",
        "year>=2020 or labels.name=docs or year in 2018,1": "abc",
        "path=this or that": "",
    }
    with slice_os.open(new_location()) as own:
        own.add(documents)
        for text, names in wanted.items():
            found = {hit.document for hit in own.search("text", filters=[text], size=9)}
            assert found == set(names), text
            parsed = parse_filters([text])
            meant = {d.id for d in documents if holds_of(parsed[0], d.metadata)}
            assert set(names) == meant, text
        assert {h.document for h in own.search("text", filters={"year": [2018, 2020]})} == {
            "a", "c"
        }  # fmt: skip
        assert own.search("text", filters=["year exists", "on=true"]) == []
        with pytest.raises(QueryError, match="a list without values"):
            own.search("text", filters={"year": []})
        for field, advice in {
            "yaer": "did you mean year?",
            "label.name": "did you mean labels.name",
            "zzz": "they have labels.name, labels.who.id, on, path, year.",
        }.items():
            message = rf"has a field '{field}': {advice}"
            for use in (
                lambda f: own.search("text", filters=[f"{f}=1"]),
                lambda f: list(own.mine(["text"], filters={f: 1})),
                lambda f: own.delete(filters=[f"year=2018 or {f} exists"]),
            ):
                with pytest.raises(QueryError, match=message):
                    use(field)
        assert own.status().documents == 4


def test_stored_fields_are_what_a_hit_brings_along(new_location):
    metadata = {"year": 2020, "kind": {"of": "x", "on": "y"}, "labels": [{"name": "bug"}]}
    for store, wanted in {
        ("year", "kind"): {"year": 2020, "kind.of": "x", "kind.on": "y"},
        ("labels",): {"labels": [{"name": "bug"}]},
        (): {},
    }.items():
        location = new_location()
        with slice_os.open(location, store=store) as own:
            own.add([slice_os.Document("a", "Some text.", metadata=metadata)])
        with slice_os.open(location) as own:
            (hit,) = own.search("text", filters=["labels.name=bug", "kind.of=x", "year=2020"])
            assert hit.metadata == wanted
        with pytest.raises(LocationError, match="was asked for"):
            slice_os.open(location, store=["other"])

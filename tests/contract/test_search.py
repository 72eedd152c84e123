"""What a search promises, on every backend."""

from __future__ import annotations

import json
import shutil
from itertools import groupby, pairwise

import numpy as np
import pytest

import slice_os
from slice_os.encoders.info import DEFAULT_FOLDER
from slice_os.errors import EncoderMismatchError, LocationError, QueryError
from slice_os.spans import (
    Weights,
    degree,
    full_range,
    query_words,
)
from slice_os.text import count_words
from slice_os.text.normal_form import plain
from support.local import late_interaction

from .conftest import corpus
from .exhaustive import QUERY, WAYS, naive


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
    with pytest.raises(QueryError, match="'sort' must be one of degree, not 'score'"):
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
    with pytest.raises(QueryError, match="'late' must be a number from 0 to 1"):
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
    every = index.search(query, size=50, min_degree=0.01, **asked)
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
def test_a_query_of_unknown_words_is_for_bm25_alone(index, query):
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


def test_another_encoder_is_refused_with_both_names(location, tmp_path):
    other = shutil.copytree(DEFAULT_FOLDER, tmp_path / "other")
    info = json.loads((other / "encoder.json").read_text())
    info |= {"name": "other-encoder", "weights_hash": "f" * 64}
    (other / "encoder.json").write_text(json.dumps(info))
    with pytest.raises(EncoderMismatchError, match=r"slice-english-v2.*other-encoder"):
        slice_os.open(location, encoder=other).search("ship")

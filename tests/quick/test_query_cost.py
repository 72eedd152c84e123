"""What a search costs, and what it does without an encoder."""

from __future__ import annotations

import sys
import threading

import pytest

import slice_os
from slice_os.errors import QueryError

TEXTS = {
    "cancel": "The customer wants to cancel the plan before the first of May.",
    "refund": "Nobody answered when she called the office about her refund.",
    "ship": "The ship sank in the night and the crew was never seen again, \u5645 said one.",
}
UNKNOWN = "\u5645"


@pytest.fixture
def location(tmp_path):
    slice_os.index(TEXTS.items(), tmp_path / "index.slice")
    return tmp_path / "index.slice"


@pytest.fixture
def index(location):
    with slice_os.open(location) as opened:
        yield opened


def test_bm25_alone_loads_no_encoder(location, tmp_path):
    with slice_os.open(location, encoder=tmp_path / "none") as index:
        (hit,) = index.search("refund", mode="lexical", rescore=0)
        assert (hit.document, hit.degree, hit.spans) == ("refund", 0, ())
        with pytest.raises(slice_os.SliceOSError, match="no encoder"):
            index.search("refund", mode="lexical")


@pytest.mark.parametrize("rescore", [0, 1])
def test_bm25_finds_a_word_that_the_encoder_does_not_know(index, rescore):
    (hit,) = index.search(UNKNOWN, mode="lexical", rescore=rescore)
    assert (hit.document, hit.degree, len(hit.spans)) == ("ship", rescore, rescore)
    with pytest.raises(QueryError, match="mode lexical"):
        index.search(UNKNOWN)
    many = index.search_many([UNKNOWN, "refund"], mode="lexical", rescore=rescore)
    assert [hits[0].document for hits in many] == ["ship", "refund"]
    assert bool(many[1][0].spans) == bool(rescore)


def test_a_degree_that_is_asked_for_needs_the_spans(index):
    (hit,) = index.search("refund", mode="lexical", rescore=0, min_degree=0.9)
    assert hit.degree == 1
    assert index.search("refund", mode="lexical", rescore=0, sort="degree")[0].spans


def test_mining_refuses_its_phrases_when_it_is_called(index):
    for phrase, message in ((UNKNOWN, "no word that the encoder knows"), ("", "is empty")):
        with pytest.raises(QueryError, match=message):
            index.mine(phrase)
    with pytest.raises(QueryError, match="min_degree"):
        index.mine("refund", min_degree=7)


def test_a_query_enters_few_files_and_functions(index):
    """Those of the encoder and the backend included; comprehensions are no functions."""
    for query in ("the customer wants a refund", "a ship sank"):
        index.search(query)
    entered = set()

    def profile(frame, event, argument):
        code = frame.f_code
        if event == "call" and "slice_os" in code.co_filename and code.co_name[0] != "<":
            entered.add((code.co_filename, code.co_name, code.co_firstlineno))

    threading.setprofile(profile)  # for those that start meanwhile
    sys.setprofile(profile)
    try:
        assert index.search("the customer wants to cancel the plan")[0].document == "cancel"
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    files = {file for file, *_ in entered}
    assert len(files) <= 34, sorted(files)
    assert len(entered) <= 178, sorted(entered)

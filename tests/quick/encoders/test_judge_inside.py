"""The judge that comes inside: what it takes for an opposite, and what not."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import slice_os
from slice_os.encoders.judge import Placed, opposed
from slice_os.errors import EncoderError
from support import verbs

PAIRS = Path(__file__).parents[3] / "examples" / "everyday-pairs.tsv"
OPPOSED = [
    ("i want to cancel", Placed("i dont want to cancel")),
    ("i want to cancel", Placed("i didnt want to cancel")),
    ("i can pay", Placed("i cant pay")),
    ("the app will start", Placed("the app wont start")),
    ("wants a refund", Placed("does not want a refund")),
    ("refunds are given", Placed("No refunds are given")),
    ("refunds are given", Placed("Refunds are not given")),
    ("refunds are given", Placed("Refunds are", "", "not given")),
    ("wants to cancel", Placed("want to cancel", "the customer does not")),
    ("wants the information", Placed("does not want the details")),
    ("the price went up", Placed("the price went down")),
    ("within 30 days", Placed("within 60 days")),
]
AGREED = [
    ("no runtime overhead", Placed("zero runtime overhead")),
    ("tests are optional", Placed("tests are not required")),
    ("should emit a warning", Placed("must emit a warning")),
    ("shall emit a warning", Placed("needs to emit a warning")),
    ("wants the information", Placed("wants the details")),
    ("the shop is open", Placed("the shop is not closed")),
    ("it is possible", Placed("it is not impossible")),
    ("within 24 hours", Placed("within a day")),
    ("on 5 March", Placed("on March 5th")),
    ("card arrival", Placed("my card has not arrived")),
    ("wants to cancel", Placed("wants to cancel", "The customer")),
]


@pytest.fixture(scope="module")
def judge():
    with slice_os.load_judge() as judge:
        yield judge


@pytest.mark.parametrize("pair", OPPOSED)
def test_an_opposite_is_lowered(judge, pair):
    (found,) = judge.degrees([pair], np.float32([0.95]))
    assert found < 0.75


@pytest.mark.parametrize("pair", AGREED)
def test_what_only_looks_like_an_opposite_is_not_lowered(judge, pair):
    (found,) = judge.degrees([pair], np.float32([0.95]))
    assert found > 0.9


def test_it_is_right_of_most_everyday_pairs(judge):
    with PAIRS.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    same, against = (
        opposed(judge.logits([(row["phrase"], Placed(row[key])) for row in rows]))
        for key in ("paraphrase", "opposite")
    )
    assert (same < 0.5).mean() >= 0.9
    assert (against > 0.5).mean() >= 0.85


def test_it_says_the_same_both_ways_round(judge):
    pairs = [(query, placed.span) for query, placed in OPPOSED + AGREED if not any(placed[1:])]
    there, back = (
        judge.logits([(a, Placed(b)) for a, b in some])
        for some in (pairs, [pair[::-1] for pair in pairs])
    )
    np.testing.assert_array_equal(there, back)


def test_it_says_how_texts_are_opposed(judge):
    asked = [OPPOSED[0], ("within 30 days", Placed("within 60 days"))]
    assert judge.reasons(asked) == [("negation",), ("number",)]


def test_a_judge_that_is_not_there_is_said():
    assert slice_os.load_judge("none") is slice_os.load_judge(None) is None
    with pytest.raises(EncoderError, match="no judge wrods: give english, none, or the folder"):
        slice_os.load_judge("wrods")


@pytest.fixture(scope="module")
def location(tmp_path_factory):
    location = str(tmp_path_factory.mktemp("index") / "index.slice")
    texts = ["The client wants to cancel the contract.", "The client does not want to cancel it."]
    slice_os.index([slice_os.Document(str(n), text) for n, text in enumerate(texts)], location)
    return location


def test_a_search_judges_unless_told_not_to(location):
    with slice_os.open(location) as index, slice_os.open(location, judge="none") as plain:
        judged, verified = (
            {hit.document: hit.degree for hit in one.search("the client wants to cancel")}
            for one in (index, plain)
        )
        assert judged["0"] == verified["0"] > 0.9
        assert verified["1"] > 0.9
        assert judged["1"] < 0.7
        phrase = ["the client wants to cancel"]
        for one, found in ((index, {"0"}), (plain, {"0", "1"})):
            assert {m.document for m in one.mine(phrase, min_degree=0.8, rescore=True)} == found


def test_a_hit_says_why_it_was_lowered(location):
    query = "the client wants to cancel"
    with slice_os.open(location) as index, slice_os.open(location, judge="none") as plain:
        hits = {hit.document: hit for hit in index.search(query)}
        assert hits["1"].spans[0].opposition == ("negation",)
        assert hits["1"].lowered == "(opposite: negation)"
        assert hits["1"].lowered in hits["1"]._repr_html_()
        every = [hits["0"], *plain.search(query), *index.search(query, rescore=0)]
        assert not any(hit.lowered or hit.spans[0].opposition for hit in every)
    for more in ((), ("--group",)):
        said = verbs.run("search", query, "--index", location, *more).output
        assert said.count("(opposite: negation)") == said.count("«") - 1 == 1


def test_only_what_was_lowered_says_why(tmp_path):
    texts = [f"I would like to cancel my {what} from your company." for what in
             ("service", "plan", "order", "contract", "phone line", "ticket", "seat")]  # fmt: skip
    with (
        slice_os.open(tmp_path / "i.slice") as index,
        slice_os.open(tmp_path / "i.slice", judge=None) as plain,
    ):
        index.add([(str(number), text) for number, text in enumerate(texts)])
        query = "the customer wants to cancel"
        before = {hit.document: hit.degree for hit in plain.search(query)}
        for hit in index.search(query):
            assert bool(hit.lowered) == (hit.degree < before[hit.document] - 1e-4), hit


def test_the_verbs_take_it_by_name(location, tmp_path):
    def run(*arguments, **environment):
        return verbs.run(*arguments, env=environment).output

    query = "the client wants to cancel"
    asked = ("search", query, "--index", location, "--min-degree", "0.8")
    assert "does not" not in run(*asked)
    assert "does not" in run(*asked, "--judge", "none")
    phrases = tmp_path / "phrases.txt"
    phrases.write_text(query)
    mined = ("mine", phrases, "--index", location, "--min-degree", "0.8")
    assert "1 match" in run(*mined, "--judge", "english")
    assert "2 matches" in run(*mined, "--judge", "none")
    plain = run(*mined)
    assert plain == run(*mined, SLICE_OS_JUDGE="english") != run(*mined, "--judge", "none")
    unjudged = (*mined, "--no-rescore")
    assert plain != run(*unjudged) == run(*unjudged, "--judge", "none")
    assert run(*mined, SLICE_OS_JUDGE="none") == run(*mined, "--judge", "none")
    rows = tmp_path / "few.tsv"
    rows.write_text("\n".join(PAIRS.read_text(encoding="utf-8").splitlines()[:11]))
    lines = [run("evaluate", "opposites", rows, "--judge", one) for one in ("none", "english")]
    assert lines[0] != lines[1]

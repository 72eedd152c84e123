"""A judge in searches, in mining and in evaluation: its word is the degree, whatever it is.

The judge here is a small random model: what a trained one says is measured, not tested.
"""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

import slice_os
from slice_os.encoders.judge import Calibration, ModelJudge, Placed
from slice_os.errors import EvaluationError
from slice_os.text import placed
from support import verbs

TEXTS = {
    "a": "I called on Monday. The client does not want to cancel the contract today. Thanks.",
    "b": "Please end my subscription; I want to cancel it. The agent was kind.",
    "c": "She wants to cancel the order and he wants to keep it\nNobody wants to cancel this.",
}
QUERY = "wants to cancel"


@pytest.fixture(scope="module")
def folder(checkpoint, tmp_path_factory):
    """Return the folder of a judge."""
    folder = tmp_path_factory.mktemp("judge") / "judge"
    slice_os.export(checkpoint("bert"), folder)
    Calibration(0.5, 0.0, 1.0, 0.0, 0.0).save(folder)  # all is doubted, or nothing would be lowered
    return folder


@pytest.fixture(scope="module")
def location(tmp_path_factory):
    location = tmp_path_factory.mktemp("index") / "index.slice"
    slice_os.index([slice_os.Document(name, text) for name, text in TEXTS.items()], location)
    return location


@pytest.fixture(scope="module")
def reads(location):
    """Return a function: what a judge reads of a span of a document of one passage."""
    with slice_os.open(location) as index:
        stored = {one.passage.document: one for one in index.passages()}

    def read(document, start, end):
        one = stored[document]
        return Placed(*placed(one.passage.text, one.packed.starts, one.packed.ends, start, end))

    return read


def test_a_judge_reads_the_words_around_it_of_the_same_sentence():
    text = "I called. The client really does not want to cancel it, ever.\nSo be it"
    words = [match.span() for match in re.finditer(r"\w+", text)]
    starts, ends = np.array(words).T
    said = [text[start:end] for start, end in words]

    def read(first, last):
        return placed(text, starts, ends, starts[said.index(first)], ends[said.index(last)])

    before = "The client really does not"
    assert read("want", "cancel") == ("want to cancel", before, "it, ever")
    assert read("client", "client") == ("client", "The", "really does not want")
    assert read("it", "ever") == ("it, ever", "really does not want to cancel", "")
    assert read("So", "be") == ("So be", "", "it")
    # A line end in hard-wrapped prose ends no sentence, nor does the full stop of an abbreviation.
    text = "Mr. Smith does not\nwant to cancel.\nThe lamp is on."
    words = [match.span() for match in re.finditer(r"\w+", text)]
    starts, ends = np.array(words).T
    assert placed(text, starts, ends, 19, 33) == ("want to cancel", "Mr. Smith does not", "")


def test_a_search_shows_the_judged_degrees(folder, location, reads):
    with (
        slice_os.open(location, judge=None) as plain,
        slice_os.open(location, judge=folder) as judged,
    ):
        verified = {hit.document: hit for hit in plain.search(QUERY)}
        hits = judged.search(QUERY, sort="degree")
        assert judged.search(QUERY, rescore=0) == plain.search(QUERY, rescore=0)
        with slice_os.load_judge(folder) as judge:
            for hit in hits:
                before = {(one.start, one.end): one for one in verified[hit.document].spans}
                assert {(one.start, one.end) for one in hit.spans} == before.keys()
                for one in hit.spans:
                    old = before[one.start, one.end]
                    pair = QUERY, reads(hit.document, one.start, one.end)
                    (wanted,) = judge.degrees([pair], np.float32([old.degree]))
                    assert one.degree == pytest.approx(wanted)
                    assert one.in_context_degree == old.in_context_degree
                assert hit.degree == hit.spans[0].degree
    assert len(hits) == 3
    assert [hit.degree for hit in hits] == sorted((hit.degree for hit in hits), reverse=True)
    assert len({hit.degree for hit in hits}) > 1


def test_mining_finds_what_the_judge_lets_pass(folder, location, reads):
    with (
        slice_os.open(location, judge=None) as plain,
        slice_os.open(location, judge=folder) as index,
        slice_os.load_judge(folder) as judge,
    ):
        every = list(index.mine(QUERY, min_degree=0, rescore=True))
        own = {
            (m.document, m.start, m.end): m.degree
            for m in plain.mine(QUERY, min_degree=0, rescore=True)
        }
        assert every
        for match in every:
            pair = QUERY, reads(match.document, match.start, match.end)
            verified = own.get((match.document, match.start, match.end))
            if verified is not None:
                (wanted,) = judge.degrees([pair], np.float32([verified]))
                assert match.degree == pytest.approx(wanted, abs=1e-6)
        at = sorted(match.degree for match in every)[len(every) // 2]
        reached = list(index.mine(QUERY, min_degree=at))
        found = [
            any(
                one.document == match.document and one.start < match.end and match.start < one.end
                for one in reached
            )
            for match in every
            if match.degree >= at
        ]
        assert any(found)
        unjudged = [list(one.mine(QUERY, rescore=False)) for one in (index, plain)]
        assert unjudged[0] == unjudged[1]
        against = {QUERY: "does not want to cancel"}
        kept = {
            m.document
            for m in index.mine(QUERY, min_degree=0, rescore=True, counter_examples=against)
        }
        assert kept <= {match.document for match in every}


def test_the_verbs_take_a_judge(folder, location):
    def run(*words):
        done = verbs.run(*words, "--index", location, "--judge", folder, "--json")
        return json.loads(done.stdout)

    with slice_os.open(location, judge=folder) as index:
        wanted = [hit.degree for hit in index.search(QUERY)]
        assert [hit["degree"] for hit in run("search", QUERY)["hits"]] == wanted
        wanted = [match.degree for match in index.mine(QUERY, min_degree=0.1, rescore=True)]
    found = run("mine", "--phrase", QUERY, "--min-degree", "0.1")["matches"]
    assert [one["degree"] for one in found] == wanted


def test_evaluation_measures_the_judged_degree(folder, tmp_path):
    rows = [
        {"query": QUERY, "passage": text, "correct": "yes" if name == "b" else "no"}
        for name, text in TEXTS.items()
    ]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    report = slice_os.evaluate_degrees(tmp_path / "pairs.jsonl", judge=folder)
    assert [one.name for one in report.degrees] == ["single pass", "rescored", "judged"]
    plain = slice_os.evaluate_degrees(tmp_path / "pairs.jsonl")
    assert repr(plain.degrees) == repr(report.degrees[:2])  # a precision may be NaN
    (tmp_path / "pairs.tsv").write_text("phrase\tparaphrase\topposite\nyes\tyes\tno\n")
    found = slice_os.evaluate_opposites(tmp_path / "pairs.tsv", judge=folder)
    with slice_os.load_judge(folder) as judge, slice_os.load_encoder() as encoder:
        one, other = encoder.encode(["yes", "no"])
        verified = np.float32([1, (1 + one @ other) / 2])
        wanted = judge.degrees([("yes", Placed("yes")), ("yes", Placed("no"))], verified)
    assert [found.paraphrase["all"], found.opposite["all"]] == pytest.approx(
        wanted.tolist(), abs=1e-5
    )


def test_context_is_measured_with_a_judge(folder, tmp_path):
    texts = [*TEXTS.values(), "Nothing of that kind was said."]
    rows = [
        {"line": QUERY, "paraphrase": text, "passage": text, "goldsim": n}
        for n, text in enumerate(texts)
    ]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    wanted = ["window", "rescored"]
    report = slice_os.evaluate_context(tmp_path / "pairs.jsonl", scorers=wanted, judge=folder)
    window, verified, judged = report.scorers
    assert (window.name, judged.name) == ("window", "judged")
    scores, highest = np.array(judged.scores), np.array(verified.scores)
    assert (scores <= highest).all()
    assert (scores < highest).any()
    with pytest.raises(EvaluationError, match="judged needs a judge: give one with --judge"):
        slice_os.evaluate_context(tmp_path / "pairs.jsonl", scorers=["judged"])


def test_a_judge_says_the_same_both_ways_round_and_in_any_company(folder):
    pairs = [(a, Placed(b)) for a in TEXTS.values() for b in TEXTS.values()]
    verified = np.full(len(pairs), 0.9, np.float32)
    with slice_os.load_judge(folder, threads=2) as judge:
        found = judge.degrees(pairs, verified).reshape(3, 3)
        np.testing.assert_array_equal(found, found.T)
        turned = judge.degrees(pairs[::-1], verified)[::-1]
        np.testing.assert_array_equal(found.ravel(), turned)
        assert not len(judge.degrees([], np.float32([])))


def test_a_pair_is_read_once_and_only_if_it_could_be_lowered(folder, monkeypatch):
    read = []
    said = ModelJudge._states

    def count(self, ids, types):
        read.append(len(ids))
        return said(self, ids, types)

    monkeypatch.setattr(ModelJudge, "_states", count)
    pairs = [(QUERY, Placed("ends it")), (QUERY, Placed("keeps it")), (QUERY, Placed("ends it"))]
    with slice_os.load_judge(folder) as judge:
        low = judge.calibration.level
        found = judge.degrees(pairs, np.float32([0.9, low, 0.8]))
        assert len(read) == 1
        assert found[1] == np.float32(low)
        judge.reasons(pairs[:1])
        judge.degrees(pairs[:1], np.float32([0.7]))
        assert len(read) == 1
        judge.reasons(pairs)
        assert len(read) == 2


@given(some.floats(0, 1), some.floats(0, 1), some.floats(-9, 9), some.floats(0, 1))
def test_a_judged_degree_grows_with_the_degree_and_falls_with_doubt(one, other, odds, strength):
    def judged(degree, odds, strength):
        said = Calibration().degrees(*(np.float32([x]) for x in (degree, odds, strength)))
        return float(said[0])

    low, high = sorted([one, other])
    found = judged(high, odds, strength)
    assert judged(low, odds, strength) <= found <= np.float32(high)
    assert judged(high, odds + 1, strength) <= found <= judged(high, odds, 0)
    assert judged(high, -50, strength) == np.float32(high)

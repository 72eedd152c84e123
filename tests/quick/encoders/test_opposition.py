"""Opposites seen by their words, and what is none."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

import slice_os
from slice_os.encoders.opposition import opposition

ROOT = Path(__file__).parents[3]
PAIRS = ROOT / "examples" / "minimal-pairs.tsv"
OPPOSITES = [
    ("negation", "wants to cancel", "does not want to cancel"),
    ("negation", "with cause", "without cause"),
    ("negation", "Don’t call me again", "do call me again"),
    ("negation", "nobody was hurt", "somebody was hurt"),
    ("negation", "the app works again", "the app no longer works"),
    ("negation", "guests may bring pets", "guests can't bring pets"),
    ("negation", "this licence is exclusive", "this licence is non-exclusive"),
    ("antonym", "the price rose again", "the price fell again"),
    ("antonym", "prices are higher now", "prices are lower now"),
    ("antonym", "out of stock", "in stock"),
    ("antonym", "before noon", "after noon"),
    ("antonym", "where can I upload it", "where can I download it"),
    ("antonym", "a helpful answer", "an unhelpful answer"),
    ("antonym", "the buyer pays the fee", "the seller pays the fee"),
    ("antonym", "they renewed the contract", "they terminated the contract"),
    ("antonym", "is it close to the station", "is it far from the station"),
    ("number", "within thirty days", "within 31 days"),
    ("number", "50% off", "20% off"),
    ("number", "on the first of March", "on the first of May"),
    ("number", "we meet on Monday", "we meet on Tuesday"),
    ("number", "twenty-five years ago", "thirty-five years ago"),
    ("number", "double the dose", "halve the dose"),
    ("number", "within 30 days", "within 30 weeks"),
    ("number", "open until 9 p.m.", "open until 9 a.m."),
    ("number", "over a million came", "over ten million came"),
    ("modal", "the tenant may sublet the flat", "the tenant must sublet the flat"),
    ("modal", "you must not wait here", "you need not wait here"),
    ("modal", "breakfast is optional", "breakfast is mandatory"),
    ("role", "the bank sued the client", "the client sued the bank"),
    ("role", "I told her first", "she told me first"),
    ("role", "the mother infected her son", "the son infected his mother"),
    ("role", "your dog has bitten my cat", "my cat has bitten your dog"),
    ("role", "it went from 10 to 20 percent", "it went from 20 to 10 percent"),
]
ALIKE = [
    ("wants to cancel", "client would like to end the subscription"),
    ("the app is not working", "the app stopped working"),
    ("card arrival", "my card has not arrived"),
    ("beneficiary not allowed", "beneficiary of this"),
    ("within 30 days", "within thirty days"),
    ("a 30-day period", "a period of thirty (30) days"),
    ("part II of the book", "part two of the book"),
    ("it can't be undone", "it cannot be undone"),
    ("you must pay", "you have to pay"),
    ("he is allowed to stay", "he can stay"),
    ("yesterday it rained here", "it rained here yesterday"),
    ("cats and dogs", "dogs and cats"),
    ("cash withdrawal charge", "charged when I withdraw cash"),
    ("he paid his bill", "she paid her bill"),
    ("the price did not rise", "the price fell"),
    ("the man is in a bathroom", "a man is in the bathroom"),
    ("the fee is refundable", "the fee is refundable"),
    ("no", "is it"),
    ("der Kunde will kündigen", "der Kunde will nicht kündigen"),
    ("", "not"),
]


@pytest.mark.parametrize(("kind", "one", "other"), OPPOSITES)
def test_an_opposite_is_seen_both_ways(kind, one, other):
    for found in (opposition(one, other), opposition(other, one)):
        assert kind in found.kinds
        assert found.strength == 1


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_what_says_the_same_or_something_else_is_no_opposite(one, other):
    assert opposition(one, other) == ((), 0)


def test_what_stands_before_a_span_negates_it():
    assert opposition("want to cancel", "want to cancel", "they do not") == (("negation",), 1)
    assert opposition("do not want to cancel", "want to cancel", "they do not").strength == 0
    assert opposition("want to cancel", "want to cancel", "fee or not,").strength == 0
    assert opposition("thank you", "thank you", "no").strength == 0
    assert opposition("want to cancel", "want to cancel", "not that they will ever").strength == 0


def test_the_less_is_the_same_the_less_it_counts():
    sides = "the old red house by the lake was sold"
    whole, part = (opposition(sides, text).strength for text in (
        "the old red house by the lake was bought",
        "the old red barn by the lake was bought",
    ))  # fmt: skip
    assert whole == 1
    assert 0 < part < 1
    assert opposition(sides, "the tiny new barn was bought").strength == 0
    long = "the supplier and all of its agents, managers, clerks and partners deliver goods, tools "
    long += "and spare parts to the plant in"
    assert 0 < opposition(f"{long} May 5", f"{long} May 7").strength < 1


def test_most_of_the_written_pairs_are_seen_and_no_paraphrase_is_taken_for_one():
    with PAIRS.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    seen = Counter(row["kind"] for row in rows if opposition(row["phrase"], row["opposite"]).kinds)
    assert seen.total() >= 0.9 * len(rows)
    assert min(seen.values()) >= 75  # of 100 of each kind
    assert sum(bool(opposition(row["phrase"], row["paraphrase"]).kinds) for row in rows) <= 2


@given(some.text(max_size=80), some.text(max_size=80), some.text(max_size=20))
def test_any_texts_can_be_compared(one, other, before):
    kinds, strength = opposition(one, other, before)
    assert bool(kinds) == (strength > 0)
    assert 0 <= strength <= 1
    assert opposition(one, one).strength == 0


def test_a_long_text_takes_no_longer_than_it_has_words():
    long = " ".join(f"word{n}" for n in range(50_000))
    assert opposition(long, long).strength == 0
    assert opposition(long, f"{long} more").strength == 0


def test_the_antonyms_are_stems_and_go_both_ways():
    file = Path(slice_os.__file__).parent / "encoders" / "opposites.txt"
    lines = file.read_text(encoding="utf-8").splitlines()
    rows = dict(line.split(" ", 1) for line in lines if not line.startswith("#"))
    assert len(rows) > 3000
    assert all(word in rows[other].split() for word in rows for other in rows[word].split())
    assert any("WordNet 3.0 Copyright" in line for line in lines)

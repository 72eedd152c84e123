"""Which words and phrases of a corpus topics are described with."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import numpy as np
import pytest

from slice_os.lab.topics.vocabulary import (
    INSIDE,
    LONGEST,
    is_content,
    mine_vocabulary,
    occurrences,
    read_texts,
)


def mined(texts, least=2, most=1000):
    found = mine_vocabulary(read_texts(texts), least, most)
    return dict(zip(found.items, found.counts.tolist(), strict=True))


def test_phrases_begin_and_end_on_words_that_say_something():
    found = mined(["I would like a cup of tea, please."] * 2)
    assert found == {"cup of tea": 2, "cup": 2, "tea": 2}
    assert list(found) == ["cup", "tea", "cup of tea"]


def test_a_phrase_ends_with_its_sentence_line_and_at_punctuation():
    text = "Red wine, white wine. Green tea\n- black tea"
    found = mined([text] * 3)
    assert {item for item in found if " " in item} == {
        *("red wine", "white wine", "green tea", "black tea"),
    }


def test_what_is_said_nearly_only_within_a_longer_phrase_is_left_out():
    texts = ["alexander graham bell"] * 9 + ["graham bell"] * 2 + ["alexander graham"] * 4
    found = mined(texts)
    assert {item for item in found if " " in item} == {"alexander graham bell", "alexander graham"}
    assert found["graham"] == 15  # a word stays
    assert 9 / 11 > INSIDE > 9 / 13


@pytest.mark.parametrize(
    ("word", "says"),
    [
        *(("tea", True), ("e-mail", True), ("茶", True), ("2020", False), ("x", False)),
        *(("hi", False), ("okay", False), ("wants", False), ("won't", False), ("dont", False)),
        *(("the", False), ("don't", False), ("i'm", False), ("couldn't", False), ("she's", False)),
    ],
)
def test_words_that_say_something(word, says):
    assert is_content(word) is says


def test_counts_are_those_of_the_plain_programme():
    rng = random.Random(1)
    texts = [" ".join(rng.choices(["aa", "bb", "cc", "dd"], k=30)) for _ in range(8)]
    words = [text.split() for text in texts]
    plain = Counter(
        tuple(some[i : i + n])
        for some in words
        for n in range(1, LONGEST + 2)
        for i in range(len(some) - n + 1)
    )
    wanted = {}
    for run, count in plain.items():
        longer = max(
            (plain[other] for other in plain if len(run) < len(other) <= LONGEST
             and any(other[i : i + len(run)] == run for i in range(len(other)))),
            default=0,
        )  # fmt: skip
        if count >= 3 and len(run) <= LONGEST and (len(run) == 1 or longer <= INSIDE * count):
            wanted[" ".join(run)] = count
    assert mined(texts, least=3) == wanted
    assert len(wanted) > 50


def test_the_most_frequent_phrases_are_taken_and_all_words():
    texts = ["green tea"] * 5 + ["black coffee"] * 4 + ["cold milk"] * 3
    found = mined(texts, most=2)
    assert [item for item in found if " " in item] == ["green tea", "black coffee"]
    assert len(found) == 8


def test_where_items_occur():
    texts = read_texts(
        ["green tea", "tea. Green tea", "green, tea", "a tea", "Green TEA green tea"]
    )
    found = occurrences(texts, ["green tea", "tea", "black tea", "green"])
    assert [rows.tolist() for rows in found.values()] == [
        [0, 1, 4, 4],
        [0, 1, 1, 2, 3, 4, 4],
        [],
        [0, 1, 2, 4, 4],
    ]


@pytest.mark.parametrize("texts", [[], [""], ["", "?!", "\n"], ["the of and"] * 9])
def test_texts_without_a_word_that_says_something(texts):
    assert mined(texts) == {}
    assert occurrences(read_texts(texts), ["tea time"])["tea time"].tolist() == []


def test_repeated_words_do_not_run_over_the_end():
    for count, least in itertools.product(range(1, 9), (1, 2)):
        found = mined(["tea " * count], least=least)
        assert found.get("tea", 0) == (count if count >= least else 0)
    assert np.array_equal(read_texts(["a b", "", "c"]).bounds, [0, 2, 2, 3])

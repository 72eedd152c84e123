"""Spans as a person would mark them."""

from __future__ import annotations

import re

import numpy as np
import pytest

from slice_os.text.phrasing import CROSSING, DANGLING, LOOSE, phrasing


def phrasing_of(text, longest=20):
    found = list(re.finditer(r"\S+", text))
    starts, ends = (np.array([m.span()[side] for m in found], np.int32) for side in (0, 1))
    words = [m[0] for m in found]
    return words, phrasing(text, starts, ends, longest)


def cost(words, said, part):
    wanted = part.split()
    at = next(i for i in range(len(words)) if words[i : i + len(wanted)] == wanted)
    return float(said.costs[len(wanted) - 1, at]) / 2


@pytest.mark.parametrize(
    "text",
    [
        "I called twice. They never answered me.",
        "I called twice.\n\nThey never answered me.",
        "A: I called twice\nB: They never answered me",
        "- I called twice\n- They never answered me",
        "# I called twice\nThey never answered me, and it is a pity.",
        "I called twice\n```\nThey never answered me\n```",
    ],
)
def test_a_span_that_crosses_the_end_of_a_sentence_a_turn_or_a_bullet_gives_way(text):
    words, said = phrasing_of(text)
    before = next(word for word in words if word.startswith("twice"))
    crossing = " ".join(words[words.index(before) : words.index("They") + 1])
    assert cost(words, said, crossing) == pytest.approx(CROSSING)
    assert cost(words, said, f"called {before}") == 0
    assert cost(words, said, "They never answered") == 0


@pytest.mark.parametrize(
    "label",
    [
        "Customer:", "agent 2:", "[10:32] Anna:", "12/03/21, 10:32 - Anna Lee:", "**Bob**:",
        "[2024-05-01 10:32:07]", "10:32 AM", "- Dr. O'Neil (support):", "> Subject:", "客户:",
    ],
)  # fmt: skip
def test_who_speaks_and_when_is_no_part_of_what_is_said(label):
    words, made = phrasing_of(f"Agent: How can I help?\n{label} They never answered me")
    name = label.split()[-1]
    assert cost(words, made, f"{name} They never answered") == pytest.approx(CROSSING)
    assert cost(words, made, "They never answered me") == 0
    assert made.sentences[3, words.index("They")]


def test_a_colon_or_a_number_within_a_line_ends_nothing():
    words, made = phrasing_of(
        "They said: no fee.\nPay by 10:30 at gate 4: no fee\n5212459523 is it"
    )
    for part in ("said: no fee.", "10:30 at gate", "4: no fee", "5212459523 is it"):
        assert cost(words, made, part) < CROSSING


def test_a_span_that_dangles_gives_way_by_less():
    words, said = phrasing_of("The fee is payable by the Licensee and is not refundable")
    for part in ("fee is payable by", "payable by the", "and is not refundable", "and"):
        assert cost(words, said, part) == pytest.approx(DANGLING)
    for part in ("The fee", "payable by the Licensee", "is not refundable"):
        assert cost(words, said, part) == 0


def test_hard_wrapped_prose_and_abbreviations_end_no_sentence():
    text = (
        "The fee which the company\nhas agreed to pay to Mr. Smith on\n"
        "the first day of every month\nis due without further notice."
    )
    _, said = phrasing_of(text)
    assert said.costs.max() == pytest.approx(2 * DANGLING)


def test_other_languages_have_sentences_and_no_dangling_words():
    _, said = phrasing_of("Der Kunde kündigt und geht. Er kommt nie wieder.")
    assert sorted(set(said.costs.ravel().tolist())) == pytest.approx([0, 2 * CROSSING])


def test_a_sentence_too_short_for_the_window_counts_as_a_whole():
    words, said = phrasing_of("No. I would like to end the subscription today. Thank you.", 8)
    inside = np.arange(len(words)) + np.arange(1, 9)[:, None] <= len(words)
    cosines = np.where(inside, 0, -np.inf).astype(np.float32)
    counted = {
        (i, i + row + 1) for row, i in np.argwhere(said.within(cosines, range(5, 9)) == 0).tolist()
    }
    assert {one for one in counted if one[1] - one[0] < 5} == {(0, 1), (9, 11)}
    assert {one for one in counted if one[1] - one[0] >= 5} == {
        (i, i + length) for length in range(5, 9) for i in range(len(words) - length + 1)
    }


def test_of_ends_as_good_those_of_a_sentence_are_preferred():
    words, said = phrasing_of("We met. The man who sold it left. I waited for an hour.")
    loose = {
        part: float(said.loose[len(part.split()) - 1, words.index(part.split()[0])])
        for part in ("We met.", "The man who", "man who sold", "man who sold it left.")
    }
    assert list(loose.values()) == pytest.approx([0, 2 * LOOSE, 4 * LOOSE, 2 * LOOSE])

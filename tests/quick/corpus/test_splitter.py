from __future__ import annotations

import random
import re
import time
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slice_os.spans import own_norms
from slice_os.text import count_words, heading_of, sentence_ends, split
from slice_os.types import Document, Words

texts = st.one_of(
    st.text(max_size=400),
    st.text(alphabet="ab. \n\t\r\x1c中ไé😀\ud800", max_size=400),
    st.lists(st.sampled_from(["The cat", " sat.\n", "\n\n", "中文。", "x" * 90, " "])).map("".join),
)


@settings(max_examples=200)
@given(texts, st.integers(1, 30))
def test_every_character_is_in_a_passage_and_few_are_in_two(text: str, max_words: int) -> None:
    passages = list(split(Document("d", text, "a title"), max_words))
    position = after = 0
    for number, passage in enumerate(passages):
        assert passage.number == number
        assert passage.title == "a title"
        assert passage.document == "d"
        assert text[passage.start : passage.end] == passage.text
        assert passage.before == after == max(position - passage.start, 0)
        assert count_words(passage.text) <= max_words
        assert count_words(passage.text[: passage.before]) <= min(19, max_words // 2)
        assert not text[position : passage.start].strip()
        assert text[position : passage.end].strip()
        position, after = passage.end, passage.after
    assert not text[position:].strip()
    assert after == 0


@settings(max_examples=100)
@given(st.lists(st.text(alphabet="abc.,", min_size=1, max_size=12), min_size=1, max_size=120))
def test_no_passage_of_plain_words_is_too_long(words: list[str]) -> None:
    passages = list(split(Document("d", " ".join(words)), 10))
    assert max(count_words(passage.text) for passage in passages) <= 10


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0),
        ("two words", 2),
        (" naïve\u00a0café ", 2),
        ("中文文本", 4),
        ("我用 Python 写代码", 6),
        ("ひらがなカタカナ", 8),
        ("ไทย", 3),
        ("한국어 텍스트", 2),
    ],
)
def test_count_words(text: str, words: int) -> None:
    assert count_words(text) == words


def test_a_title_is_kept_with_what_follows() -> None:
    text = "On the cause of tides\n" + "The sea rises twice a day. " * 40
    titled, *_ = split(Document("d", text, "On the cause of tides"))
    assert titled.text.startswith("On the cause of tides\nThe sea rises")
    alone, *_ = split(Document("d", text))
    assert alone.text == titled.text  # a short line without an end is a heading anyway


def test_turns_are_never_cut() -> None:
    turns = [f"turn {n} " + "word " * (n * 7 % 23) + "end" for n in range(80)]
    text = "\n".join(turns)
    passages = list(split(Document("d", text)))
    assert len(passages) > 3
    assert [line for p in passages for line in p.text.split("\n")] == turns


SENTENCE = "We went down to the river and {} of us swam across it before the sun had set. "


def test_hard_wrapped_prose_is_cut_at_sentences() -> None:
    words = "".join(SENTENCE.format(n) for n in range(60)).split()
    lines, line = [], ""
    for word in words:
        if len(line) + len(word) > 60:
            lines.append(line.rstrip())
            line = ""
        line += word + " "
    text = "\n".join([*lines, line.rstrip()])
    assert sum(row.endswith(".") for row in text.split("\n")) < 20
    assert all(p.text.endswith(".") for p in split(Document("d", text)))


def test_a_short_line_in_wrapped_prose_stays_a_boundary() -> None:
    wide = "word " * 11 + "wordword"
    verse = "\n".join(["a short line of verse, and one that goes on, on, on."] + ["la la la"] * 9)
    text = "\n\n".join(["\n".join([wide] * 6), verse])
    assert next(split(Document("d", verse), 12)).text == verse.split("\n")[0]
    assert [p.start for p in split(Document("d", text), 75)] == [0, text.index("a short")]


@pytest.mark.parametrize(
    "text",
    [
        "word " * 50_000,
        "中文文本没有空格" * 5_000,
        "中文文本。" * 10_000,
        "a" * 500_000,
        "x\n" * 50_000,
        "\n" * 300_000 + "b",
        "before " + "b" * 100_000 + " after",
    ],
    ids=["one line", "Chinese", "Chinese sentences", "one word", "lines", "newlines", "in between"],
)
def test_extremes_are_complete_and_quick(text: str) -> None:
    before = time.perf_counter()
    passages = list(split(Document("d", text)))
    assert time.perf_counter() - before < 5
    own = "".join(p.text[p.before :] for p in passages)
    assert "".join(own.split()) == "".join(text.split())
    assert max(count_words(p.text) for p in passages) <= 110


def test_a_long_word_stays_whole() -> None:
    text = "before " + "b" * 100_000 + " after"
    words = [word for p in split(Document("d", text)) for word in p.text.split()]
    assert words == text.split()


def test_max_words_must_be_positive() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        list(split(Document("d", "text"), 0))


def spans_of(words: list[tuple[int, int]], length: int) -> list[tuple[int, int]]:
    return [(words[i][0], words[i + length - 1][1]) for i in range(len(words) - length + 1)]


long_sentences = st.lists(
    st.sampled_from(
        ["liability", "the fees,", "and", "(as defined)", "Mr. Smith", "paid;", "U.S. law", "which"]
    ),
    min_size=20,
    max_size=900,
).map(" ".join)


@settings(max_examples=60)
@given(long_sentences, st.integers(40, 130))
def test_every_span_of_20_words_of_a_sentence_is_whole_in_a_passage(text: str, most: int) -> None:
    passages = list(split(Document("d", text), most))
    places = [(p.start, p.end) for p in passages]
    words = [m.span() for m in re.finditer(r"\S+", text)]
    for start, end in spans_of(words, 20):
        assert any(first <= start and end <= last for first, last in places)


def owners(text: str, most: int = 110) -> Counter[tuple[int, int]]:
    """Count in how many passages each span of a document is found: 1 to 20 words."""
    found: Counter[tuple[int, int]] = Counter()
    for passage in split(Document("d", text), most):
        bounds = np.array([m.span() for m in re.finditer(r"\S+", passage.text)], np.int32)
        words = Words(bounds[:, 0], bounds[:, 1], np.zeros((len(bounds), 1), np.float32))
        norms = np.ones((20, len(bounds)), np.float32)
        for row in range(1, 20):
            norms[row, max(len(bounds) - row, 0) :] = 0
        for row, first in np.argwhere(own_norms(norms, words, passage) > 0).tolist():
            start, end = int(bounds[first, 0]), int(bounds[first + row, 1])
            found[passage.start + start, passage.start + end] += 1
    return found


@pytest.mark.parametrize("most", [38, 60, 110])
def test_every_span_of_a_long_sentence_is_found_once(most: int) -> None:
    text = " ".join(f"word{n}{',' * (n % 17 == 0)}" for n in range(1000))
    words = [m.span() for m in re.finditer(r"\S+", text)]
    wanted = {span for length in range(1, 21) for span in spans_of(words, length)}
    assert owners(text, most) == Counter(dict.fromkeys(wanted, 1))


@pytest.mark.parametrize(
    "said",
    [
        "The fee of Mr. Smith, as set by Acme Inc. in the U.S. Court under No. 5, is due.",
        "He paid approx. five pounds. e.g. for tea, cf. Fig. 3, and left.",
        "She asked (why not?) and went; nobody said 'stop!' but him.",
    ],
)
def test_a_point_that_ends_no_sentence_cuts_none(said: str) -> None:
    text = "Here it begins again. " + " ".join([said] * 40)
    passages = list(split(Document("d", text), 20))
    assert len(passages) > 20
    for first, following in pairwise(passages):
        clean = re.search(r"(due|pounds|left|him|again|is due)\.$", first.text)
        assert clean or following.before


def test_a_clause_is_cut_before_a_word_is() -> None:
    clause = "and the licensee shall pay to the licensor all of the fees that are due, "
    text = "The parties agree: " + clause * 30 + "and so on."
    ends = [p.text for p in split(Document("d", text))]
    assert all(re.search(r"(,|are|fees)$", end) for end in ends[:-1])


def test_headings_go_with_what_follows_them() -> None:
    body = "The licensor is liable for what it has done, and for nothing else. " * 5
    sections = [
        ("LIMITATION OF LIABILITY", "\n\n"),
        ("Term and Termination", "\n"),
        ("## Fees", "\n\n"),
        ("Payment\n-------", "\n"),
        ("3. The Software.", "\n\n"),
        ("What is covered?", "\n\n"),
        ("Part two\n\nDefinitions", "\n\n"),
    ]
    text = "".join(f"{heading}{gap}{body}\n\n" for heading, gap in sections * 3)
    for most in (60, 75, 90, 110, 140, 250):
        passages = list(split(Document("d", text), most))
        for heading, _ in sections * 3:
            assert not [p for p in passages if p.text.strip() == heading]
        for passage in passages:
            assert passage.text.rstrip().endswith("else."), passage.text
    shown = [p.text for p in split(Document("d", text))]
    starts = [text.split("\n")[0] for text in shown if not text.startswith("The licensor")]
    assert len(starts) == len(sections * 3)


def test_a_heading_at_the_end_goes_with_what_is_before_it() -> None:
    body = "The ship sank in the night, and nobody saw it go down in the dark. " * 7
    *_, last = split(Document("d", f"{body}\n\nThe End"))
    assert last.text.endswith("dark. \n\nThe End")
    (alone,) = split(Document("d", "Only a heading"))
    assert alone.text == "Only a heading"


def test_a_list_of_short_lines_is_no_heap_of_headings() -> None:
    text = "\n\n".join(f"Item number {n}" for n in range(200))
    passages = list(split(Document("d", text)))
    assert all(not p.before and re.search(r"\d$", p.text) for p in passages)
    assert len(passages) == 6


def test_lines_that_go_on_are_not_cut() -> None:
    rng = random.Random(1)
    words = (SENTENCE.format("three") * 60).split()
    lines: list[str] = []
    while words:
        size = rng.randint(2, 12)
        lines.append(" ".join(words[:size]))
        del words[:size]
    passages = list(split(Document("d", "\n".join(lines))))
    assert len(passages) > 8
    assert all(p.text.endswith("set.") for p in passages)


def test_turns_in_small_letters_are_no_headings():
    text = "hi\ni want to cancel that drink\nyes classic caesar and a soda"
    assert heading_of(text) == ""
    assert heading_of("hello there\n\ni want to cancel\n\n2 pizzas, please.") == ""
    assert heading_of("Fees\n\nAll fees are due at once.") == "Fees"


def test_a_gap_of_many_lines_takes_no_longer_than_it_has_lines():
    text = "Hello there." + "\n" * 200_000 + "- Goodbye to all."
    ends = np.array([5, 12, 200_013, 200_021, 200_024, 200_029])
    assert sentence_ends(text, ends).tolist() == [True, False, True, False, False, False, True]

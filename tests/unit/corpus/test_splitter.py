from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slice_os.corpus import count_words, split
from slice_os.records import Document

texts = st.one_of(
    st.text(max_size=400),
    st.text(alphabet="ab. \n\t\r\x1c中ไé😀\ud800", max_size=400),
    st.lists(st.sampled_from(["The cat", " sat.\n", "\n\n", "中文。", "x" * 90, " "])).map("".join),
)


@settings(max_examples=200, deadline=None)
@given(texts, st.integers(1, 30))
def test_every_character_is_in_exactly_one_passage(text: str, max_words: int) -> None:
    passages = list(split(Document("d", text, "a title"), max_words))
    position = 0
    for number, passage in enumerate(passages):
        assert passage.number == number
        assert passage.title == "a title"
        assert passage.document == "d"
        assert text[passage.start : passage.end] == passage.text
        assert not text[position : passage.start].strip()
        assert passage.text.strip()
        position = passage.end
    assert not text[position:].strip()


@settings(max_examples=100, deadline=None)
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
    assert alone.text == "On the cause of tides"


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
    verse = "\n".join(["a short line of verse that goes on"] + ["la la la"] * 9)
    text = "\n\n".join(["\n".join([wide] * 6), verse])
    assert next(split(Document("d", verse), 8)).text == verse.split("\n")[0]
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
    assert "".join("".join(p.text.split()) for p in passages) == "".join(text.split())
    assert max(count_words(p.text) for p in passages) <= 110


def test_a_long_word_stays_whole() -> None:
    text = "before " + "b" * 100_000 + " after"
    words = [word for p in split(Document("d", text)) for word in p.text.split()]
    assert words == text.split()


def test_max_words_must_be_positive() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        list(split(Document("d", "text"), 0))

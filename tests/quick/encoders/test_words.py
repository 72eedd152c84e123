import unicodedata

import numpy as np
import pytest

from slice_os.encoders.tokens import words_of


def found(encoder, text):
    (words,) = encoder.encode_words([text])
    assert words.starts.dtype == words.ends.dtype == np.int32
    assert words.vectors.dtype == np.float32
    assert words.vectors.shape == (len(words), encoder.info.dimension)
    return [text[a:b] for a, b in zip(words.starts, words.ends, strict=True)]


@pytest.mark.parametrize(
    "text",
    [
        "I'd like to cancel; it costs $9.99, non-refundably!",
        "  leading,\tinner \n\n and trailing\u00a0\u3000white space \r\n",
        "naïve café: cafe\u0301 nai\u0308ve Ω ß ﬁ",
        "a 😀 b👩‍👩‍👧‍👦c 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𐍈",  # noqa: RUF001
        "한국어 문장은 띄어쓰기를 한다",
        "Все счастливые семьи похожи",  # noqa: RUF001
        "عربي نص עברית",
        "col·lecció",
        "[SEP] is a word, [CLS] too",
    ],
)
def test_a_word_is_a_run_without_spaces(encoder, text):
    assert found(encoder, text) == text.split()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("我们走", ["我", "们", "走"]),
        ("买iPhone手机 2024年", ["买", "iPhone", "手", "机", "2024", "年"]),
        ("カーテン", ["カ", "ー", "テ", "ン"]),
        ("名前。まだ", ["名", "前", "。", "ま", "た\u3099"]),
        ("ok 文", ["ok", "文"]),
    ],
)
def test_a_token_is_a_word_in_scripts_without_spaces(encoder, text, words):
    assert [unicodedata.normalize("NFC", w) for w in found(encoder, text)] == [
        unicodedata.normalize("NFC", w) for w in words
    ]


def test_thai_lao_khmer_and_myanmar_are_kept_whole_by_a_vocabulary_without_them(encoder):
    # The English vocabulary has one unknown token for the run; no character is lost.
    for text in ("ภาษาไทยง่าย", "ພາສາລາວ", "ភាសាខ្មែរ", "မြန်မာဘာသာ"):
        assert "".join(found(encoder, text)) == text


@pytest.mark.parametrize("text", ["", "   ", "\n\t\u2003", "\u200b\u200d", "\x00\x01", "\u0301"])
def test_text_without_tokens_has_no_words_and_a_zero_row(encoder, text):
    assert found(encoder, text) == []
    assert not encoder.encode([text]).any()


def test_a_word_without_a_token_is_left_out(encoder):
    assert found(encoder, "one \u200b two \u0301 three") == ["one", "two", "three"]


def test_a_lone_surrogate_moves_no_offset(encoder):
    assert found(encoder, "a \ud83d b\udc00c d") == ["a", "b\udc00c", "d"]
    assert encoder.encode(["x\ud800y"]).any()


def offsets(*pairs):
    return np.array(pairs, np.int32).reshape(-1, 2)


def split(text, *pairs):
    words = words_of(text, offsets(*pairs))
    return [text[a:b] for a, b in zip(words.starts, words.ends, strict=True)], words


def test_a_token_that_begins_in_white_space_belongs_to_the_next_word():
    # SentencePiece: the mark of a space is part of the token, or a token of its own.
    texts, words = split("ab cd  ef ", (0, 2), (2, 4), (4, 5), (5, 6), (6, 9), (9, 10))
    assert texts == ["ab", "cd", "ef"]
    assert words.first.tolist() == [0, 1, 3]
    assert words.owned == 5


def test_such_a_token_next_to_a_script_without_spaces():
    texts, words = split("ab café 猫は ", (0, 2), (2, 5), (5, 7), (7, 8), (8, 9), (9, 10), (10, 11))
    assert texts == ["ab", "café", "猫", "は"]
    assert words.first.tolist() == [0, 1, 3, 5]
    assert words.owned == 6


def test_a_token_over_two_scripts_makes_one_word():
    texts, _ = split("x3月は", (0, 1), (1, 3), (3, 4))
    assert texts == ["x3月", "は"]


def test_tokens_of_one_character_make_one_word():
    # Byte fallback: three tokens, one character.
    texts, words = split("語語", (0, 1), (0, 1), (0, 1), (1, 2))
    assert texts == ["語", "語"]
    assert words.first.tolist() == [0, 3]


def test_a_mark_that_the_normaliser_drops_stays_with_its_word():
    texts, _ = split("กี่ข", (0, 1), (3, 4))
    assert texts == ["กี่", "ข"]

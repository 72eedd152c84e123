"""Exact words: what of a query is an operator, and what stands in a text."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slice_os.errors import QueryError
from slice_os.text import WORD, Query, Wording, exact_words, parse_query
from slice_os.text.normal_form import aligned_normal_form, normal_form

TYPESET = (
    "ab e\r\n\u00ad\u200b\u200d\u0301\u0323\u00e9\ufb03\ufb01\u1100\u1161\u11a8\uac00\uff52"
    "\uff76\uff9e\u30ab\u3099\u09c7\u09be\ud800\U0001f468"
)


@pytest.mark.parametrize(
    ("typed", "text", "must", "must_not"),
    [
        ('a "late fee" refund', "a late fee refund", ["late fee"], []),
        ("refund -fee", "refund", [], ["fee"]),
        ('refund -"late fee", please', "refund , please", [], ["late fee"]),
        ('"one" -two "three four" -five-six', "one three four", ["one", "three four"],
         ["two", "five-six"]),
        ("“late fee” refund „Gebühr“", "late fee refund Gebühr", ["late fee", "Gebühr"], []),
    ],
)  # fmt: skip
def test_operators(typed, text, must, must_not):
    query = parse_query(typed)
    assert query.text.split() == text.split()
    assert [one.phrase for one in query.wording if one.wanted] == must
    assert [one.phrase for one in query.wording if not one.wanted] == must_not
    assert parse_query(typed, literal=True) == Query(typed)


@pytest.mark.parametrize(
    "typed",
    [
        *("send an e-mail", "it is -5 degrees", "well - not now", "what --all does", "a-b-c", "-"),
        *('a 5" pipe and a 6" valve', 'he said "', '"" -?', '"?!" what', 'the"old"one', "it's -'"),
        "-\U0001f680 rocket",
    ],
)
def test_what_is_no_operator_stays_as_it_is(typed):
    assert parse_query(typed) == Query(typed)


def test_options_say_the_same_as_operators():
    typed = parse_query('refund "credit card" -fee')
    given = parse_query("refund credit card", must="credit card", must_not=["fee", "fee"])
    assert typed.wording == given.wording
    for bad in ({"must": "?"}, {"must_not": ["fee", ""]}):
        with pytest.raises(QueryError, match="holds no word"):
            parse_query("refund", **bad)
    with pytest.raises(QueryError, match="half a character"):
        parse_query("refund", must="\ud800")
    with pytest.raises(QueryError, match="only says what must not be there"):
        parse_query(" -fee")


@pytest.mark.parametrize(
    ("phrase", "text", "stands"),
    [
        ("late fee", "A LATE, fee", True),
        ("late fee", "late\nfee", True),
        ("late fee", "a late fees", False),
        ("late fee", "late and fee", False),
        ("fee late", "late fee", False),
        ("e-mail", "an E mail", True),
        ("e-mail", "an email", False),
        ("don't", "I don\u2019t", True),
        ("ΟΔΟΣ", "οδος οδοσ", True),
        ("resume", "résumé", False),
        ("取消", "请取消订阅", True),
        ("消取", "请取消订阅", False),
        ("x" * 300, f"a {'x' * 300} b", True),
        ("to be or not", "to be, or not to be", True),
    ],
)
def test_whole_words_whatever_their_case_and_what_stands_between(phrase, text, stands):
    assert Wording(phrase).holds("", text) is stands
    assert Wording(phrase).holds(text, "") is stands
    assert Wording(phrase, wanted=False).holds(text) is not stands


@pytest.mark.parametrize("typed", ["cafe\u0301 o\ufb03ce", "caf\u00e9 of\u00adfice"])
def test_queries_are_written_as_texts_are(typed):
    assert parse_query(f'"{typed}"') == parse_query('"caf\u00e9 office"')
    assert parse_query("a", must=typed) == parse_query("a", must="caf\u00e9 office")


@given(st.text(st.sampled_from(TYPESET)))
def test_a_normal_form_knows_where_its_characters_stand(text):
    normal, places = aligned_normal_form(text)
    assert normal == normal_form(text) == normal_form(normal)
    assert places == [] if normal == text else len(places) == len(normal)
    for character, (start, end) in zip(normal, places, strict=False):
        assert character in normal_form(text[start:end])
    assert places == sorted(places)


def test_no_words_across_title_and_text():
    assert not Wording("late fee").holds("It is late", "fee of ten")
    assert exact_words("3.14 a_b") == ["3", "14", "a", "b"]


def test_a_cluster_cuts_words_by_the_same_pattern():
    template = files("slice_os.index_templates").joinpath("opensearch/passages.json").read_text()
    analysis = json.loads(template)["template"]["settings"]["index"]["analysis"]
    assert analysis["tokenizer"]["exact"]["pattern"] == WORD

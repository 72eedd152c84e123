"""What is written in several forms, as a judge reads it."""

from __future__ import annotations

import pytest

from slice_os.encoders.judge_text import MARK, marked, normal

SAME = [
    ("I dont want it", "i don’t want it"),
    ("he cant, wont and didnt", "he can't, won't and didn't"),
    ("I cannot", "i can not"),
    ("We're late and they were late", "we are late and they were late"),
    ("youre here", "you are here"),
    ("No one came", "nobody came"),
    ("twenty-five days", "25 days"),
    ("five hundred", "500"),
    ("a dozen eggs", "twelve eggs"),
    ("at 3 pm", "at 15:00"),
    ("at 12 a.m.", "at 00:00"),
    ("1,200 users", "1200 users"),
    ("fifty percent", "50 per cent"),
    ("on Sept. 3", "on September 3"),
    ("the second floor", "the 2nd floor"),
]
CONTRADICTING = [
    ("3 nights", "four nights"),
    ("on Monday", "on Tuesdays"),
    ("at 3 am", "at 3 pm"),
    ("on 5 March", "on March 15th"),
    ("in 24 hours", "in 2 weeks"),
    ("version 2.1", "version 3.1"),
]
AGREEING = [
    ("three nights", "3 nights"),
    ("on 5 March", "on March 5th"),
    ("within 24 hours", "within a day"),
    ("two weeks' notice", "14 days' notice"),
    ("two years", "24 months"),
    ("costs $20", "costs twenty dollars"),
    ("they marched on Rome", "May we march?"),
    ("a refund within 5 days", "a refund"),
    ("one of the best", "the best"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_is_the_same_is_written_the_same(one, other):
    assert normal(one) == normal(other)


@pytest.mark.parametrize(("one", "other"), CONTRADICTING)
def test_numbers_that_contradict_each_other_are_marked(one, other):
    for pair in ((one, other), (other, one)):
        asked, said, *_ = marked(*pair)
        assert MARK in asked
        assert MARK in said


@pytest.mark.parametrize(("one", "other"), AGREEING)
def test_numbers_that_agree_are_not_marked(one, other):
    for pair in ((one, other), (other, one)):
        assert not any(MARK in text for text in marked(*pair))


def test_a_number_beside_the_span_agrees_too():
    assert marked("after 5 days", "days", "after 5", "") == ("after 5 days", "days", "after 5", "")
    assert MARK in marked("after 5 days", "days", "after 6", "")[0]

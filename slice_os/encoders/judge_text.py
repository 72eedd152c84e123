"""English as a judge reads it: one form for what is written in several, where that is exact.

"dont" and "don't" become "do not", "twenty-five" becomes "25", "3 pm" becomes "15:00". A number, a
weekday or a month that one of two texts has and the other has not is marked, if each has one.
"""

from __future__ import annotations

import re
from functools import lru_cache

MARK = "§ "
"""Stands before a number that contradicts one of the other text."""

_SHORT = {"re": " are", "ve": " have"}
_SMALL = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
fifteen sixteen seventeen eighteen nineteen"""
_ONES = {name: n for n, name in enumerate(_SMALL.split())}
_ROUND = "twenty thirty forty fifty sixty seventy eighty ninety"
_TENS = {name: 10 * n for n, name in enumerate(_ROUND.split(), 2)}
_LARGE = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
_RANKS = "fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
_ORDINALS = {"first": "1st", "third": "3rd"} | {
    name: f"{n}th" for n, name in enumerate(_RANKS.split(), 4)
}
_YEAR = "january february march april june july august september october november december"
_MONTHS = {name[:3]: name for name in _YEAR.split()}
_SHORT_MONTHS = "|".join(("sept", *_MONTHS))
_CARDINAL = re.compile(
    rf"\b(?:({'|'.join(_TENS)})[ -])?({'|'.join(reversed(_ONES))})\b|\b({'|'.join(_TENS)})\b"
)
_WRITTEN = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        ("[\u2019`\u00b4]", "'"),
        (r"\b(?:can'?t|cannot)\b", "can not"),
        (r"\bwon'?t\b", "will not"),
        (r"\bshan'?t\b", "shall not"),
        (r"\bain'?t\b", "is not"),
        (
            r"\b(do|does|did|is|are|was|were|has|have|had|would|should|could|must|need|might)"
            r"n'?t\b",
            r"\1 not",
        ),
        (r"\bi'?m\b", "i am"),
        (r"\bi'?ve\b", "i have"),
        (r"\b(you|we'|they)'?(re|ve)\b", lambda m: m[1].strip("'") + _SHORT[m[2]]),
        (r"\b(i|you|he|she|it|we|they|there)'ll\b", r"\1 will"),
        (r"\bgonna\b", "going to"),
        (r"\bwanna\b", "want to"),
        (r"\bno one\b", "nobody"),
        (rf"\b({_SHORT_MONTHS})\.? (?=\d)", lambda m: f"{_MONTHS[m[1][:3]]} "),
        (rf"(?<=\d )({_SHORT_MONTHS})\b\.?", lambda m: _MONTHS[m[1][:3]]),
        (r"(?<=\d),(?=\d{3}\b)", ""),
        (r"\b(1[0-2]|0?[1-9])(?:[:.]([0-5]\d))? ?([ap])\.?m\b\.?", lambda m: _clock(m)),
        (r"(?<=\d) ?(?:percent|per cent)\b", "%"),
        (r"\ba dozen\b|\bdozen\b", "12"),
        (r"\ba fortnight\b|\bfortnight\b", "2 weeks"),
        (rf"\b({'|'.join(_ORDINALS)})\b", lambda m: _ORDINALS[m[1]]),
        (r"\bthe second (?=[a-z])", "the 2nd "),
        (_CARDINAL.pattern, lambda m: _cardinal(m)),
        (
            rf"\b(?:(\d{{1,3}})|a) ({'|'.join(_LARGE)})\b",
            lambda m: str(int(m[1] or 1) * _LARGE[m[2]]),
        ),
        (r"(?<=\d)(?:-|\s)?(?:percent|per cent)\b", "%"),
    )
]
_VALUE = re.compile(
    r"\d+(?:[.:/]\d+)*|\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|april|june|"
    r"july|august|september|october|november|december|(?:march|may)(?= \d)|"
    r"(?<=\d )(?:march|may))s?\b"
)
_UNIT = re.compile(r"[ -]?(minute|hour|day|week|month|year)s?\b")
_ONE_UNIT = re.compile(
    r"\b(?:an?|one|per|every|each|single) (?=(?:minute|hour|day|week|month|year)\b)"
)
_LENGTHS = {"minute": 1, "hour": 60, "day": 1440, "week": 10080, "month": 0.1, "year": 1.2}
"""In minutes; months and years, which are not so many weeks, in tenths of a month."""


def _clock(time: re.Match[str]) -> str:
    hour = int(time[1]) % 12 + (12 if time[3] == "p" else 0)
    return f"{hour:02}:{time[2] or '00'}"


def _cardinal(number: re.Match[str]) -> str:
    if number[3]:
        return str(_TENS[number[3]])
    if not number[1] and number[2] == "one":
        return "one"  # most often it is no number
    return str(_TENS.get(number[1] or "", 0) + _ONES[number[2]])


@lru_cache(1 << 12)
def normal(text: str) -> str:
    """Return a text in lower case, with contractions and number words written out."""
    written = text.lower()
    for pattern, replacement in _WRITTEN:
        written = pattern.sub(replacement, written)
    return written


def _values(text: str) -> list[tuple[int, str]]:
    """Return where numbers, weekdays and months are in a normal text, and what they are."""
    values = []
    for match in _VALUE.finditer(text):
        value = match[0].lstrip("0") or "0"
        if value[0].isdigit() and (unit := _UNIT.match(text, match.end())) and value.isdigit():
            value = f"{int(value) * _LENGTHS[unit[1]]:g}t"
        values.append((match.start(), value.rstrip("s")))
    return values


def values(text: str) -> set[str]:
    """Return a normal text's numbers, weekdays and months, "a day" and "one day" among them."""
    counted = _ONE_UNIT.sub("1 ", text)
    return {value for _, value in _values(counted)}


def marked(query: str, span: str, before: str = "", after: str = "") -> tuple[str, str, str, str]:
    """Return query, span, and what stands around it, as a judge reads them."""
    question, answer, ahead, behind = map(normal, (query, span, before, after))
    here, there = values(question), values(f"{ahead} {answer} {behind}")
    in_question = [at for at, value in _values(question) if value not in there]
    in_answer = [at for at, value in _values(answer) if value not in here]
    if in_question and (in_answer or there - here):
        question = _with_marks(question, in_question)
        answer = _with_marks(answer, in_answer)
    return question, answer, ahead, behind


def _with_marks(text: str, places: list[int]) -> str:
    for at in reversed(places):
        text = text[:at] + MARK + text[at:]
    return text

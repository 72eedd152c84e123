"""A document's passages: whole paragraphs, turns and sentences as long as they fit.

Where even a sentence does not fit, it is cut at a clause or else at a word, and the two passages
share words, so that no span is cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import regex

from slice_os.text.sentences import JOIN, flow, is_cased
from slice_os.types import Document, Passage

DEFAULT_MAX_WORDS = 110
SHARED = 19
"""Words that two passages share at a cut sentence, so that one holds every span of 20 words."""

_JOINED, _WORD, _CLAUSE, _SENTENCE, _LINE, _BLANK = range(-1, 5)
"""What a word ends: the higher, the better a cut after it; after `_JOINED` there should be none."""

_RUN = re.compile(r"\S+")
_JOINS = re.compile(re.escape(JOIN))
# One character is the nearest thing to a word that can be counted without a dictionary.
_UNSPACED = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]", regex.V1
)
_CLOSING = "\"'”’)]}»*_」』”"
_NUMBER = re.compile(r"[(\[]?(\d{1,3}(\.\d{1,3})*|[A-Za-z]|[ivxIVX]{1,5})[.)]+")
_INITIALS = re.compile(r"\W*(\w|(\w\.)+\w)\.")
_ABBREVIATED = frozenset([
    "mr", "mrs", "ms", "dr", "prof", "st", "jr", "sr", "vs", "inc", "ltd", "co", "corp", "dept",
    "est", "approx", "fig", "figs", "sec", "sect", "art", "arts", "ch", "vol", "pp", "eq", "ref",
    "refs", "cf", "al", "etc", "viz", "resp", "incl", "gen", "col", "capt", "sgt", "hon", "rev",
])  # fmt: skip
_BEGUN = regex.compile(r"\n[^\S\n]*(?:[-*+•–>|]\s|```|[\p{L}\d][\w .'’-]{0,24}:\s)")
_TIME = r"[(\[]?(?:\d[\d./-]{0,9},? )?\d{1,2}:\d\d(?::\d\d)?(?: ?[APap]\.?[Mm]\.?)?[)\]]?"
# Of several words each begins with a capital, in a script that has them, or is a number.
_NAME = r"[\p{L}\d*_@#][^\s:]{0,24}(?: (?!\p{Ll})[^\s:]{1,24}){0,3}:[*_]{0,2}"
_LABEL = regex.compile(
    rf"(?m)^[^\S\n]{{0,9}}(?:[-*•>] )?(?:{_TIME}(?: ?[-–])?(?: {_NAME})?|{_NAME})"
    r"(?=[^\S\n]+\S)"
)
"""Who speaks, when, or the name of a field, at the beginning of a line."""
_BEFORE_NUMBERS = frozenset(["no", "nos", "nr", "p", "para", "paras", "cl"])
_BEGINNING_CLAUSES = frozenset([
    "and", "or", "but", "nor", "which", "that", "who", "whom", "whose", "where", "when", "while",
    "because", "since", "although", "though", "if", "unless", "until", "whether", "provided",
    "including", "so", "whereas",
])  # fmt: skip


class _Word(NamedTuple):
    start: int
    end: int
    ends: int
    """What the word ends: one of the numbers above."""


def count_words(text: str) -> int:
    """Count runs of non-space characters, and every character of a script without spaces."""
    if text.isascii():
        return len(text.split())
    spaced, characters = _UNSPACED.subn(" ", text)
    return characters + len(spaced.split())


def split(document: Document, max_words: int = DEFAULT_MAX_WORDS) -> Iterator[Passage]:
    """Cut `document` into passages of at most `max_words` words.

    Every non-space character is in a passage, and ``document.text[p.start:p.end] == p.text``. Where
    a sentence is cut, the next passage begins with the last 19 words (half of `max_words`, if that
    is less), so that every span of 20 words within a sentence is whole in one. A heading goes with
    what follows it. One word is never too long to be a passage: nothing is truncated.
    """
    if max_words < 1:
        raise ValueError(f"max_words must be at least 1, not {max_words}")
    words = _words(flow(document.text, document.title))
    held: list[_Word] = []
    number = before = common = 0
    while True:
        held += islice(words, max_words + 1 - len(held))
        if not held:
            return
        cut, share = _cut(held, common, max_words)
        first, last = held[0].start, held[cut - 1].end
        after = last - held[cut - share].start if share else 0
        text = document.text[first:last]
        yield Passage(
            document.id, number, first, last, text, document.title, before=before, after=after
        )
        if cut == len(held):
            return
        del held[: cut - share]
        number, before, common = number + 1, after, share


def sentence_ends(text: str, ends: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Tell between which words of a text a sentence, a line or a bullet ends: bool ``[N + 1]``.

    `ends` ``[N]`` are where its words end, in characters. Element k is what stands before word k;
    the first and the last are True. The line ends of hard-wrapped prose end nothing; those before
    a bullet, a speaker's name, a fence of code and after a heading do, and so does the name itself.
    """
    flowing = flow(text)
    cased = is_cased(flowing)
    last, before = [], _BLANK
    for (start, end), (following, _) in pairwise(_runs(flowing)):
        # Most words are letters before a space, and end no sentence.
        inside = flowing[end - 1].isalpha() and flowing[end:following] == " "
        before = _WORD if inside else _ending(flowing, (start, end), following, before, cased)
        if before >= _SENTENCE:
            last.append(end)
    last += [mark.start() for mark in _BEGUN.finditer(text)]
    last += [label.end() for label in _LABEL.finditer(text)]
    last += [join.start() for join in _JOINS.finditer(flowing)]
    is_end = np.zeros(len(ends) + 1, bool)
    is_end[np.searchsorted(ends, last, side="right")] = True
    is_end[[0, -1]] = True
    return is_end


def joined(passages: Sequence[Passage]) -> str:
    """Return the text that neighbouring passages of a document were cut from, by their offsets.

    They may share words; the white space between them, which they do not hold, is line ends.
    """
    end, text = passages[0].start, []
    for passage in passages:
        text.append("\n" * (passage.start - end) + passage.text[max(end - passage.start, 0) :])
        end = max(end, passage.end)
    return "".join(text)


def with_neighbours(passages: Sequence[Passage]) -> list[Passage]:
    """Return the passages of a document, in order, with the characters that they share."""
    shared = [max(0, first.end - second.start) for first, second in pairwise(passages)]
    return [
        replace(passage, before=before, after=after)
        for passage, before, after in zip(passages, [0, *shared], [*shared, 0], strict=False)
    ]


def _cut(words: Sequence[_Word], common: int, max_words: int) -> tuple[int, int]:
    """Return how many `words` make a passage, and how many of them the next one repeats.

    The first `common` are those that the passage before it holds too.
    """
    if len(words) <= max_words:
        return len(words), 0
    places = range(max_words, common, -1)
    for least in (_BLANK, _LINE, _SENTENCE):
        for place in places:
            if words[place - 1].ends >= least:
                return place, 0
    half = max(max_words // 2, common)
    share = min(SHARED, max_words // 2)
    for least in (_CLAUSE, _WORD):
        for place in range(max_words, half, -1):
            if words[place - 1].ends >= least:
                return place, share
    return max_words, share


def _words(text: str) -> Iterator[_Word]:
    """Yield the words of a text as it flows."""
    cased = is_cased(text)
    last: tuple[int, int] | None = None
    former = _BLANK
    for start, end in _runs(text):
        if last is not None:
            former = _ending(text, last, start, former, cased)
            yield _Word(*last, former)
        last = start, end
    if last is not None:
        yield _Word(*last, _BLANK)


def _runs(text: str) -> Iterator[tuple[int, int]]:
    """Yield where words are: runs without a space and, of scripts without spaces, characters."""
    plain = text.isascii() or not _UNSPACED.search(text)
    for run in _RUN.finditer(text):
        start, end = run.span()
        if plain or not (alone := [mark.start() for mark in _UNSPACED.finditer(run[0])]):
            yield start, end
            continue
        for place in alone:
            if start < (here := run.start() + place):
                yield start, here
            yield here, here + 1
            start = here + 1
        if start < end:
            yield start, end


def _ending(text: str, word: tuple[int, int], following: int, former: int, cased: bool) -> int:
    """Return what ends with a word, by what is in it and after it, and what ended before it."""
    start, end = word
    gap = text[end:following]
    if gap != " ":
        if JOIN in gap:
            return _JOINED
        if (lines := gap.count("\n")) or "\f" in gap:
            return _BLANK if lines != 1 else _LINE
    shown = text[start:end]
    mark = shown.rstrip(_CLOSING)[-1:]
    if mark in "。！？" and mark:
        return _SENTENCE
    if not gap:
        return _CLAUSE if mark and mark in "、，；：" else _WORD
    goes_on = cased and text[following].islower()
    if mark and mark in "!?":
        return _CLAUSE if goes_on else _SENTENCE
    if mark and mark in ".…":
        if former >= _SENTENCE and _NUMBER.fullmatch(shown):
            return _JOINED
        return _WORD if goes_on or _is_abbreviated(shown, text[following]) else _SENTENCE
    if (mark and mark in ",;:–—") or shown[-1] in ")]":
        return _CLAUSE
    return _CLAUSE if _next_word(text, following) in _BEGINNING_CLAUSES else _WORD


def _is_abbreviated(word: str, following: str) -> bool:
    """Tell whether the point after a word rather belongs to it than ends a sentence."""
    plain = word.strip(".,\"'“‘([").lower()
    numbered = plain in _BEFORE_NUMBERS and following.isdigit()
    return plain in _ABBREVIATED or numbered or _INITIALS.fullmatch(word) is not None


def _next_word(text: str, start: int) -> str:
    word = _RUN.match(text, start, start + 12)
    return word[0].lower() if word else ""

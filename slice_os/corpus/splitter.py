"""A document's passages: whole turns, paragraphs and sentences as long as they fit.

The cutting is semantic-text-splitter's. This module shows it a text of the same length in which
line ends that only come from hard wrapping are spaces, since it takes each for a boundary.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from semantic_text_splitter import TextSplitter

from slice_os.corpus.words import count_words
from slice_os.records import Document, Passage

DEFAULT_MAX_WORDS = 110

# The library's time grows with the square of a text that has no punctuation, so it is shown
# pieces. They end at the best boundary that their second half holds.
_PIECE = 10_000
_BOUNDARIES = ("\n\n", "\n", ". ", "。", " ")

# Wider lines are no hard-wrapped prose but paragraphs or turns of one line each.
_WIDEST_WRAP = 120
_WRAPPED = 0.8

_SURROGATE = re.compile("[\ud800-\udfff]")


@lru_cache(maxsize=8)
def _splitter(max_words: int) -> TextSplitter:
    return TextSplitter.from_callback(count_words, max_words)


def split(document: Document, max_words: int = DEFAULT_MAX_WORDS) -> Iterator[Passage]:
    """Cut `document` into passages of at most `max_words` words.

    Every non-space character is in exactly one passage, and ``document.text[p.start:p.end] ==
    p.text``. One word is never too long to be a passage: nothing is truncated.
    """
    if max_words < 1:
        raise ValueError(f"max_words must be at least 1, not {max_words}")
    shown = _SURROGATE.sub("\ufffd", unwrap(document.text))
    if document.title and shown.startswith(f"{document.title}\n"):
        # A title alone would be a passage of its own: better to rank it with its first sentences.
        shown = shown.replace("\n", " ", 1)
    number = 0
    for offset, piece in _pieces(shown):
        for start, chunk in _splitter(max_words).chunk_indices(piece):
            if chunk.isspace():  # separators such as U+001F are spaces to Python alone
                continue
            first, last = offset + start, offset + start + len(chunk)
            text = document.text[first:last]
            yield Passage(document.id, number, first, last, text, document.title)
            number += 1


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    while len(text) - start > _PIECE:
        end = start + _PIECE
        for boundary in _BOUNDARIES:
            found = text.rfind(boundary, start + _PIECE // 2, end)
            if found >= 0:
                end = found + len(boundary)
                break
        else:
            end = _word_end(text, end)
        yield start, text[start:end]
        start = end
    yield start, text[start:]


_WORD_END = re.compile(r"\s|[^\x00-\u0dff]")


def _word_end(text: str, start: int) -> int:
    """Return where the word at `start` ends; scripts from Thai on can be cut anywhere."""
    found = _WORD_END.search(text, start)
    return found.start() if found else len(text)


def unwrap(text: str) -> str:
    """Replace the line ends of hard-wrapped paragraphs by spaces, one character by one.

    A line end is a wrap if the next line's first word would have brought the line past four
    fifths of the paragraph's longest line. A paragraph is hard-wrapped if four fifths of its
    line ends are wraps and no line is longer than 120 characters. Of prose that holds nearly
    always (98 % of the line ends of twelve books), of turns of a conversation one time in four.
    """
    if "\n" not in text:
        return text
    shown: list[str] = []
    paragraph: list[str] = []
    for line in text.split("\n"):
        if line.strip():
            paragraph.append(line)
            continue
        shown += [*_unwrap_paragraph(paragraph), line + "\n"]
        paragraph = []
    return "".join([*shown, *_unwrap_paragraph(paragraph)])[:-1]


def _unwrap_paragraph(lines: list[str]) -> list[str]:
    width = max(map(len, lines), default=0)
    if len(lines) < 2 or width > _WIDEST_WRAP:
        return [line + "\n" for line in lines]
    full = _WRAPPED * width
    wraps = [
        len(line) + 1 + len(following.split(None, 1)[0]) > full
        for line, following in pairwise(lines)
    ]
    if sum(wraps) < _WRAPPED * len(wraps):
        return [line + "\n" for line in lines]
    return [
        line + (" " if wrap else "\n") for line, wrap in zip(lines, [*wraps, False], strict=True)
    ]

"""Which line ends of a text are layout only, told by a copy of the text of the same length.

Line ends that wrap a line become spaces, those between a heading and what follows it `JOIN`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import regex

JOIN = "\x1f"
"""White space at which a text is not cut; where a text itself has it, neither."""

# Wider lines are no hard-wrapped prose but paragraphs or turns of one line each.
_WIDEST_WRAP = 120
_WRAPPED = 0.8
_HEADING_WORDS = 12
_MOST_HEADINGS = 3
"""More short lines in a row than this are a list, not a heading with subheadings."""

_MARKED = regex.compile(r" {0,3}#{1,6}[ \t]+\S")
_LISTED = regex.compile(r"\s*([-*+•–>|]|\(?[\p{L}\d]{1,4}\)\s)")
_PLACE = r"(?:\d{1,3}(?:\.\d{1,3})*|[IVX]{1,5})"
# A number alone needs a mark: "I want to cancel" and "2 pizzas" are no headings.
_NUMBERED = regex.compile(
    rf"\s*(?:(?:article|section|chapter|part)\s+{_PLACE}[.):]?|[(\[]?{_PLACE}[.):]|\d+(?:\.\d+)+)\s+\S",
    regex.I,
)
_RULE = regex.compile(r"\s*([=\-~])\1{2,}\s*")
_NO_HEADING = regex.compile(r"[.!,;…。！，；、—–-][\"'”’)\]»*_]*\s*$")
_ENDED = regex.compile(r"[.!?:;…。！？：；][\"'”’)\]»*_]*\s*$")
_CASED = regex.compile(r"[.!?…][\"'”’)\]»]*\s+[\"'“‘(\[«]*\p{Lu}")
_GOES_ON = regex.compile(r"\s*(?!(?:\p{Ll}|[ivx]{1,4})[.)]\s)\p{Ll}")

CONTEXT = 160
"""Characters that `sentence_around` gives on either side of a span, at most."""
_SENTENCE_END = regex.compile(r"(?<=[.!?…。！？])\s+|\n+")


def flow(text: str, title: str = "") -> str:
    """Return `text`, wrapped lines and headings joined with what follows, a character by one.

    A heading is a line marked as one (``#``), or a short line without an end that begins with no
    small letter, at the beginning of the text or after a blank line or the end of a sentence. A
    `title` that the text begins with is one too.
    """
    if "\n" not in text:
        return text
    lines = _unfold(unwrap(text)).split("\n")
    joined = {*_headings(lines)}
    if title and text.startswith(f"{title}\n"):
        joined.add(title.count("\n"))
    ends = [JOIN if at in joined else "\n" for at in range(len(lines) - 1)]
    return "".join(part for pair in zip(lines, [*ends, ""], strict=True) for part in pair)


def is_cased(text: str) -> bool:
    """Tell whether capitals begin the sentences of a text, so that a small letter goes on."""
    return _CASED.search(text) is not None


def heading_of(text: str) -> str:
    """Return the headings that a text begins with, on one line; nothing if there are none."""
    shown = flow(text)
    end = shown.rfind(JOIN, 0, shown.find("\n") if "\n" in shown else None)
    return " ".join(text[: max(end, 0)].split())


def _unfold(text: str) -> str:
    """Replace the ends of lines that go on with a small letter, where sentences begin with none."""
    if "\n" not in text or not is_cased(text):
        return text
    lines = text.split("\n")
    ends = [
        " " if line.strip() and not _ENDED.search(line) and _GOES_ON.match(following) else "\n"
        for line, following in pairwise(lines)
    ]
    return "".join(part for pair in zip(lines, [*ends, ""], strict=True) for part in pair)


def _headings(lines: list[str]) -> Iterator[int]:
    """Yield the numbers of the lines that are not to be cut from the next one."""
    run: list[int] = []
    before = ""
    last = -1
    for number, line in enumerate(lines):
        if not line.strip():
            before = ""
            continue
        alone = not before and not "".join(lines[number + 1 : number + 2]).strip()
        if _is_heading(line, before, alone) or (run and _RULE.fullmatch(line)):
            run.append(number)
        else:
            if run:
                yield from range(run[-_MOST_HEADINGS:][0], number)
            run, last = [], number
        before = line
    if run and last >= 0 and len(run) <= _MOST_HEADINGS:  # nothing follows: with what goes before
        yield from range(last, run[-1])


def _is_heading(line: str, before: str, alone: bool) -> bool:
    """Tell whether a line is one, by the line before it and by whether blank lines are around."""
    if _MARKED.match(line):
        return True
    if len(line) > _WIDEST_WRAP or (before and not _ENDED.search(before)):
        return False
    words = line.split()
    if _NUMBERED.match(line) and len(words) < _HEADING_WORDS:  # "2. Fees." is one, too
        return not before and line.rstrip()[-1] not in ",;" and any(map(str.isalpha, line))
    ended = _NO_HEADING.search(line) or (not alone and _ENDED.search(line))  # "What is covered?"
    # Of a transcript in small letters no turn is one.
    plain = not ended and not _LISTED.match(line) and not words[0][0].islower()
    return plain and len(words) <= _HEADING_WORDS and any(map(str.isalpha, line))


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


def sentence_around(text: str, start: int, end: int) -> tuple[str, str]:
    """Return what stands before and after a span in the sentences or turns that it touches.

    Of each no more than CONTEXT characters; an ellipsis says where there would be more. The line
    ends of hard-wrapped prose end no sentence.
    """
    text = flow(text)
    first = max((m.end() for m in _SENTENCE_END.finditer(text, 0, start)), default=0)
    following = _SENTENCE_END.search(text, end)
    last = following.start() if following else len(text)
    lead = tail = ""
    if start - first > CONTEXT:
        first = text.find(" ", start - CONTEXT, start) + 1 or start - CONTEXT
        lead = "… "
    if last - end > CONTEXT:
        cut = text.rfind(" ", end, end + CONTEXT)
        last = cut if cut > 0 else end + CONTEXT
        tail = " …"
    return lead + text[first:start], text[end:last] + tail

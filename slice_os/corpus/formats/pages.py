"""Lines on pages -> running text: columns in order, paragraphs whole, running titles left out."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

_EDGE = 2
"""Running titles and page numbers are among this many lines at the top and bottom of a page."""
_OFTEN = 0.3
"""A line that returns on this share of the pages is a running title."""
_FULL = 0.6
"""A line shorter than this share of the long lines was ended, not wrapped."""
_GAP = 1.3
"""Lines further apart than this many usual distances belong to two paragraphs."""
_NARROWEST = 60
"""The narrowest column, in points; less is an indent."""
_APART = 0.9
"""Words further apart than this share of their height may belong to two columns."""
_FEW = 4
"""Up to this many lines may begin at the same x by chance."""

_ENDED = re.compile(r"[.!?:;…][\"'”’)\]»]*$")
_HYPHENS = ("-", "\u00ad", "\u2010")
_MARKS = ".,;:!?()[]\"'“”‘’"
_FIRST_WORD = re.compile(r"\w+")
_WORD = re.compile(r"\S+")
_NUMBERS = re.compile(r"\d+|\b[ivxl]+\b")
_HYPHENATED = ("\ufffe", "\x02")
"""What PDFium has for a hyphen at the end of a line, and that end."""
_LINE_END = re.compile(r"\r\n?|\n|[\ufffe\x02]")
_ITEM = re.compile(r"[-*•–]\s|\(?\w{1,4}[.)]\s")


class Line(NamedTuple):
    """A line, in points from the left and bottom edge of its page."""

    x: float
    y: float
    size: float
    text: str


def page_lines(page: Any) -> list[Line]:
    """Return the lines of a page of pypdfium2's in the order they are read."""
    with closing(page.get_textpage()) as text:
        parts = [_parts(text, start, line) for start, line in _lines(text.get_text_range())]
    columns = _columns([part.x for line in parts for part in line])
    lines = [cell for line in parts for cell in _cells(line, columns)]
    return _in_order(lines, columns) if len(columns) > 1 else lines


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines with where they begin; one that ends in a hyphenated word has a hyphen there."""
    start = 0
    for end in _LINE_END.finditer(text):
        hyphen = "-" if end[0] in _HYPHENATED else ""
        yield start, text[start : end.start()] + hyphen
        start = end.end()
    yield start, text[start:]


def _parts(page: Any, start: int, line: str) -> list[Line]:
    """Return the parts of a line, apart where there is more space between words than a letter's."""
    parts: list[Line] = []
    before = (0.0, 0.0)
    for word in _WORD.finditer(line):
        # The last letter: a hyphen may have been put after it here.
        last = start + word.end() - 1 - word[0].endswith("-")
        first_left, bottom, first_right, top = page.get_charbox(start + word.start(), loose=True)
        last_left, _, last_right, _ = page.get_charbox(max(last, start), loose=True)
        left, right = min(first_left, last_left), max(first_right, last_right)
        space = max(left - before[1], before[0] - right)  # some scripts run to the left
        if not parts or space > _APART * parts[-1].size:
            parts.append(Line(left, bottom, top - bottom, word[0]))
        else:
            parts[-1] = parts[-1]._replace(text=f"{parts[-1].text} {word[0]}")
        before = left, right
    return parts


def _columns(begins: Sequence[float]) -> list[float]:
    """Return the x at which columns begin: far apart, and where many of the lines begin."""
    places = Counter(round(x) for x in begins)
    often = max(_FEW, len(begins) // 6)
    columns: list[float] = []
    for x in sorted(x for x, count in places.items() if count > often):
        if not columns or x - columns[-1] > _NARROWEST:
            columns.append(x)
    return columns


def _cells(parts: Sequence[Line], columns: Sequence[float]) -> Iterator[Line]:
    """Join the parts of a line, apart where another column begins within it."""
    cell: Line | None = None
    for part in parts:
        if cell is None:
            cell = part
        elif any(x > cell.x + part.size and -1 <= part.x - x < 3 * part.size for x in columns):
            yield cell
            cell = part
        else:
            size = max(cell.size, part.size)
            cell = cell._replace(size=size, text=f"{cell.text} {part.text}")
    if cell is not None:
        yield cell


def _in_order(lines: list[Line], columns: Sequence[float]) -> list[Line]:
    """Return lines column by column, where the file has them row by row."""
    of = [max((n for n, x in enumerate(columns) if x <= line.x + 1), default=0) for line in lines]
    if sum(a > b for a, b in pairwise(of)) < _FEW:
        return lines
    inside = [line.y for line, column in zip(lines, of, strict=True) if column]
    top, bottom = max(inside) + 1, min(inside) - 1

    def place(item: tuple[Line, int]) -> tuple[int, int, float]:
        line, column = item
        band = 0 if line.y > top else 2 if line.y < bottom else 1
        return band, column if band == 1 else 0, -line.y

    return [line for line, _ in sorted(zip(lines, of, strict=True), key=place)]


def running_text(pages: Iterable[Sequence[Line]]) -> str:
    """Return the text of pages: a paragraph a line, blank lines where there is space between them.

    Words that were hyphenated at a line's end are whole again. Lines at the top and the bottom of
    pages that return on others are said once, before the text; those that differ in numbers alone,
    such as the pages', not at all.
    """
    titles, lines = _without_running([list(page) for page in pages])
    lengths: dict[int, list[int]] = defaultdict(list)
    steps: dict[int, list[float]] = defaultdict(list)
    words: set[str] = set()
    for line in lines:
        lengths[round(line.size)].append(len(line.text))
    for a, b in pairwise(lines):
        if a.y > b.y and round(a.size) == round(b.size):
            steps[round(a.size)].append(a.y - b.y)
    long = {size: sorted(values)[len(values) * 9 // 10] for size, values in lengths.items()}
    step = {size: median(values) for size, values in steps.items()}
    rests = False  # the first word of a line may be the rest of one
    for line in lines:
        words |= {word.strip(_MARKS).lower() for word in line.text.split()[rests:]}
        rests = _is_hyphenated(line.text)
    pieces = [f"{title}\n\n" for title in titles]
    for a, b in pairwise(lines):
        size, text = round(a.size), a.text
        end = _end(a, b, len(text) >= _FULL * long[size], step.get(size, 0.0))
        if end == " " and _is_hyphenated(text) and b.text[:1].islower():
            end = ""
            if not _is_compound(text, b.text, words):
                text = text[:-1]
        pieces += [text, end]
    return "".join([*pieces, *(line.text for line in lines[-1:])])


def _is_compound(line: str, following: str, words: set[str]) -> bool:
    """Tell whether a hyphen at the end of a line belongs to a word, by the others of the text."""
    rest = _FIRST_WORD.match(following)
    first = line[line.rfind(" ") + 1 : -1].strip(_MARKS).lower()
    second = rest[0].lower() if rest else ""
    if f"{first}-{second}" in words:
        return True
    return f"{first}{second}" not in words and first in words and second in words


def _is_hyphenated(text: str) -> bool:
    """Tell whether a line ends within a word."""
    return text.endswith(_HYPHENS) and text[-2:-1].isalpha()


def _end(a: Line, b: Line, full: bool, step: float) -> str:
    """Return what stands between two lines of the text."""
    ended = _ENDED.search(a.text) is not None
    down = a.y - b.y
    if abs(a.size - b.size) > 0.15 * a.size:
        return "\n\n"
    if not ended and b.text[:1].islower() and down < 2 * step + 1:
        return " "
    if down <= 0:  # another column or page
        return " " if full and not ended else "\n\n"
    if step and down > _GAP * step:
        return "\n\n"
    if ended and (b.x - a.x > 0.7 * a.size or _ITEM.match(b.text)):
        return "\n"
    return " " if full else "\n"


def _without_running(pages: list[list[Line]]) -> tuple[list[str], list[Line]]:
    """Return the running titles, and all other lines."""
    edges: list[dict[Line, str]] = []  # the lines at the edges of each page, without their numbers
    for page in pages:
        lines = sorted(page, key=lambda line: -line.y)
        lines = lines[:_EDGE] + lines[-_EDGE:]
        edges.append({line: _NUMBERS.sub("#", line.text.lower()) for line in lines})
    counts = Counter(text for edge in edges for text in {*edge.values()})
    often = max(2, _OFTEN * len(pages))
    titles: dict[str, set[str]] = defaultdict(set)
    kept: list[Line] = []
    for page, edge in zip(pages, edges, strict=True):
        for line in page:
            text = edge.get(line, "")
            if counts[text] >= often:
                titles[text].add(line.text)
            else:
                kept.append(line)
    return [text for texts in titles.values() if len(texts) == 1 for text in texts], kept

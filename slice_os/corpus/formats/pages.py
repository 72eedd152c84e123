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
_RUN = re.compile(r"\S+")
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
    with closing(page.get_textpage()) as found:
        parts = [_parts(found, start, line) for start, line in _lines(found.get_text_range())]
    begins = [part.x for line in parts for part in line]
    columns = _columns(begins)
    lines = [one for line in parts for one in _cells(line, columns)]
    return _in_order(lines, columns) if len(columns) > 1 else lines


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield lines with where they begin; one that ends in a hyphenated word has a hyphen there."""
    start = 0
    for found in _LINE_END.finditer(text):
        hyphen = "-" if found[0] in _HYPHENATED else ""
        yield start, text[start : found.start()] + hyphen
        start = found.end()
    yield start, text[start:]


def _parts(page: Any, start: int, line: str) -> list[Line]:
    """Return the parts of a line, apart where there is more space between words than a letter's."""
    parts: list[Line] = []
    before = (0.0, 0.0)
    for found in _RUN.finditer(line):
        # The last letter: a hyphen may have been put after it here.
        last = start + found.end() - 1 - found[0].endswith("-")
        first_left, bottom, first_right, top = page.get_charbox(start + found.start(), loose=True)
        last_left, _, last_right, _ = page.get_charbox(max(last, start), loose=True)
        left, right = min(first_left, last_left), max(first_right, last_right)
        space = max(left - before[1], before[0] - right)  # some scripts run to the left
        if not parts or space > _APART * parts[-1].size:
            parts.append(Line(left, bottom, top - bottom, found[0]))
        else:
            parts[-1] = parts[-1]._replace(text=f"{parts[-1].text} {found[0]}")
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
    cell: list[Line] = []
    for part in parts:
        indents = [part.x - x for x in columns if cell and x > cell[0].x + part.size]
        if any(-1 <= indent < 3 * part.size for indent in indents):
            yield from _joined(cell)
            cell = []
        if part.text.strip() or cell:
            cell.append(part)
    yield from _joined(cell)


def _joined(parts: Sequence[Line]) -> Iterator[Line]:
    text = " ".join(part.text for part in parts)
    if text:
        yield parts[0]._replace(size=max(part.size for part in parts), text=text)


def _in_order(lines: list[Line], columns: Sequence[float]) -> list[Line]:
    """Return lines column by column, where the file has them row by row."""
    of = [max((n for n, x in enumerate(columns) if x <= line.x + 1), default=0) for line in lines]
    if sum(a > b for a, b in pairwise(of)) < _FEW:
        return lines
    inside = [line.y for line, column in zip(lines, of, strict=True) if column]
    top, bottom = max(inside), min(inside)
    bands = [0 if line.y > top + 1 else 2 if line.y < bottom - 1 else 1 for line in lines]
    keyed = zip(bands, of, lines, range(len(lines)), strict=True)
    ordered = sorted(
        (band, column if band == 1 else 0, -line.y, n) for band, column, line, n in keyed
    )
    return [lines[n] for *_, n in ordered]


def running_text(pages: Iterable[Sequence[Line]]) -> str:
    """Return the text of pages: a paragraph a line, blank lines where there is space between them.

    Words that were hyphenated at a line's end are whole again. Lines at the top and the bottom of
    pages that return on others are said once, before the text; those that differ in numbers alone,
    such as the pages', not at all.
    """
    running, lines = _without_running([list(page) for page in pages])
    sizes = [round(line.size) for line in lines]
    lengths: dict[int, list[int]] = defaultdict(list)
    steps: dict[int, list[float]] = defaultdict(list)
    for size, line in zip(sizes, lines, strict=True):
        lengths[size].append(len(line.text))
    for size, (a, b) in zip(sizes, pairwise(lines), strict=False):
        if a.y > b.y and round(b.size) == size:
            steps[size].append(a.y - b.y)
    long = {size: sorted(found)[len(found) * 9 // 10] for size, found in lengths.items()}
    step = {size: median(found) for size, found in steps.items()}
    words: set[str] = set()
    rests = 0  # the first word of a line may be the rest of one
    for line in lines:
        words |= {word.strip(_MARKS).lower() for word in line.text.split()[rests:]}
        rests = int(_is_hyphenated(line.text))
    said = [f"{title}\n\n" for title in running]
    for size, (a, b) in zip(sizes, pairwise(lines), strict=False):
        end = _end(a, b, len(a.text) >= _FULL * long[size], step.get(size, 0.0))
        text = a.text
        if end == " " and _is_hyphenated(text) and b.text[:1].islower():
            rest = _FIRST_WORD.match(b.text)
            cut = text[text.rfind(" ") + 1 : -1].strip(_MARKS).lower()
            if not _is_compound(cut, rest[0].lower() if rest else "", words):
                text = text[:-1]
            end = ""
        said += [text, end]
    return "".join([*said, *(line.text for line in lines[-1:])])


def _is_compound(first: str, second: str, words: set[str]) -> bool:
    """Tell whether a hyphen at the end of a line belongs to a word, by the others of the text."""
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

    def edges(page: list[Line]) -> set[Line]:
        by_height = sorted(page, key=lambda line: -line.y)
        return {*by_height[:_EDGE], *by_height[-_EDGE:]}

    def likeness(line: Line) -> str:
        return re.sub(r"\d+|\b[ivxl]+\b", "#", line.text.lower())

    found = Counter(like for page in pages for like in {likeness(one) for one in edges(page)})
    often = max(2, _OFTEN * len(pages))
    running = {like for like, count in found.items() if count >= often}
    titles: dict[str, set[str]] = defaultdict(set)
    kept: list[Line] = []
    for page in pages:
        around = edges(page)
        for line in page:
            if line in around and likeness(line) in running:
                titles[likeness(line)].add(line.text)
            else:
                kept.append(line)
    return [text for texts in titles.values() if len(texts) == 1 for text in texts], kept

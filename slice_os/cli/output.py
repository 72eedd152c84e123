"""What people and programs read on stdout: hits, tables, JSON."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Sequence
from typing import Any, TextIO

import click
import regex

from slice_os.answers import to_json
from slice_os.types import Excerpt, Hit

REJECTED = 3
"""Exit code when something was skipped: everything else is done."""


INDENT = " " * 13
HEADING = 80
"""Characters of a heading before a sentence of its section, at most."""
UNMARKED = 320
"""Characters shown of a passage in which nothing is marked, at most."""
_CONTROL = regex.compile(r"[[\p{Cc}\p{Bidi_Control}]--[\n]]", regex.V1)


def echo_json(value: Any, *, indent: int | None = 2) -> None:
    """Print a value as JSON; `indent=None` for JSON lines."""
    click.echo(to_json(value, indent=indent))


def echo_columns(
    header: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)
) -> None:
    """Print rows below a header; the columns `left` are aligned left, the others right."""
    lines = [header, *([plain(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        cells = (
            text.ljust(width) if column in left else text.rjust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        )
        click.echo("  ".join(cells).rstrip())


def wanted_color() -> bool | None:
    """Tell what the environment says of colour: NO_COLOR, else FORCE_COLOR; None is nothing."""
    if os.environ.get("NO_COLOR"):
        return False
    return True if os.environ.get("FORCE_COLOR", "0") not in ("", "0") else None


def is_coloured() -> bool:
    """Tell whether stdout shows colours: as the environment says, else if a person looks at it."""
    coloured = wanted_color()
    return is_terminal(sys.stdout) if coloured is None else coloured


def is_terminal(*streams: TextIO | None) -> bool:
    """Tell whether a person is at all of some streams; Python has None for a closed one."""
    return all(stream is not None and stream.isatty() for stream in streams)


def echo_hit(
    number: int, hit: Hit, around: Excerpt | None = None, *, with_score: bool = False
) -> None:
    """Print a hit: its degree, document and the sentence of its best span, the span marked.

    With an excerpt `around` it, that instead of the sentence. The score is shown where it ranks.
    """
    score = click.style(f"score {hit.score:.3f}", dim=True) if with_score else ""
    place = f"{hit.document}#{hit.passage}"
    _echo_head(number, [hit], place, hit.title, hit.lowered, score)
    click.echo(textwrap.indent(_said(hit, around), INDENT))


def echo_document(number: int, hits: Sequence[tuple[Hit, Excerpt | None]]) -> None:
    """Print a document and, below it, its hits."""
    first = hits[0][0]
    _echo_head(number, [hit for hit, _ in hits], first.document, first.title)
    for hit, around in hits:
        text = textwrap.indent(_said(hit, around), INDENT).lstrip()
        click.echo(f"       {' '.join(filter(None, (_degree([hit]), hit.lowered, text)))}")


def _degree(hits: Sequence[Hit]) -> str:
    """Return the highest degree of some hits; a dash where no span was compared."""
    return f"{max(hit.degree for hit in hits):.3f}" if any(hit.spans for hit in hits) else "  -  "


def _echo_head(number: int, hits: Sequence[Hit], place: str, title: str, *notes: str) -> None:
    degree = click.style(_degree(hits), fg="green", bold=True)
    parts = (degree, click.style(plain(place), bold=True), shorten(title, 60), *notes)
    click.echo(f"{number:3d}.  {'  '.join(filter(None, parts))}")


def _said(hit: Hit, around: Excerpt | None) -> str:
    best = hit.spans[0] if hit.spans else None
    if around is not None:
        if best is None:
            return plain(around.text)
        start = hit.document_start + best.start
        return mark_in(around, start, start + best.end - best.start)
    return mark(hit.text, best.start, best.end) if best else shorten(hit.text, UNMARKED)


def mark_in(excerpt: Excerpt, start: int, end: int) -> str:
    """Return an excerpt with the characters `start` to `end` of its document marked."""
    text = plain(excerpt.text)
    first, last = max(start - excerpt.start, 0), max(end - excerpt.start, 0)
    return f"{text[:first]}{_marked(text[first:last])}{text[last:]}"


def _marked(text: str) -> str:
    return click.style(text, fg="black", bg="yellow") if is_coloured() else f"«{text}»"


def plain(text: str) -> str:
    """Return a text of the same length without the characters that steer a terminal."""
    return _CONTROL.sub(" ", text)


def shorten(text: str, width: int) -> str:
    """Return a text on one line, cut at a word, or in one that is longer than the line."""
    text = " ".join(plain(text).split())
    cut = textwrap.shorten(text, width, placeholder=" …")
    return cut if len(cut) > 2 or len(text) <= width else f"{text[: width - 2]} …"


def mark(text: str, start: int, end: int) -> str:
    """Return the sentence or turn that holds a span, on one line, the span marked in it.

    The heading that the text begins with comes before it.
    """
    from slice_os.text import heading_of, sentence_around

    heading, text = heading_of(text), plain(text)
    before, after = sentence_around(text, start, end)
    if heading and before.split() != text[:start].split():
        before = f"{shorten(heading, HEADING)} … {before.removeprefix('… ')}"
    return " ".join(f"{before}{_marked(text[start:end])}{after}".split())


def echo_table(rows: Sequence[tuple[str, object]]) -> None:
    """Print names and values in two columns."""
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        is_count = isinstance(value, int) and not isinstance(value, bool)
        text = f"{value:,}" if is_count else plain(str(value))
        click.echo(f"{name:<{width}}  {text}")


def as_cell(value: Any) -> Any:
    """Return a value for a .csv such that no spreadsheet takes a text for a formula."""
    starts_formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if starts_formula else value


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return '1 document', '2,000 documents'; `plural` is given where it is more than an s."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"

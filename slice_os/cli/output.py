"""What people and programs read: results on stdout, progress on stderr."""

from __future__ import annotations

import json
import math
import os
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import click
import regex

from slice_os.cli.running import is_json
from slice_os.types import Excerpt, Hit

if TYPE_CHECKING:
    from tqdm import tqdm

INDENT = " " * 13
HEADING = 80
"""Characters of a heading before a sentence of its section, at most."""
UNMARKED = 320
"""Characters shown of a passage in which nothing is marked, at most."""
_CONTROL = regex.compile(r"[\p{Cc}--[\n]]", regex.V1)


def echo_json(value: Any, *, indent: int | None = 2) -> None:
    """Print a value as JSON; `indent=None` for JSON lines. What is no number there is null."""
    click.echo(json.dumps(_finite(value), ensure_ascii=False, indent=indent, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def echo_columns(
    header: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)
) -> None:
    """Print rows below a header; the columns `left` are aligned left, the others right."""
    lines = [header, *rows]
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
    wanted = wanted_color()
    return sys.stdout.isatty() if wanted is None else wanted


def echo_hit(
    number: int, hit: Hit, around: Excerpt | None = None, *, with_score: bool = False
) -> None:
    """Print a hit: its degree, document and the sentence of its best span, the span marked.

    With an excerpt `around` it, that instead of the sentence. The score is shown where it ranks.
    """
    score = click.style(f"score {hit.score:.3f}", dim=True) if with_score else ""
    place = f"{hit.document}#{hit.passage}"
    _echo_head(number, hit.degree, place, hit.title, hit.lowered, score)
    click.echo(textwrap.indent(_said(hit, around), INDENT))


def echo_document(number: int, found: Sequence[tuple[Hit, Excerpt | None]]) -> None:
    """Print a document and, below it, its hits."""
    first = found[0][0]
    _echo_head(number, max(hit.degree for hit, _ in found), first.document, first.title)
    for hit, around in found:
        said = textwrap.indent(_said(hit, around), INDENT).lstrip()
        click.echo(f"       {' '.join(filter(None, (f'{hit.degree:.3f}', hit.lowered, said)))}")


def _echo_head(number: int, degree: float, place: str, title: str, *notes: str) -> None:
    degrees = click.style(f"{degree:.3f}", fg="green", bold=True)
    parts = (degrees, click.style(plain(place), bold=True), shorten(title, 60), *notes)
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


def progress_bar(total: float | None) -> tqdm[NoReturn]:
    """Return a bar on stderr that only a terminal shows: share done, description, time left.

    A log in JSON has none.
    """
    from tqdm import tqdm

    form = "{percentage:3.0f}% |{bar:20}| {desc}, {remaining} left"
    hidden = True if is_json() else None  # None: where there is no terminal
    return tqdm(total=total, delay=1, leave=False, disable=hidden, bar_format=form)


@contextmanager
def text_bar() -> Iterator[Callable[[str, int, int], None]]:
    """Give a function that shows on a terminal which texts are read, how many, and of how many."""
    from tqdm import tqdm

    with tqdm(unit="text", disable=None) as bar:

        def show(name: str, done: int, count: int) -> None:
            bar.set_description(name, refresh=False)
            bar.total = count
            bar.update(done - bar.n)

        yield show


def echo_table(rows: Sequence[tuple[str, object]]) -> None:
    """Print names and values in two columns."""
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value
        click.echo(f"{name:<{width}}  {text}")


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return '1 document', '2,000 documents'; `plural` is given where it is more than an s."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"

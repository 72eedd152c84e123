"""Plain text, and markup that people read as it is, such as Markdown: its source is the text."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from typing import Any

from slice_os.corpus.encodings import decode
from slice_os.corpus.formats.base import Parsed
from slice_os.corpus.rows import clean, clean_value

_FENCE = re.compile(r" {0,3}(```|~~~)")
_MARK = re.compile(r" {0,3}#{1,6}[ \t]")
_FRONT = re.compile(r"(---|\+\+\+)[ \t]*\r?\n")
_LONGEST_FRONT = 1 << 16
_PICTURE = re.compile(r"data:[\w/+.-]{1,99};base64,[A-Za-z0-9+/=]+")
_UNDER = re.compile(r"([=\-~^\"'`#*+])\1{2,}[ \t]*")
_FIELDS = {"author": "author", "authors": "author", "creator": "author", "date": "date"}


def parse_plain(data: bytes) -> Parsed:
    """Return the text as it is; plain text has no title."""
    text, broken, guess = decode(data)
    return Parsed(text, broken=broken, guess=guess)


def parse_markdown(data: bytes) -> Parsed:
    """Return the source, and the first ``#`` heading outside of code as its title.

    What stands before it between lines ``---`` (YAML) or ``+++`` (TOML) is metadata, and pictures
    in it are none of its words: blanks stand in their place.
    """
    text, broken, guess = decode(data)
    about, end = _front_matter(text)
    shown = _blank(text[:end]) + _PICTURE.sub(lambda picture: _blank(picture[0]), text[end:])
    title = about.pop("title", None)
    metadata = {_FIELDS.get(name.lower(), name): value for name, value in about.items()}
    return Parsed(shown, str(title or _heading(shown)), broken, guess=guess, metadata=metadata)


def parse_asciidoc(data: bytes) -> Parsed:
    """Return the source, and the line that begins with one ``=`` as its title."""
    return _titled(data, lambda lines: _after_mark(lines, "= "))


def parse_org(data: bytes) -> Parsed:
    """Return the source, and its ``#+TITLE:`` or first heading as its title."""
    return _titled(data, lambda lines: _after_mark(lines, "#+title:") or _after_mark(lines, "* "))


def parse_rst(data: bytes) -> Parsed:
    """Return the source, and the first line that is underlined as its title."""
    return _titled(data, _underlined)


def _titled(data: bytes, title: Callable[[list[str]], str]) -> Parsed:
    text, broken, guess = decode(data)
    return Parsed(text, title(text.splitlines()), broken, guess=guess)


def _after_mark(lines: list[str], mark: str) -> str:
    marked = (line for line in lines if line.lower().startswith(mark))
    return next(marked, "")[len(mark) :].strip()


def _underlined(lines: list[str]) -> str:
    for line, under in pairwise(lines):
        if line.strip() and not _UNDER.fullmatch(line) and _UNDER.fullmatch(under):
            return line.strip()
    return ""


def _heading(text: str) -> str:
    fence = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if mark and fence in ("", mark[1]):
            fence = "" if fence else mark[1]
        elif not fence and _MARK.match(line):
            # No pattern of all of it: one would try every way to divide a line of blanks.
            heading = line.strip().lstrip("#").strip(" \t")
            plain = heading.rstrip("#")
            if plain[-1:] in ("", " ", "\t"):
                heading = plain.rstrip(" \t")
            if heading:
                return heading
    return ""


def _blank(text: str) -> str:
    """Return blanks in the place of a text, and its line ends, so that offsets stay."""
    return re.sub(r"[^\r\n]", " ", text)


def _front_matter(text: str) -> tuple[dict[str, Any], int]:
    """Return what a note says of itself, and where its text begins."""
    begin = _FRONT.match(text)
    if not begin:
        return {}, 0
    end = re.compile(rf"^{re.escape(begin[1])}[ \t]*$", re.M)
    closing = end.search(text, begin.end(), _LONGEST_FRONT)
    parse = _yaml if begin[1] == "---" else _toml
    try:
        about = parse(text[begin.end() : closing.start()]) if closing else None
        plain = json.loads(json.dumps(about, default=_as_text, skipkeys=True))
    except Exception:  # PyYAML raises whatever Python does of "!!int" without a number
        return {}, 0
    if not closing or not isinstance(plain, dict) or not plain:  # else two lines around a text
        return {}, 0
    return {clean(name): clean_value(value) for name, value in plain.items()}, closing.end()


def _as_text(value: Any) -> str:
    return str(value.isoformat() if hasattr(value, "isoformat") else value)


def _yaml(source: str) -> Any:
    import yaml

    if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(source)):
        return None  # which may stand for any size
    return yaml.safe_load(source)


def _toml(source: str) -> Any:
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    return toml.loads(source)

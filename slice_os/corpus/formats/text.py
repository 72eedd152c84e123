"""Plain text, and markup that people read as it is, such as Markdown: its source is the text."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from itertools import pairwise
from typing import Any

from slice_os.corpus.encodings import decode
from slice_os.corpus.formats.base import Parsed
from slice_os.corpus.rows import clean_value

_FENCE = re.compile(r" {0,3}(```|~~~)")
_MARK = re.compile(r" {0,3}#{1,6}[ \t]")
_FRONT = re.compile(r"(---|\+\+\+)[ \t]*\r?\n")
_LONGEST_FRONT = 1 << 16
_PICTURE = re.compile(r"data:[\w/+.-]{1,99};base64,[A-Za-z0-9+/=]+")
_UNDER = re.compile(r"([=\-~^\"'`#*+])\1{2,}[ \t]*")
_SAYS = {"author": "author", "authors": "author", "creator": "author", "date": "date"}


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
    said, end = _front_matter(text)
    shown = _blank(text[:end]) + _PICTURE.sub(lambda found: _blank(found[0]), text[end:])
    title = said.pop("title", None)
    about = {_SAYS.get(name.lower(), name): value for name, value in said.items()}
    return Parsed(
        shown, str(title) if title else _title(shown), broken, guess=guess, metadata=about
    )


def parse_asciidoc(data: bytes) -> Parsed:
    """Return the source, and the line that begins with one ``=`` as its title."""
    return _titled(data, lambda lines: _after_mark(lines, "= "))


def parse_org(data: bytes) -> Parsed:
    """Return the source, and its ``#+TITLE:`` or first heading as its title."""
    return _titled(data, lambda lines: _after_mark(lines, "#+title:") or _after_mark(lines, "* "))


def parse_rst(data: bytes) -> Parsed:
    """Return the source, and the first line that is underlined as its title."""
    return _titled(data, _underlined)


def _titled(data: bytes, title: Any) -> Parsed:
    text, broken, guess = decode(data)
    return Parsed(text, title(text.splitlines()), broken, guess=guess)


def _after_mark(lines: list[str], mark: str) -> str:
    found = (line for line in lines if line.lower().startswith(mark))
    return next(found, "")[len(mark) :].strip()


def _underlined(lines: list[str]) -> str:
    for line, under in pairwise(lines):
        if line.strip() and not _UNDER.fullmatch(line) and _UNDER.fullmatch(under):
            return line.strip()
    return ""


def _title(text: str) -> str:
    fence = ""
    for line in text.splitlines():
        found = _FENCE.match(line)
        if found and (not fence or found[1] == fence):
            fence = "" if fence else found[1]
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
    if not (found := end.search(text, begin.end(), _LONGEST_FRONT)):
        return {}, 0
    source = text[begin.end() : found.start()]
    said = _yaml(source) if begin[1] == "---" else _toml(source)
    if not said:  # a line above a text, and one below it
        return {}, 0
    return {str(name): clean_value(_plain(value)) for name, value in said.items()}, found.end()


def _yaml(source: str) -> dict[Any, Any]:
    import yaml

    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(source)):
            return {}  # which may stand for any size
        said = yaml.safe_load(source)
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _toml(source: str) -> dict[Any, Any]:
    toml = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        return dict(toml.loads(source))
    except (ValueError, RecursionError):
        return {}


def _plain(value: Any) -> Any:
    """Return a value of JSON: dates are texts."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(one) for one in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)

"""Plain text, and Markdown, of which the source is the text: its marks are words to nobody."""

from __future__ import annotations

import re

from slice_os.corpus.charsets import decode
from slice_os.corpus.formats.base import Parsed

_FENCE = re.compile(r" {0,3}(```|~~~)")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(.*?)[ \t]*#*[ \t]*$")


def parse_plain(data: bytes) -> Parsed:
    """Return the text as it is; plain text has no title."""
    text, broken = decode(data)
    return Parsed(text, broken=broken)


def parse_markdown(data: bytes) -> Parsed:
    """Return the source, and the first ``#`` heading outside of code as its title."""
    text, broken = decode(data)
    return Parsed(text, _title(text), broken)


def _title(text: str) -> str:
    fence = ""
    for line in text.splitlines():
        found = _FENCE.match(line)
        if found and (not fence or found[1] == fence):
            fence = "" if fence else found[1]
        elif not fence and (heading := _HEADING.match(line)) and heading[1]:
            return heading[1]
    return ""

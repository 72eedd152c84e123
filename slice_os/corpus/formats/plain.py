"""Plain text."""

from __future__ import annotations

from slice_os.corpus.encoding import decode
from slice_os.corpus.formats.parsed import Parsed


def parse(data: bytes) -> Parsed:
    """Return the text as it is; plain text has no title."""
    text, broken = decode(data)
    return Parsed(text, broken=broken)

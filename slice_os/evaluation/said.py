"""Where a passage says words."""

from __future__ import annotations

import regex


def place_of(passage: str, words: str) -> int:
    """Return where `passage` says `words`; -1 if nowhere. Case does not count.

    As words of their own, if it does so anywhere: "art" is not looked for in "party" before.
    """
    said = regex.escape(words)
    whole = rf"(?<!\w){said}(?!\w)"
    for pattern, flags in ((whole, 0), (whole, regex.IGNORECASE), (said, regex.IGNORECASE)):
        if found := regex.search(pattern, passage, flags):
            return int(found.start())
    return -1

"""Where a passage says words."""

from __future__ import annotations

import regex


def place_of(passage: str, words: str) -> int:
    """Return where `passage` says `words`; -1 if nowhere. Case does not count.

    As words of their own, if it does so anywhere: "art" is not looked for in "party" before.
    """
    found = regex.search(rf"(?<!\w){regex.escape(words)}(?!\w)", passage)
    if found is None:
        found = regex.search(rf"(?<!\w){regex.escape(words)}(?!\w)", passage, regex.IGNORECASE)
    if found is None:
        found = regex.search(regex.escape(words), passage, regex.IGNORECASE)
    return found.start() if found else -1

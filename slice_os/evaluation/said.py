"""Where a passage says words, and their vector there."""

from __future__ import annotations

import regex

from slice_os.records import Float32, Words


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


def said_vector(words: Words, start: int, end: int) -> Float32:
    """Return the sum ``[d]`` of the words that characters `start` to `end` of their text touch."""
    i = int(words.ends.searchsorted(start, side="right"))
    j = int(words.starts.searchsorted(end, side="left"))
    total: Float32 = words.vectors[i:j].sum(axis=0)
    return total

"""How many words a text has, also in scripts that put no spaces between words."""

from __future__ import annotations

from collections.abc import Iterator

import regex

# One character is the nearest thing to a word that can be counted without a dictionary.
_UNSPACED = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]", regex.V1
)


def count_words(text: str) -> int:
    """Count runs of non-space characters, and every character of a script without spaces."""
    if text.isascii():
        return len(text.split())
    spaced, characters = _UNSPACED.subn(" ", text)
    return characters + len(spaced.split())


def spaceless(text: str) -> Iterator[int]:
    """Yield where the characters are that are words of their own."""
    return (found.start() for found in _UNSPACED.finditer(text))

"""What a text says without how it is typeset: the form in which words are equal."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Any

_AS_TYPED = {
    **dict.fromkeys([0x2018, 0x2019, 0x201A, 0x201B, 0x2032], "'"),
    **dict.fromkeys([0x201C, 0x201D, 0x201E, 0x201F, 0x2033], '"'),
    **dict.fromkeys(range(0x2010, 0x2015), "-"),
}
"""Typographic quotes and dashes, by code point."""
_SIGNS = "#$%&@+*=<>|~^`\\\\/"
"""What stands at a word's edge and is part of what it says: "#5", "50%", "c++"."""


_LIGATURE = re.compile("[\ufb00-\ufb06]")
_NO_WIDTH = re.compile("[\u00ad\u200b\u2060\ufeff]")


def without_typesetting(text: str) -> str:
    """Return a text in NFC without ligatures, soft hyphens and marks of no width."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _LIGATURE.sub(_letters, _NO_WIDTH.sub("", text)))


def _letters(ligature: re.Match[str]) -> str:
    return unicodedata.normalize("NFKC", ligature[0])


def as_typed(text: str) -> str:
    """Return a text with a keyboard's quotes and dashes, character for character."""
    return text.translate(_AS_TYPED)


def is_mark(token: str) -> bool:
    """Tell whether a token is punctuation that says nothing at a word's edge."""
    return bool(token) and not _edges().sub("", token)


@lru_cache(maxsize=1)
def _edges() -> Any:
    """Return the pattern of punctuation that begins or ends a word, and of what is not printed."""
    import regex

    mark = rf"[[\p{{P}}\p{{Sk}}]--[{_SIGNS}]]"
    # A minus before a digit is a sign; an apostrophe or a point within a word belongs to it.
    return regex.compile(rf"(?V1)(?<!\S)(?:(?!-\d){mark})+|{mark}+(?!\S)")


def plain(text: str) -> str:
    """Return a text's words as they are compared: a space between two, no punctuation around them.

    Compatibility forms (ligatures, full-width letters) are resolved, typographic quotes and dashes
    are those of a keyboard, and soft hyphens and characters without width are gone. Case stays.
    A text of punctuation alone stays as it is.
    """
    if text.isascii() and text.isalpha():
        return text
    shown = text
    if not text.isascii():
        composed = unicodedata.normalize("NFKC", as_typed(text))
        shown = "".join(c for c in as_typed(composed) if unicodedata.category(c) != "Cf")
    bare = " ".join(_edges().sub(" ", shown).split())
    return bare or " ".join(shown.split())


def same_words(text: str, other: str) -> bool:
    """Tell whether two texts have the same words, whatever their case and punctuation."""
    return plain(text).casefold() == plain(other).casefold()

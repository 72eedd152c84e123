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


_COMPATIBLE = re.compile(
    "[\u0132\u0133\u01c4-\u01cc\u01f1-\u01f3\ufb00-\ufdfb\ufe70-\ufefc"
    "\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\uff66-\uff9f]+"
)
"""Ligatures, the forms of Arabic and Hebrew letters that fonts know, and letters, digits and kana
of full or half width."""
_NO_WIDTH = re.compile(
    "[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff]"
)
"""Soft hyphens, joiners, marks of direction, variation selectors: characters without width."""
_SIMPLE = re.compile(
    "[\u0000-\u00ac\u00ae-\u0131\u0134-\u01c3\u01cd-\u01f0\u01f4-\u02ff\u2010-\u2027]*"
)
"""What has its normal form already."""


def normal_form(text: str) -> str:
    """Return a text in the form in which its words are looked for.

    That is NFC without ligatures, letters of full or half width, soft hyphens and characters
    without width.
    """
    if _SIMPLE.fullmatch(text):
        return text
    return unicodedata.normalize("NFC", _COMPATIBLE.sub(_letters, _NO_WIDTH.sub("", text)))


def without_typesetting(text: str) -> str:
    """Return a text in NFC without what typesetting added: Latin ligatures, soft hyphens."""
    text = re.sub("[\u00ad\u200b\u2060\ufeff]", "", text)
    return unicodedata.normalize("NFC", re.sub("[\ufb00-\ufb06]", _letters, text))


def aligned_normal_form(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the normal form of a text, and which characters of the text each of its own is from.

    Returns:
        The normal form and, for each of its characters, start and end in the text; nothing where
        the text has its normal form.
    """
    if normal_form(text) == text:
        return text, []
    import regex

    kept = [at for at, character in enumerate(text) if not _NO_WIDTH.match(character)]
    pieces: list[str] = []
    places: list[tuple[int, int]] = []
    # ASCII that no mark follows is taken as a whole: clusters are slow.
    for cluster in regex.finditer(r"(?:[ -~](?![^ -~]))+|\X", _NO_WIDTH.sub("", text)):
        piece = normal_form(cluster[0])
        pieces.append(piece)
        within = kept[slice(*cluster.span())]
        if piece == cluster[0]:
            places += [(at, at + 1) for at in within]
        else:
            places += [(within[0], within[-1] + 1)] * len(piece)
    return "".join(pieces), places


def _letters(run: re.Match[str]) -> str:
    return unicodedata.normalize("NFKC", run[0])


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

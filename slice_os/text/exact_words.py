r"""Exact words of a query: those that a passage must hold, and those that it must not.

Exact words are compared as whole words, one after the other, in a passage's text or in its title.
Neither case nor what stands between words (spaces, punctuation, line ends) counts, words are
compared in their normal form, and nothing is stemmed. So "e-mail" is in "E-mail" and "e mail" and
not in "email" or "e-mails".

A word is here a run of letters, digits and marks; in scripts without spaces, one character.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import regex

from slice_os.errors import QueryError
from slice_os.text.normal_form import normal_form

LONGEST = 200
"""Characters of a word; what is longer is taken for several."""
_UNSPACED = (
    r"\p{IsHan}\p{IsHiragana}\p{IsKatakana}\p{IsThai}\p{IsLao}\p{IsKhmer}\p{IsMyanmar}"  # as corpus
)
WORD = rf"[{_UNSPACED}]|[\p{{L}}\p{{N}}\p{{M}}\p{{Co}}&&[^{_UNSPACED}]]{{1,{LONGEST}}}"
"""A word, to Python's regex and to Java's (the tokenizer of a cluster's field `text.exact`, where a
longer term would be refused); so both find the same."""
_WORD = regex.compile(WORD, regex.V1)


class _Lower(dict[int, str]):
    """Each in lower case, as Java does: str.lower knows a last sigma, an i of two characters."""

    def __missing__(self, code: int) -> str:
        self[code] = chr(code).lower()[0]
        return self[code]


_LOWER = _Lower()

# An operator begins a piece of the query, so that 5" pipes and e-mail hold none; and what follows
# a minus is a quote or a letter, so that -5 and --all are no operators.
_OPERATOR = regex.compile(
    r'(?<!\S)(?:(?P<no>-)?["“”„](?P<phrase>[^"“”„]*)["“”](?![\p{L}\p{N}"“”„])|-(?P<word>\p{L}\S*))'
)


def check_characters(text: str) -> None:
    """Raise QueryError if a text holds half a character: none that is stored does."""
    if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        raise QueryError(
            f"{text[:60]!r} holds half a character (a lone surrogate): leave it out, or see to how "
            "it was decoded."
        )


@dataclass(frozen=True, slots=True)
class Wording:
    """A condition on a passage's own words: these stand in it or its title, or do not.

    Raises:
        QueryError: there is no word in it, or half a character.
    """

    phrase: str
    wanted: bool = True

    def __post_init__(self) -> None:
        check_characters(self.phrase)
        if not exact_words(self.phrase):
            raise QueryError(f"{self.phrase[:60]!r} holds no word that a passage could hold.")

    def holds(self, *texts: str) -> bool:
        """Tell whether a passage of these texts (its title, its text) meets the condition."""
        return stands(self.phrase, *texts) == self.wanted


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query: `text`, without operators, is what is encoded and given to BM25."""

    text: str
    wording: tuple[Wording, ...] = ()


def stands(phrase: str, *texts: str) -> bool:
    """Tell whether a phrase is in one of the texts, word for word."""
    sought = f" {' '.join(exact_words(phrase))} "
    return any(sought in f" {' '.join(exact_words(text))} " for text in texts)


def exact_words(text: str) -> list[str]:
    """Return the words of a text, in lower case."""
    if text.isascii():
        return _WORD.findall(text.lower())
    return [word.translate(_LOWER) for word in _WORD.findall(normal_form(text))]


def parse_query(
    text: str,
    *,
    must: str | Sequence[str] = (),
    must_not: str | Sequence[str] = (),
    literal: bool = False,
) -> Query:
    """Return a query from what was typed: ``"exact words"`` must stand in a passage, ``-word`` not.

    ``-"several words"`` must not either; `must` and `must_not` say the same apart from the text.
    Quoted words stay in the query's text, without the quotes. Operators begin a piece of the text,
    at its start or after a space; a minus counts only before a letter or a quote, a quote only with
    its partner. `literal` takes the text as it is.

    Raises:
        QueryError: the text is only what must not be there, or `must` or `must_not` holds no word.
    """
    text = normal_form(text)
    wording: list[Wording] = []

    def without_operator(operator: regex.Match[str]) -> str:
        phrase = operator["phrase"] or operator["word"] or ""
        if not exact_words(phrase):
            return operator[0]
        is_wanted = not (operator["word"] or operator["no"])
        wording.append(Wording(phrase, is_wanted))
        return phrase if is_wanted else ""

    rest = text if literal else _OPERATOR.sub(without_operator, text)
    if wording and not rest.strip():
        raise QueryError(f"{text[:60]!r} only says what must not be there: say what to look for.")
    for phrases, is_wanted in ((must, True), (must_not, False)):
        phrases = (phrases,) if isinstance(phrases, str) else phrases
        wording += [Wording(normal_form(phrase), is_wanted) for phrase in phrases]
    return Query(rest.strip() if rest != text else text, tuple(dict.fromkeys(wording)))

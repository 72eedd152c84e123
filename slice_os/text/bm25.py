"""The parts of BM25 that do not depend on where the postings lie.

score(D) = sum over terms t of idf(t) * tf / (tf + k1 * (1 - b + b * |D| / avgdl)), Robertson and
Zaragoza (2009) in Lucene's form: idf(t) = ln(1 + (N - n + 0.5) / (n + 0.5)) is never negative,
the constant factor k1 + 1 is left out, and |D| is rounded (avgdl is the mean of exact lengths).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import regex

from slice_os.text.normal_form import normal_form

K1 = 1.2
B = 0.75
MAX_TERMS = 128
"""Of a longer query the rarest terms are kept: the others hardly weigh anything."""

_STOP_WORDS = """
a an and are as at be but by for if in into is it no not of on or such that the their then there
these they this to was will with
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""Lucene's, which a cluster's `english` analyzer leaves out: they cost most and weigh least."""

# The token characters of SQLite's unicode61, so that each of our terms is one of its tokens.
_CHARACTERS = r"[\p{L}\p{N}\p{M}\p{Co}]+"
_TERM = regex.compile(_CHARACTERS)
# What stands between two letters or two digits of one word (Unicode's annex 29, as in Lucene).
_INSIDE = r"(?:(?<=[\p{L}\p{M}])[.'’](?=\p{L})|(?<=\p{Nd})[.,](?=\p{Nd})|_+)"
_WORD = regex.compile(rf"{_CHARACTERS}(?:{_INSIDE}{_CHARACTERS}){{,9}}")  # FTS5 is slow with more


def terms(text: str) -> Counter[str]:
    """Return the distinct lower-cased terms of a text with how often each occurs.

    Stop words are left out, unless the text has nothing else.
    """
    return _without_stop_words(Counter(_TERM.findall(normal_form(text).lower())))


def query_terms(query: str) -> Counter[str]:
    """Return what a query asks the postings of FTS5 for, each a term or several that are one word.

    ``e.g.``, ``1,000`` and ``node_id`` are one word to Lucene, and so they are here, where FTS5
    looks for terms in a row: ``e`` alone would find any formula. A possessive ``'s`` goes.
    """
    return _without_stop_words(Counter(_words(query)))


def text_length(*texts: str) -> int:
    """Return how many words of a passage's texts Lucene indexes: all but its stop words."""
    return sum(word not in STOP_WORDS for text in texts for word in _words(text))


def rounded_lengths(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return lengths as Lucene keeps them, in one byte: exact to 40, of four binary digits above.

    24 is subtracted first and added afterwards (`SmallFloat.intToByte4`).
    """
    over = np.maximum(lengths - 24, 0)
    shift = np.maximum(np.frexp(over)[1].astype(np.int64) - 4, 0)
    return np.where(lengths > 24, 24 + (over >> shift << shift), lengths)


def _words(text: str) -> Iterator[str]:
    for word in _WORD.findall(normal_form(text).lower()):
        yield word.removesuffix("'s").removesuffix("’s")


def _without_stop_words(found: Counter[str]) -> Counter[str]:
    kept = Counter({term: count for term, count in found.items() if term not in STOP_WORDS})
    return kept or found


def inverse_document_frequency(passages: float, holding: int) -> float:
    """Return ln(1 + (N - n + 0.5) / (n + 0.5)) for n of N passages that hold the term."""
    return math.log(1 + (passages - holding + 0.5) / (holding + 0.5))

"""The words and phrases that a corpus uses, of which topics are described.

Wang et al. (2021), section A.2: every word that occurs more than five times, and the most frequent
phrases. They take phrases from a constituency parser; here a phrase is a run of words within a
sentence, without punctuation, that neither begins nor ends on a function word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple
from unicodedata import normalize

import numpy as np
import numpy.typing as npt
import regex

from slice_os.text import sentence_ends
from slice_os.types import Float32, Passage

Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

LEAST = 6
"""Occurrences of a word or phrase of the vocabulary."""
LONGEST = 6
"""Words of a phrase, at most."""
MOST = 75_000
"""Phrases, at most."""
INSIDE = 0.75
"""A phrase of whose occurrences more than this share is in the same longer one is left out."""

_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]+(?:['’-][\p{L}\p{M}\p{N}]+)*")
_LETTERS = regex.compile(r"\p{L}.*\p{L}|\p{Han}")
# English alone has its function words here, and what conversations are full of whatever they are
# about, such as greetings: elsewhere phrases may begin and end on them.
_FUNCTION = frozenset([
    "a", "about", "above", "after", "again", "against", "all", "also", "am", "an", "and", "another",
    "any", "anybody", "anyone", "anything", "are", "as", "at", "be", "because", "been", "before",
    "being", "below", "between", "both", "but", "by", "bye", "can", "can't", "cannot", "cant",
    "could", "couldnt", "did", "didnt", "do", "does", "doesnt", "doing", "done", "dont", "down",
    "during", "each", "either", "else", "even", "ever", "every", "everybody", "everyone",
    "everything", "few", "for", "from", "further", "get", "gets", "getting", "go", "goes", "going",
    "gone", "goodbye", "got", "had", "has", "have", "having", "he", "hello", "her", "here", "hers",
    "herself", "hey", "hi", "him", "himself", "his", "how", "i", "if", "im", "in", "into", "is",
    "isnt", "it", "its", "itself", "ive", "just", "let", "like", "ma'am", "madam", "many", "may",
    "maybe", "me", "might", "mine", "more", "most", "much", "must", "my", "myself", "need",
    "needed", "needs", "neither", "no", "nobody", "none", "nor", "not", "nothing", "now", "of",
    "off", "oh", "ok", "okay", "on", "once", "one", "only", "onto", "or", "other", "others",
    "ought", "our", "ours", "out", "over", "own", "per", "please", "rather", "really", "same",
    "shall", "she", "should", "sir", "so", "some", "somebody", "someone", "something", "still",
    "such", "sure", "than", "thank", "thanks", "that", "thats", "the", "their", "theirs", "them",
    "themselves", "then", "there", "these", "they", "thing", "things", "this", "those", "though",
    "through", "thus", "to", "too", "under", "until", "up", "upon", "us", "very", "via", "want",
    "wanted", "wants", "was", "wasnt", "we", "were", "what", "whatever", "when", "where", "whether",
    "which", "while", "who", "whom", "whose", "why", "will", "with", "within", "without", "won't",
    "wont", "would", "wouldnt", "yeah", "yep", "yes", "yet", "you", "your", "yours", "yourself",
    "yup",
])  # fmt: skip
_CLITIC = regex.compile(r"(?:n't|['’](?:s|d|m|ll|re|ve|t))$")


class Texts(NamedTuple):
    """The words of some texts.

    Attributes:
        words: The different words, in lower case.
        ids: int64 ``[W]``, the words of all texts one after the other, as rows of `words`.
        bounds: int64 ``[N + 1]``: text k has the words ``ids[bounds[k]:bounds[k + 1]]``.
        joined: bool ``[W]``: whether a word follows the one before it within a sentence, with
            nothing but white space between them.
    """

    words: list[str]
    ids: Int64
    bounds: Int64
    joined: Bools


@dataclass(frozen=True, slots=True, eq=False)
class Vocabulary:
    """Words and phrases, the words first, the most frequent of each first.

    Attributes:
        items: What they are, in lower case; the words of a phrase with a space between them.
        counts: int64 ``[V]``, how often each occurs.
    """

    items: list[str]
    counts: Int64

    def __len__(self) -> int:
        return len(self.items)

    @property
    def words(self) -> int:
        """How many of the items are words."""
        return next((k for k, item in enumerate(self.items) if " " in item), len(self.items))


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """What topics are learnt from and described with.

    Attributes:
        passages: Those of which the encoder knows a word.
        texts: Their words.
        vocabulary: What topics are described with.
        vectors: float32 ``[n, d]``, the passages' unit vectors.
        items: float32 ``[V, d]``, the vocabulary's.
        held: Of each item the passages that say it, int64, ascending, one for each time.
    """

    passages: list[Passage]
    texts: Texts
    vocabulary: Vocabulary
    vectors: Float32
    items: Float32
    held: list[Int64]


def read_texts(texts: Iterable[str]) -> Texts:
    """Return the words of texts."""
    known: dict[str, int] = {}
    ids: list[Int64] = []
    joined: list[Bools] = []
    bounds = [0]
    for text in texts:
        text = normalize("NFC", text)
        spans = [word.span() for word in _WORD.finditer(text)]
        words = (text[start:end].lower().replace("’", "'") for start, end in spans)
        ids.append(np.array([known.setdefault(word, len(known)) for word in words], np.int64))
        ended = sentence_ends(text, np.array([end for _, end in spans]))[: len(spans)]
        apart = [True, *(bool(text[end:start].strip()) for (_, end), (start, _) in pairwise(spans))]
        joined.append(~(ended | np.array(apart[: len(spans)], bool)))
        bounds.append(bounds[-1] + len(spans))
    none = np.zeros(0, np.int64)
    return Texts(
        list(known),
        np.concatenate([none, *ids]),
        np.array(bounds, np.int64),
        np.concatenate([none.astype(bool), *joined]),
    )


def mine_vocabulary(texts: Texts, least: int = LEAST, most: int = MOST) -> Vocabulary:
    """Return the words and phrases that occur at least `least` times, `most` phrases at most.

    A phrase that is nearly always part of the same longer one is left out.
    """
    alone = np.array([is_content(word) for word in texts.words], bool)
    words: list[tuple[int, str]] = []
    phrases: list[tuple[int, str]] = []
    levels = _levels(texts, least)
    # Of each run of one word more, how often the most frequent phrase that holds it occurs.
    held = np.zeros(0, np.int64)
    for length in range(len(levels), 0, -1):
        runs = levels[length - 1]
        inside = np.zeros(len(runs.counts), np.int64)
        for longer in levels[length : length + 1]:
            np.maximum.at(inside, longer.first, held)
            np.maximum.at(inside, longer.last, held)
        says = alone[texts.ids[runs.starts]] & alone[texts.ids[runs.starts + length - 1]]
        # A word stays, whatever it stands in.
        kept = says & (inside <= INSIDE * runs.counts) if length > 1 else says
        for start, count in zip(
            runs.starts[kept].tolist(), runs.counts[kept].tolist(), strict=True
        ):
            text = " ".join(texts.words[k] for k in texts.ids[start : start + length].tolist())
            (phrases if length > 1 else words).append((count, text))
        held = np.where(says, runs.counts, inside)
    words.sort(key=lambda item: (-item[0], item[1]))
    phrases.sort(key=lambda item: (-item[0], item[1]))
    both = [*words, *phrases[:most]]
    return Vocabulary([text for _, text in both], np.array([count for count, _ in both], np.int64))


def is_content(word: str) -> bool:
    """Tell whether a word says something by itself: it has letters and is no function word."""
    return (
        _LETTERS.search(word) is not None
        and word not in _FUNCTION
        and _CLITIC.sub("", word) not in _FUNCTION
    )


def occurrences(texts: Texts, items: Sequence[str]) -> dict[str, Int64]:
    """Return for each of `items` the rows of the texts that hold it, ascending, each time."""
    rows = {word: row for row, word in enumerate(texts.words)}
    text_of = np.repeat(np.arange(len(texts.bounds) - 1), np.diff(texts.bounds))
    order = np.argsort(texts.ids, kind="stable")
    begins = np.searchsorted(texts.ids[order], np.arange(len(texts.words) + 1))
    held: dict[str, Int64] = {}
    for item in dict.fromkeys(items):
        first, *more = (rows.get(word, -1) for word in item.split(" "))
        places = order[begins[first] : begins[first + 1]] if first >= 0 else order[:0]
        for step, row in enumerate(more, start=1):
            places = places[places + step < len(texts.ids)]
            follows = (texts.ids[places + step] == row) & texts.joined[places + step]
            places = places[follows]
        held[item] = text_of[places]
    return held


class _Runs(NamedTuple):
    """The frequent runs of so many words.

    Where one of each starts, how often it occurs, and the numbers of the runs of one word less that
    it begins and ends with.
    """

    starts: Int64
    counts: Int64
    first: Int64
    last: Int64


def _levels(texts: Texts, least: int) -> list[_Runs]:
    """Return the frequent runs of one word, of two, and so on up to the longest.

    A run can only be frequent if its first words and its last words are (Agrawal and Srikant,
    1994), so the table of runs stays as small as what is found.
    """
    none = np.zeros(0, np.int64)
    # Of each place the run that starts there, -1 if it is not frequent.
    here, starts, counts = _number(texts.ids, np.arange(len(texts.ids)), least)
    levels = [_Runs(starts, counts, none, none)]
    for length in range(1, LONGEST):
        places = np.flatnonzero(here[:-length] >= 0)
        places = places[(here[places + 1] >= 0) & texts.joined[places + length]]
        keys = here[places] * len(texts.words) + texts.ids[places + length]
        there, starts, counts = _number(keys, places, least, len(texts.ids))
        levels.append(_Runs(starts, counts, here[starts], here[starts + 1]))
        here = there
    return levels


def _number(
    keys: Int64, places: Int64, least: int, size: int | None = None
) -> tuple[Int64, Int64, Int64]:
    """Give each key that occurs `least` times a number.

    Return the number at each of `size` places, -1 for those of no such key, and of each number its
    first place and how often it occurs.
    """
    numbers = np.full(len(keys) if size is None else size, -1, np.int64)
    _, first, inverse, counts = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    frequent = counts >= least
    numbers[places] = np.where(frequent, np.cumsum(frequent) - 1, -1)[inverse]
    return numbers, places[first[frequent]], counts[frequent].astype(np.int64)

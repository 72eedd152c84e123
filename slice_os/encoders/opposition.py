"""What words show that vectors do not: a negation, an antonym, another number, modal or order.

"wants to cancel" and "does not want to cancel" have nearly the same vector. Where two texts share
most of their words, the few in which they differ tell whether one says the opposite of the other.
Texts that share few words are left alone. The words are those of English (`english.json`, and the
antonyms of `opposites.txt`); of another language, numbers in digits and the order of words count.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from itertools import chain
from typing import Any, NamedTuple

from Stemmer import Stemmer

ENOUGH, PLENTY = 0.7, 0.8
"""Shares of words that two texts have in common: above the first a difference counts, from the
second on wholly."""
LEFT = 2
"""Words of sense that may differ besides."""
FEW = 4
"""Words of sense that may be antonyms."""
LONG = 8
"""Words of sense in a text, of more of which the few that differ count for less."""
LONGEST = 40
"""Words of a text up to which their order is looked at; a span has at most 20."""
BEFORE = 3
"""Words before a span, in its clause, of which one may negate it."""
_ANSWERS = frozenset(["no", "nothing"])
"""Negations that at the beginning need not be of what follows them: "no thank you"."""
_PREFIXES = ("un", "in", "im", "ir", "il", "dis", "non", "mis")
_ENDS = (
    ("up", "down"), ("in", "out"), ("over", "under"), ("pre", "post"), ("on", "off"), ("im", "ex"),
    ("ful", "less"),
)  # fmt: skip
"""Beginnings and ends that oppose words: "upload" and "download"."""
_TOKEN = re.compile(r"\d+(?:[.,:/]\d+)*(?:st|nd|rd|th)?|[^\W\d_]+")
_CLAUSE = re.compile(r"[,;:()\[\]–—]")
_REWRITTEN = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"’", "'"),
        (r"\b(?:can't|cannot)\b", "can not"),
        (r"\bwon't\b", "will not"),
        (r"n't\b", " not"),
        (r"\bno longer\b", "not"),
        (r"\bno one\b", "nobody"),
        (r"\bunable\b", "not able"),
        (r"'(?:s|re|ve|ll|d|m)\b", ""),
        (r"\b(?:do|does|did) not (?:have|need) to\b|\bneed not\b", "optional"),
        (r"\bnot (?:required|necessary|mandatory|compulsory|obligatory|needed)\b", "optional"),
        (r"\b(?:has|have|had) to\b", "must"),
        (r"\bmay (?=\d)|(?<=\d )may\b|(?<=\b[io][nf] )may\b", "5 "),  # the month
        (r"\b([ap])\.m\.?", r"\1m"),
        (r"\ban? (?=(?:dozen|hundred|thousand|million|billion)\b)", "1 "),
    )
]


class Opposition(NamedTuple):
    """How a text says another thing than one that shares its words.

    Attributes:
        kinds: Of "negation", "antonym", "number", "modal" and "role" those that are met; "role"
            is for the same words in another order.
        strength: 0 to 1: how much of the rest is the same; 0 if no kind is met.
    """

    kinds: tuple[str, ...]
    strength: float


class _English(NamedTuple):
    negative: frozenset[str]
    modals: Mapping[str, str]
    numbers: Mapping[str, str]
    units: frozenset[str]
    """Stems of what is counted in: after a number they are a part of it."""
    forms: Mapping[str, str]
    persons: frozenset[str]
    small: frozenset[str]
    """Words that make no difference by themselves."""
    denying: frozenset[str]
    """Stems of what denies without a "not": "stopped working" says the same as "not working"."""
    around: frozenset[str]
    """What stands between two words that may change places and mean the same."""
    opposites: Mapping[str, frozenset[str]]
    """Stems with those of their antonyms; recipes/opposite_words.py made them."""


class _Read(NamedTuple):
    negations: list[str]
    numbers: Counter[str]
    modals: Counter[str]
    words: list[str]
    """All other words in order, those of sense by their stems."""
    order: list[str]
    """These with the numbers between them."""


@lru_cache(1 << 10)
def opposition(query: str, text: str, before: str = "") -> Opposition:
    """Compare the words of what is asked, `query`, and of a text.

    Where a few words without grammar are asked for ("card arrival"), they name a topic, and a text
    that says it in the negative is on it. `before` are the words before the text in its sentence:
    the last three may negate it, if no comma, colon or bracket stands between.
    """
    mine, its = _read(query), _read(text)
    here, there = Counter(mine.words), Counter(its.words)
    gone, come = here - there, there - here
    if _of_sense(gone + come) > LEFT + FEW:
        return Opposition((), 0.0)
    antonyms = _antonyms(list(gone.elements()), list(come.elements()))
    # Of "close to" and "far from" the small words only go with the others.
    antonyms = [pair for pair in antonyms if _of_sense(Counter(pair))] or antonyms
    kinds = []
    negated = _negated(mine, its, before, gone, come)
    if negated != (len(antonyms) % 2 == 1):
        kinds.append("negation" if negated else "antonym")
    if mine.numbers - its.numbers and its.numbers - mine.numbers:
        kinds.append("number")
    modals = mine.modals - its.modals, its.modals - mine.modals
    if all(modals):
        kinds.append("modal")
    orders = mine.order, its.order
    if not kinds and _alike(gone, come) and len(its.words) <= LONGEST and _exchanged(*orders):
        kinds.append("role")
    left = _of_sense(gone + come - Counter(chain(*antonyms)))
    if not kinds or left > LEFT:
        return Opposition((), 0.0)
    if "modal" not in kinds:  # of "not allowed" and what says nothing of it
        left += sum(modals, Counter()).total()
    shared = _of_sense(here & there)
    whole = 2 * shared + left
    share = 2 * shared / whole if whole else float(bool(antonyms or here & there))
    strength = min(max((share - ENOUGH) / (PLENTY - ENOUGH), 0.0), 1.0)
    strength *= min(LONG / max(whole / 2, 1), 1.0) ** 2
    return Opposition(tuple(kinds) if strength else (), strength)


@lru_cache(1 << 10)
def _read(text: str) -> _Read:
    english = _english()
    rewritten = text.lower()
    for pattern, replacement in _REWRITTEN:
        rewritten = pattern.sub(replacement, rewritten)
    read = _Read([], Counter(), Counter(), [], [])
    counted = False
    for word in _TOKEN.findall(rewritten):
        before, counted = counted, word[0].isdigit() or word in english.numbers
        unit = before and stem(word) in english.units
        if word in english.negative:
            read.negations.append(word)
        elif word in english.modals:
            read.modals[english.modals[word]] += 1
        elif counted or unit:
            number = stem(word) if unit else english.numbers.get(word, word)
            read.numbers[number] += 1
            read.order.append(number)
        else:
            form = english.forms.get(word, word)
            read.words.append(form if form in english.small else stem(form))
            read.order.append(read.words[-1])
    return read


def _of_sense(words: Counter[str]) -> int:
    """Return how many words make a difference by themselves."""
    small = _english().small
    return sum(count for word, count in words.items() if word not in small)


def _negated(
    mine: _Read, its: _Read, before: str, gone: Iterable[str], come: Iterable[str]
) -> bool:
    """Tell whether one of the two is negated and the other neither is nor denies otherwise."""
    english = _english()
    clause = _CLAUSE.split(before)[-1].split()
    if clause and clause[0].lower() in _ANSWERS:
        del clause[0]
    around = _read(" ".join(clause[-BEFORE:]))
    more = len(mine.negations) - len(its.negations) - len(around.negations)
    grammar = mine.negations or mine.modals or english.small & {*mine.words}
    topic = len(mine.words) < 4 and not grammar
    if more % 2 == 0 or topic:
        return False
    return not any(
        word in english.denying or (word.startswith(("un", "dis", "in", "im")) and len(word) > 5)
        for word in (come if more > 0 else gone)
    )


def _antonyms(gone: Sequence[str], come: list[str]) -> list[tuple[str, str]]:
    """Return the words that are gone for an antonym, each with it, which is taken from `come`."""
    pairs = []
    for word in gone:
        other = next((other for other in come if _opposed(word, other)), None)
        if other is not None:
            come.remove(other)
            pairs.append((word, other))
    return pairs


def _opposed(first: str, second: str) -> bool:
    """Tell whether two words are antonyms."""
    english = _english()
    mine, its = (stem(word) if word in english.small else word for word in (first, second))
    if its in english.opposites.get(mine, ()):
        return True
    return any(
        any(a == prefix + b for prefix in _PREFIXES)
        or any(_swapped(a, b, p, q) for pair in _ENDS for p, q in (pair, pair[::-1]))
        for a, b in ((first, second), (second, first))
    )


def _swapped(first: str, second: str, affix: str, other_affix: str) -> bool:
    """Tell whether two words differ in that one begins, or ends, with `mine`, one with `its`."""
    start, end = first.removeprefix(affix), first.removesuffix(affix)
    return (first != start and len(start) > 2 and second == other_affix + start) or (
        first != end and len(end) > 2 and second == end + other_affix
    )


def _alike(gone: Counter[str], come: Counter[str]) -> bool:
    """Tell whether at most a word differs, and persons: "her son" may be another's "his mother"."""
    persons = Counter(_english().persons)
    others = min((gone & persons).total(), (come & persons).total())
    return (gone + come).total() - 2 * others < 2


def _exchanged(mine: Sequence[str], its: Sequence[str]) -> bool:
    """Tell whether two words have changed places around a third: "a sues b" and "b sues a".

    Words that have moved together, as "yesterday" in "yesterday it rained", have not.
    """
    english = _english()
    once = {word for word in mine if mine.count(word) == its.count(word) == 1} - english.around
    here, there = ({word: at for at, word in enumerate(words)} for words in (mine, its))
    moving = [word for word in once if word not in english.small or word in english.persons]

    def crossed(pivot: str, before: bool) -> bool:
        return any(
            (here[word] < here[pivot]) == before and (there[word] > there[pivot]) == before
            for word in moving
            if word != pivot
        )

    return any(crossed(pivot, True) and crossed(pivot, False) for pivot in once)


@lru_cache(1)
def _english() -> _English:
    room = files("slice_os.encoders")
    lists: dict[str, Any] = json.loads((room / "english.json").read_text(encoding="utf-8"))
    tables: dict[str, Any] = {
        name: {word: key for key, words in lists[name].items() for word in words.split()}
        for name in ("modals", "numbers", "forms")
    }
    sets: dict[str, Any] = {
        name: frozenset(lists[name].split()) for name in ("negative", "persons", "small", "around")
    }
    text = (room / "opposites.txt").read_text(encoding="utf-8")
    rows = (line.split() for line in text.splitlines() if line and not line.startswith("#"))
    return _English(
        **tables,
        **sets,
        denying=frozenset(map(stem, lists["denying"].split())),
        units=frozenset(map(stem, lists["units"].split())),
        opposites={word: frozenset(others) for word, *others in rows},
    )


def stem(word: str) -> str:
    """Return the English stem of a word in lower case (Snowball's, also called Porter2)."""
    stemmed: str = Stemmer("english", 0).stemWord(word)  # its own: two threads may not share one
    return stemmed

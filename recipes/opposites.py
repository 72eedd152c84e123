"""Rules that turn a sentence into its opposite, or into another that says the same.

A rule takes the words of a sentence and a random generator and returns changed words, or None where
it does not apply. What it replaces by what is in opposites.toml (`wordnet` has rules of WordNet).
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import lemminflect
from msgspec import toml

Rule = Callable[[list[str], random.Random], "list[str] | None"]
LISTS: dict[str, Any] = toml.decode(Path(__file__).with_suffix(".toml").read_bytes())
DETERMINERS, SMALL = set(LISTS["determiners"]), set(LISTS["small"])
AUXILIARIES = set(LISTS["auxiliaries"])
CONTRACTED, PLURAL = dict(LISTS["contracted"]), dict(LISTS["plural"])
SHORT = {long: short for short, long in CONTRACTED.items() if short != "cannot"}
MODALS, TAILS, CARDINALS, ORDINALS = (
    LISTS[name] for name in ("modals", "tails", "cardinals", "ordinals")
)
SUBJECTS = {"i": "me", "you": "you", "he": "him", "she": "her", "we": "us", "they": "them"}
OBJECTS = {value: key for key, value in SUBJECTS.items()}
DO = {"VBZ": "does", "VBD": "did", "VBP": "do"}


def both(pairs: Sequence[Sequence[str]]) -> dict[str, list[str]]:
    """Return each of some pairs with its others."""
    found: dict[str, list[str]] = {}
    for one, other in pairs:
        found.setdefault(one, []).append(other)
        found.setdefault(other, []).append(one)
    return found


OPPOSITE = both(LISTS["opposed"])


def lower(words: Sequence[str]) -> list[str]:
    """Return words in lower case, without the marks around them."""
    return [re.sub(r"^\W+|\W+$", "", word).lower() for word in words]


def replaced(words: list[str], at: int, count: int, said: str) -> list[str]:
    """Return words with `count` of them from `at` on replaced; marks and a capital stay."""
    first, last = words[at], words[at + count - 1]
    head = re.match(r"\W*", first).group()  # type: ignore[union-attr]
    tail = re.search(r"\W*$", last).group() if re.search(r"\w", last) else ""  # type: ignore[union-attr]
    if first[len(head) : len(head) + 1].isupper() and at == 0:
        said = said[:1].upper() + said[1:]
    new = f"{head}{said}{tail}".split()
    return [*words[:at], *new, *words[at + count :]]


def swap(table: dict[str, list[str]], most: int = 3) -> Rule:
    """Return a rule that replaces one phrase of `table` by one of its others."""

    def rule(words: list[str], rng: random.Random) -> list[str] | None:
        plain = lower(words)
        found = [
            (at, count, phrase)
            for count in range(1, most + 1)
            for at in range(len(words) - count + 1)
            if table.get(phrase := " ".join(plain[at : at + count]))
        ]
        if not found:
            return None
        at, count, phrase = rng.choice(found)
        return replaced(words, at, count, rng.choice(table[phrase]))

    return rule


def groups(lists: Sequence[Sequence[str]], *, within: bool) -> dict[str, list[str]]:
    """Return what may stand for each phrase: those of its own list, or those of the others."""
    return {
        one: [
            other
            for others in lists
            if (others is own) == within
            for other in others
            if other != one
        ]
        for own in lists
        for one in own
    }


def verb(word: str) -> tuple[str, str] | None:
    """Return the tag and lemma of a finite verb that is not also something more likely."""
    if word in SMALL or not word.isalpha():
        return None
    lemmas = lemminflect.getAllLemmas(word)
    for lemma in lemmas.get("VERB", ()):
        for tag in ("VBZ", "VBD", "VBP"):
            if word in lemminflect.getInflection(lemma, tag):
                return tag, lemma
    return None


def inflect(lemma: str, tag: str) -> str:
    """Return a form of a verb."""
    return str(next(iter(lemminflect.getInflection(lemma, tag)), lemma))


def negate(words: list[str], rng: random.Random) -> list[str] | None:
    """Put a "not" in, or take one out."""
    plain = lower(words)
    for at, word in enumerate(plain):
        if word in CONTRACTED:
            return replaced(words, at, 1, CONTRACTED[word].split()[0])
        if word in ("not", "never") and at:
            before = plain[at - 1]
            follows = plain[at + 1] if at + 1 < len(plain) else ""
            if before in ("do", "does", "did") and (found := verb(follows)):
                tag = {"do": "VBP", "does": "VBZ", "did": "VBD"}[before]
                return replaced(words, at - 1, 3, inflect(found[1], tag))
            return [*words[:at], *words[at + 1 :]]
    places = [at for at, word in enumerate(plain) if word in AUXILIARIES and at + 1 < len(plain)]
    if places:
        at = places[0]
        said = f"{plain[at]} {rng.choice(['not', 'not', 'not', 'never'])}"
        return replaced(words, at, 1, SHORT.get(said, said) if rng.random() < 0.4 else said)
    for at, word in enumerate(plain):
        subject = at and (plain[at - 1] in SUBJECTS or plain[at - 1] not in SMALL)
        if subject and (found := verb(word)):
            tag, lemma = found
            if tag == "VBP" and plain[at - 1] not in SUBJECTS:
                continue
            said = rng.choice([f"{DO[tag]} not", SHORT[f"{DO[tag]} not"], "never"])
            return replaced(words, at, 1, f"{said} {word if said == 'never' else lemma}")
    if len(words) > 1 and verb(plain[0]) and lemminflect.getInflection(plain[0], "VB"):
        return replaced(words, 0, 1, f"{rng.choice(['do not', 'never', 'don’t'])} {plain[0]}")
    return None


BOUNDS, UNITS = LISTS["bounds"], LISTS["units"]
OF_NUMBERS = {
    **groups([[one] for one in CARDINALS[1:] + LISTS["tens"]], within=False),
    **{one: [other for other in [*ORDINALS, "last"] if other != one] for one in ORDINALS},
    **groups([[one] for one in LISTS["weekdays"]], within=False),
    **groups([[one] for one in LISTS["months"]], within=False),
    **groups([[one] for one in LISTS["times"]], within=False),
    **groups([[one] for one in LISTS["parts"]], within=False),
    **groups([[one] for one in UNITS], within=False),
    **groups([[f"{one}s"] for one in UNITS], within=False),
    **groups(BOUNDS, within=False),
    **{"before": ["after"], "after": ["before"], "am": ["pm"], "pm": ["am"], "within": ["after"]},
    **{"both": ["one of the"], "single": ["double", "triple"], "couple": ["dozen"]},
}
word_number = swap(OF_NUMBERS)
same_number = swap({**groups(LISTS["durations"], within=True), **groups(BOUNDS[:4], within=True)})


def number(words: list[str], rng: random.Random) -> list[str] | None:
    """Say another number, day, unit or bound."""
    digits = [at for at, word in enumerate(words) if re.search(r"\d", word)]
    if not digits or rng.random() < 0.3:
        return word_number(words, rng)
    at = rng.choice(digits)
    old = re.search(r"\d+", words[at]).group()  # type: ignore[union-attr]
    value = int(old[:9])
    others = {value + 1, max(value - 1, 0), 2 * value, 10 * value, value + rng.randint(2, 40)}
    new = str(rng.choice(sorted(others - {value}))).zfill(len(old) if old[0] == "0" else 0)
    return [*words[:at], words[at].replace(old, new, 1), *words[at + 1 :]]


def respelled(words: list[str], rng: random.Random) -> list[str] | None:
    """Write a number in words or in digits, or say a span of time otherwise."""
    if (found := same_number(words, rng)) and rng.random() < 0.6:
        return found
    plain = lower(words)
    for at, word in enumerate(plain):
        if word in CARDINALS[2:]:
            return replaced(words, at, 1, str(CARDINALS.index(word)))
        if word.isdigit() and int(word) < len(CARDINALS) and len(word) < 3:
            return replaced(words, at, 1, CARDINALS[int(word)])
        if word in ORDINALS[2:]:
            return replaced(words, at, 1, f"{ORDINALS.index(word) + 1}th".replace("3th", "3rd"))
    return found


def noun_phrases(words: list[str]) -> list[tuple[int, int]]:
    """Return (start, end) of what follows a determiner as far as the next small word or verb."""
    plain, found, at = lower(words), [], 0
    while at < len(words):
        name = words[at][:1].isupper() and at and plain[at] not in SMALL
        if plain[at] in DETERMINERS or name:
            end = at + 1
            while (
                end < len(words)
                and end < at + 4
                and plain[end] not in SMALL
                and not re.search(r"\W$", words[end - 1])
                and not (end > at + 1 and _verbal(plain[end]))
            ):
                end += 1
            if end > at + 1 or name:
                found.append((at, end))
            at = end
        else:
            at += 1
    return found


def _verbal(word: str) -> bool:
    lemmas = lemminflect.getAllLemmas(word)
    return "VERB" in lemmas and ("NOUN" not in lemmas or word.endswith(("ed", "ing")))


def exchanged(words: list[str], rng: random.Random) -> list[str] | None:
    """Let two things, or two people, change places."""
    plain = lower(words)
    for at in range(len(plain) - 2):
        ends = [k for k in range(at + 2, min(at + 5, len(plain))) if plain[k] in OBJECTS]
        if plain[at] in SUBJECTS and ends and plain[ends[0]] != SUBJECTS[plain[at]]:
            k = ends[0]
            new = replaced(words, k, 1, SUBJECTS[plain[at]])
            return replaced(new, at, 1, OBJECTS[plain[k]])
    spans = noun_phrases(words)
    if len(spans) < 2:
        return None
    first = rng.randrange(len(spans) - 1)
    (a, b), (c, d) = spans[first], spans[first + 1]
    if plain[a:b] == plain[c:d] or plain[b:c] in (["and"], ["or"]):
        return None
    one, other = " ".join(words[a:b]), " ".join(words[c:d])
    mark = re.compile(r"^\W+|\W+$")
    new = replaced(words, c, d - c, mark.sub("", one) if a else mark.sub("", one).lower())
    return replaced(new, a, b - a, mark.sub("", other))


def voiced(words: list[str], rng: random.Random) -> list[str] | None:
    """Say in the passive what was in the active voice, or the other way round."""
    plain, spans = lower(words), noun_phrases(words)
    for (a, b), (c, d) in pairwise(spans):
        middle, whole = plain[b:c], (a, d) == (0, len(words))
        one, other = " ".join(plain[a:b]), " ".join(plain[c:d])
        if not whole:
            continue
        if len(middle) == 1 and (found := verb(middle[0])) and found[0] != "VBP":
            be = ("are" if plain[d - 1].endswith("s") else "is") if found[0] == "VBZ" else (
                "were" if plain[d - 1].endswith("s") else "was")  # fmt: skip
            return [*other.split(), be, inflect(found[1], "VBN"), "by", *one.split()]
        if len(middle) == 3 and middle[2] == "by" and middle[0] in ("is", "was", "are", "were"):
            lemma = next(iter(lemminflect.getAllLemmas(middle[1]).get("VERB", ())), None)
            tag = "VBD" if middle[0] in ("was", "were") else "VBZ"
            if lemma:
                return [*other.split(), inflect(lemma, tag), *one.split()]
    return None


def turned(words: list[str], rng: random.Random) -> list[str] | None:
    """Say "B and A" for "A and B", or the second clause first."""
    plain = lower(words)
    for at in range(1, len(words) - 1):
        if plain[at] in ("and", "or") and plain[at - 1] not in SMALL | {""} and at + 1 < len(words):
            if plain[at + 1] in SMALL or re.search(r"\W$", words[at - 1]):
                continue
            new = replaced(words, at + 1, 1, plain[at - 1])
            return replaced(new, at - 1, 1, plain[at + 1])
        if plain[at] in ("if", "when", "because", "although") and at > 2:
            rest = " ".join(words[at:]).rstrip(".?!")
            return f"{rest}, {' '.join(words[:at])}".split()
    return None


def padded(words: list[str], rng: random.Random) -> list[str]:
    """Add a word that says nothing, or drop a determiner."""
    articles = [at for at, word in enumerate(lower(words)) if word in ("the", "a", "an")]
    if articles and rng.random() < 0.5:
        at = rng.choice(articles)
        return [*words[:at], *words[at + 1 :]]
    at = rng.choice([0, len(words)])
    return [*words[:at], rng.choice(LISTS["pleasantries"]), *words[at:]]


def contracted(words: list[str], rng: random.Random) -> list[str] | None:
    """Write "don't" for "do not", or the other way round."""
    return swap({**{k: [v] for k, v in SHORT.items()}, **{k: [v] for k, v in CONTRACTED.items()}})(
        words, rng
    )


def modal(*, within: bool) -> Rule:
    """Return the rule that says a duty, a leave, a plan … otherwise, or says another."""
    verbs = groups(MODALS, within=within)
    for single, several in PLURAL.items():
        for phrase, others in list(verbs.items()):
            if phrase.split()[0] == single:
                verbs[" ".join([several, *phrase.split()[1:]])] = others
    swap_verb = swap(verbs, 5)
    grades = {k: v for one in LISTS["grades"] for k, v in groups(one, within=within).items()}
    swap_grade = swap(grades, 4)

    def rule(words: list[str], rng: random.Random) -> list[str] | None:
        if rng.random() < 0.3 and (found := swap_grade(words, rng)):
            return found
        found = swap_verb(words, rng)
        return (found and agreed(found, words)) or swap_grade(words, rng)

    return rule


def agreed(changed: list[str], words: list[str]) -> list[str]:
    """Let the first changed word agree with the one before it."""
    at = next((n for n, (a, b) in enumerate(zip(changed, words, strict=False)) if a != b), 0)
    before = lower(changed)[at - 1] if at else "it"
    several = before in ("we", "you", "they", "i") or (before.endswith("s") and len(before) > 3)
    if several and changed[at] in PLURAL:
        said = "am" if before == "i" and changed[at] == "is" else PLURAL[changed[at]]
        return [*changed[:at], said, *changed[at + 1 :]]
    return changed


def modalised(words: list[str], rng: random.Random) -> list[str] | None:
    """Put a duty, a leave, a plan … in front of the first verb that has a subject."""
    plain = lower(words)
    for at, word in enumerate(plain):
        if at and (plain[at - 1] in SUBJECTS or plain[at - 1] not in SMALL) and (
            found := verb(word)
        ) and (found[0] != "VBP" or plain[at - 1] in SUBJECTS):  # fmt: skip
            said = rng.choice(rng.choice(MODALS))
            return agreed(replaced(words, at, 1, f"{said} {found[1]}"), words)
    return None


same_modal, other_modal = modal(within=True), modal(within=False)
other_side = swap(both(LISTS["sides"]))
negating = swap(both(LISTS["negating"]))

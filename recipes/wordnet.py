"""WordNet's antonyms, synonyms and siblings of words, and rules that put them into sentences."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import lemminflect
from opposites import OF_NUMBERS, OPPOSITE, SMALL, Rule, lower, replaced

MANY = 300
"""A word that occurs oftener is replaced less often."""
FEW = 12
"""A word that occurs no oftener in the texts is not put into a sentence."""


class WordNet:
    """WordNet's words, synsets and what points from one to another (wndb(5WN))."""

    NAMES: ClassVar = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}

    def __init__(self, folder: Path) -> None:
        """Read the files index and data of every part of speech in `folder`."""
        self._senses: dict[tuple[str, str], list[str]] = {}
        self._synsets: dict[tuple[str, str], list[str]] = {}
        for kind, name in self.NAMES.items():
            for line in (folder / f"index.{name}").read_text(encoding="utf-8").splitlines():
                if not line.startswith(" "):
                    parts = line.split()
                    self._senses[kind, parts[0]] = parts[-int(parts[2]) :]
            for line in (folder / f"data.{name}").read_text(encoding="utf-8").splitlines():
                if not line.startswith(" "):
                    parts = line.partition(" | ")[0].split()
                    self._synsets[kind, parts[0]] = parts

    def is_a(self, word: str, name: str) -> bool:
        """Tell whether the first sense of a noun is a kind of the thing that has this name."""
        senses = self.senses(word, "n")[:1]
        for _ in range(12):
            if not senses:
                return False
            if self.words(senses[0])[0] == name:
                return True
            senses = [parent for parent, _ in self.pointed(senses[0], "@")][:1]
        return False

    def has_frame(self, verb: str, number: int) -> bool:
        """Tell whether the first sense of a verb has a frame, 8 for something, 9 for somebody."""
        if "VERB" not in lemminflect.getAllLemmas(verb) or not self.senses(verb, "v"):
            return False
        parts = self._synsets[self.senses(verb, "v")[0]]
        after = 4 + 2 * int(parts[3], 16)
        frames = parts[after + 1 + 4 * int(parts[after]) + 1 :]
        own = [one.lower() for one in self.words(self.senses(verb, "v")[0])]
        return any(
            int(frames[at + 1]) == number
            and (frames[at + 2] == "00" or own[int(frames[at + 2], 16) - 1] == verb)
            for at in range(0, len(frames) - 2, 3)
        )

    def senses(self, lemma: str, kind: str) -> list[tuple[str, str]]:
        """Return the synsets of a lemma, the most frequent first."""
        return [(kind, one) for one in self._senses.get((kind, lemma), ())]

    def words(self, synset: tuple[str, str]) -> list[str]:
        """Return the words of a synset."""
        parts = self._synsets[synset]
        return [word.partition("(")[0] for word in parts[4 : 4 + 2 * int(parts[3], 16) : 2]]

    def pointed(
        self, synset: tuple[str, str], symbol: str, word: str = ""
    ) -> list[tuple[tuple[str, str], int]]:
        """Return the synsets that `symbol` points to, and the word's number in it, from 1."""
        parts = self._synsets[synset]
        own = [one.lower() for one in self.words(synset)]
        rest = parts[4 + 2 * int(parts[3], 16) + 1 :]
        found = []
        for at in range(0, 4 * int(parts[4 + 2 * int(parts[3], 16)]), 4):
            sign, offset, kind, ends = rest[at : at + 4]
            source, target = int(ends[:2], 16), int(ends[2:], 16)
            if sign == symbol and (not source or not word or own[source - 1] == word):
                found.append((({"s": "a"}.get(kind, kind), offset), target))
        return found


class Lexicon:
    """Antonyms, synonyms and words of the same sort, inflected as the word that they replace."""

    TAGS: ClassVar = {
        "VERB": ("v", ("VBZ", "VBD", "VBG", "VBN", "VB")),
        "NOUN": ("n", ("NNS", "NN")),
        "ADJ": ("a", ("JJR", "JJS", "JJ")),
        "ADV": ("r", ("RB",)),
    }

    def __init__(self, folder: Path, frequent: Counter[str]) -> None:
        """Read WordNet's files in `folder`; only words that occur a few times are given."""
        self.wordnet = WordNet(folder)
        self._frequent = frequent
        self._known: dict[tuple[str, str], list[str]] = {}

    def of(self, word: str, wanted: str) -> list[str]:
        """Return the antonyms, synonyms or siblings (`wanted`) of a word."""
        key = word, wanted
        if key not in self._known:
            self._known[key] = sorted(set(self._find(word, wanted)) - {word})
        return self._known[key]

    def _find(self, word: str, wanted: str) -> Iterator[str]:
        plain = word.isalpha() and word.isascii() and len(word) > (2 if wanted == "antonyms" else 3)
        if word in SMALL or word in OF_NUMBERS or not plain:
            return
        found = lemminflect.getAllLemmas(word)
        for pos, lemmas in found.items():
            if pos not in self.TAGS or (wanted != "antonyms" and len(found) > 1):
                continue
            kind, tags = self.TAGS[pos]
            for lemma in lemmas:
                tag = next((t for t in tags if word in lemminflect.getInflection(lemma, t)), "")
                for said in self._lemmas(lemma, kind, wanted):
                    if tag in ("", "VB", "NN", "JJ", "RB"):
                        yield said
                    else:
                        yield from lemminflect.getInflection(said, tag)[:1]

    def _lemmas(self, lemma: str, kind: str, wanted: str) -> Iterator[str]:
        net = self.wordnet
        senses = net.senses(lemma, kind)
        if wanted == "antonyms":
            listed = list(OPPOSITE.get(lemma, ()))
            for sense in senses[:3]:
                for other, at in net.pointed(sense, "!", lemma):
                    listed.append(net.words(other)[at - 1])
        elif wanted == "synonyms":
            listed = net.words(senses[0]) if senses and len(senses) < 4 else []
        elif kind != "n" or not senses:
            listed = []
        else:
            parents = net.pointed(senses[0], "@")[:1]
            children = [child for parent, _ in parents for child, _ in net.pointed(parent, "~")]
            listed = [
                word
                for child in children
                for word in net.words(child)[:1]
                if net.senses(word, "n")[:1] == [child]
            ]
        yield from (one for one in listed if one != lemma and self._frequent[one] > FEW)

    def rule(self, wanted: str) -> Rule:
        """Return the rule that replaces one word."""

        def rule(words: list[str], rng: random.Random) -> list[str] | None:
            plain = lower(words)
            # Seldom words first, and frequent ones not always: else all is about men and women.
            for at in sorted(range(len(words)), key=lambda at: self._frequent[plain[at]]):
                share = MANY / max(self._frequent[plain[at]], MANY)
                if rng.random() < share and (found := self.of(plain[at], wanted)):
                    return replaced(words, at, 1, rng.choice(found))
            return None

        return rule

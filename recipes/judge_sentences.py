"""Sentences made of parts, so that what is changed in one is known, and said in several ways.

"The doctor must call the nurse" is "the nurse has to be called by the doctor" and not "the nurse
must call the doctor": running text seldom tells who does what to whom, and what must be done.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from opposites import LISTS, MODALS, OPPOSITE, SMALL, TAILS, inflect
from wordnet import Lexicon

WILLED = [n for n, said in enumerate(MODALS) if said[0].split()[0] in LISTS["willed"]]
"""Which of MODALS say what the one who acts wants or manages."""
TENSES = ["past", "present", "future"]
TOGETHER = {"past": "did not", "present": "does not", "future": "will not"}


class Said(NamedTuple):
    """Who does what to whom, how, and when; `modal` is a list of MODALS, or -1 for a tense."""

    who: str
    verb: str
    whom: str
    tail: int
    modal: int
    tense: str
    denied: bool


class Sentences:
    """Sentences of frequent words."""

    def __init__(self, lexicon: Lexicon, frequent: Counter[str], rng: random.Random) -> None:
        """Take the words of a lexicon that occur in texts so often, by `frequent`."""
        self._rng = rng
        self._lexicon = lexicon
        net = lexicon.wordnet
        known = {word for word, count in frequent.items() if count > 4} - SMALL
        words = sorted(word for word in known if not net.senses(word, "a"))
        self._people = [word for word in words if net.is_a(word, "person")]
        self._things = [word for word in words if net.is_a(word, "artifact")]
        verbs = {
            number: [
                word
                for word in words
                if net.has_frame(word, number)
                and len(net.senses(word, "n")) <= len(net.senses(word, "v"))
            ]
            for number in (8, 9)
        }
        self._to_people, self._to_things = verbs[9], verbs[8]

    def act(self) -> tuple[str, str]:
        """Return a verb and a thing it may be done to."""
        return self._rng.choice(self._to_things), self._rng.choice(self._things)

    def person(self) -> str:
        """Return somebody."""
        return self._rng.choice(self._people)

    def thing(self) -> str:
        """Return something."""
        return self._rng.choice(self._things)

    def _noun(self, word: str) -> str:
        return f"{self._rng.choice(['the', 'the', 'the', 'our', 'a'])} {word}"

    def draw(self) -> Said:
        """Return something that one does to another, or to a thing."""
        rng = self._rng
        to_people = rng.random() < 0.7
        who = self._noun(rng.choice(self._people))
        whom = self._noun(rng.choice(self._people if to_people else self._things))
        if rng.random() < 0.4:
            adjective = rng.choice(LISTS["adjectives"])
            whom = whom.replace(" ", f" {adjective} ", 1)
        return Said(
            who,
            rng.choice(self._to_people if to_people else self._to_things),
            whom,
            rng.randrange(len(TAILS)) if rng.random() < 0.35 else -1,
            rng.randrange(len(MODALS)) if rng.random() < 0.45 else -1,
            rng.choice(TENSES),
            rng.random() < 0.2,
        )

    def changed(self, said: Said) -> tuple[str, Said] | None:
        """Return a kind of opposition, and what is opposed to `said` in it."""
        rng = self._rng
        kinds = ["role", "role", "negation", "antonym", "other"]
        kinds += ["modal", "modal"] if said.modal >= 0 else ["modal"]
        kinds += ["number", "number"] if said.tail >= 0 else []
        kind = rng.choice(kinds)
        if kind == "role":
            return kind, said._replace(who=said.whom, whom=said.who)
        if kind == "negation":
            return kind, said._replace(denied=not said.denied)
        if kind == "modal":
            others = [n for n in range(-1, len(MODALS)) if n != said.modal]
            return kind, said._replace(modal=rng.choice(others))
        if kind == "number":
            return kind, said._replace(
                tail=rng.choice([n for n in range(len(TAILS)) if n != said.tail])
            )
        if kind == "other":
            if rng.random() < 0.5:
                return kind, said._replace(who=self._noun(rng.choice(self._people)))
            return kind, said._replace(verb=rng.choice(self._to_people))
        article, *rest = said.whom.split()
        for at, word in enumerate(rest):
            if found := OPPOSITE.get(word):
                return kind, said._replace(
                    whom=" ".join([article, *rest[:at], rng.choice(found), *rest[at + 1 :]])
                )
        found = self._lexicon.of(said.verb, "antonyms")
        return (kind, said._replace(verb=rng.choice(found))) if found else None

    def realised(self, said: Said) -> str:
        """Return a sentence that says it, one of several."""
        rng = self._rng
        who, whom = (self._called(noun) for noun in (said.who, said.whom))
        verb = said.verb
        if rng.random() < 0.3 and (others := self._lexicon.of(verb, "synonyms")):
            verb = rng.choice(others)
        # "Refuses to be called" says who refuses: in the passive it would be somebody else.
        form = rng.random() * (0.5 if said.modal in WILLED else 1)
        if form < 0.5:
            text = f"{who} {self._acts(said, verb)} {whom}"
        elif form < 0.85:
            text = f"{whom} {self._acts(said, verb, passive=True)} by {who}"
        elif form < 0.93:
            text = f"it is {who} that {self._acts(said, verb)} {whom}"
        else:
            text = f"{whom} is what {who} {self._acts(said, verb)}"
        if said.denied and said.modal >= 0:
            text = f"{rng.choice(LISTS['denials'])} {text}"
        if said.tail >= 0:
            tail = rng.choice(TAILS[said.tail])
            text = f"{text} {tail}" if rng.random() < 0.8 else f"{tail}, {text}"
        return text

    def _called(self, noun: str) -> str:
        article, *rest = noun.split()
        others = self._lexicon.of(rest[-1], "synonyms")
        if others and self._rng.random() < 0.35:
            rest[-1] = self._rng.choice(others)
        if article == "a":
            article = "an" if rest[0][0] in "aeiou" else "a"
        return " ".join([article, *rest])

    def _acts(self, said: Said, verb: str, *, passive: bool = False) -> str:
        rng = self._rng
        done = f"be {inflect(verb, 'VBN')}" if passive else verb
        if said.modal >= 0:
            return f"{rng.choice(MODALS[said.modal])} {done}"
        if said.denied:
            if rng.random() < 0.25 and not passive:
                return f"never {inflect(verb, 'VBZ' if said.tense == 'present' else 'VBD')}"
            if passive and said.tense != "future":
                be = "was" if said.tense == "past" else "is"
                return f"{be}{rng.choice([' not', 'n’t', ' never'])} {inflect(verb, 'VBN')}"
            return f"{TOGETHER[said.tense]} {done}"
        if said.tense == "future":
            return f"{rng.choice(['will', 'is going to'])} {done}"
        if passive:
            return f"{'was' if said.tense == 'past' else 'is'} {inflect(verb, 'VBN')}"
        return inflect(verb, "VBD" if said.tense == "past" else "VBZ")

    def compared(self) -> tuple[str, str, str, str]:
        """Return a kind, a sentence of two people or things, what says it, and what does not."""
        rng = self._rng
        names = self._people if rng.random() < 0.6 else self._things
        one, other = (self._noun(word) for word in rng.sample(names, 2))
        there, back = rng.choice(LISTS["converses"])
        thing = self._noun(rng.choice(self._things))

        def filled(template: str, a: str, b: str) -> str:
            return template.replace("{a}", a).replace("{b}", b).replace("{x}", thing)

        forms = {True: [(there, one, other), (back, other, one)]}
        forms[False] = [(there, other, one), (back, one, other)]
        if rng.random() < 0.5:
            forms = {not right: said for right, said in forms.items()}
        query = filled(*rng.choice(forms[True]))
        return "role", query, filled(*rng.choice(forms[True])), filled(*rng.choice(forms[False]))

    def described(self) -> tuple[str, str, str, str]:
        """Return a kind, a sentence of how somebody or something is, what says it and what not."""
        rng = self._rng
        noun = self._noun(rng.choice(self._people + self._things))
        quality = rng.choice(LISTS["adjectives"])
        against = rng.choice(OPPOSITE[quality])
        right = [quality, quality, f"not {against}", f"hardly {against}", f"very {quality}"]
        right += self._lexicon.of(quality, "synonyms")
        wrong = [against, against, f"not {quality}", f"hardly {quality}", f"very {against}"]
        wrong += self._lexicon.of(against, "synonyms")
        kind = "antonym"
        if rng.random() < 0.3:
            quality, right, wrong = f"not {quality}", wrong, right
        be = rng.choice(["is", "was", "seems", "has been", "will be"])
        forms = ["{a} {be} {q}", "{a} {be} {q}", "I think that {a} {be} {q}", "{a} {be} {q} now"]

        def said(one: str) -> str:
            text = rng.choice(forms).replace("{a}", self._called(noun)).replace("{be}", be)
            return text.replace("{q}", one)

        return kind, said(quality), said(rng.choice(right)), said(rng.choice(wrong))

    def row(self) -> tuple[str, str, str, str] | None:
        """Return a kind, a query, what says it, and what does not."""
        drawn = self._rng.random()
        if drawn < 0.4:
            return self.compared() if drawn < 0.22 else self.described()
        said = self.draw()
        found = self.changed(said)
        if found is None:
            return None
        kind, against = found
        return kind, self.realised(said), self.realised(said), self.realised(against)


def frequencies(texts: Sequence[str]) -> Counter[str]:
    """Return how often words occur."""
    return Counter(word for text in texts for word in re.findall(r"[a-z]+", text.lower()))

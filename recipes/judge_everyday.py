"""Everyday sentences that are denied, or only look so: what a judge must not confuse.

A family says a thing in several ways and denies it in several, so that two sentences say the same
or the opposite whatever their words: "zero fees" is "no fees", "is not closed" is "is open". What
fills its places are words of running text.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from judge_sentences import Sentences
from msgspec import toml
from opposites import LISTS, inflect

Pair = tuple[str, str, str]
"""Two texts, and a kind of opposition or "same"."""
SAID: dict[str, Any] = toml.decode(Path(__file__).with_suffix(".toml").read_bytes())
CASUAL = 0.4
"""How often an apostrophe is left out."""


class Everyday:
    """Pairs of everyday sentences."""

    def __init__(self, sentences: Sentences, rng: random.Random) -> None:
        """Take words from `sentences`."""
        self._rng = rng
        self._words = sentences
        self.families: dict[str, Callable[[], Pair]] = {
            "wants": self._wants,
            "states": self._states,
            "given": self._given,
            "has": self._has,
            "duties": self._duties,
            "chances": self._chances,
            "qualities": self._qualities,
            "deeds": self._deeds,
            "topics": self._topics,
            "numbers": self._numbers,
            "dates": self._dates,
        }

    def pair(self, without: Sequence[str] = ()) -> tuple[str, Pair]:
        """Return a family and a pair of it, of no family of `without`."""
        rng = self._rng
        family = rng.choice([name for name in self.families if name not in without])
        one, other, kind = self.families[family]()
        if rng.random() < 0.5:
            one, other = other, one
        if rng.random() < 0.35:
            other = rng.choice(SAID["frames"]).replace("*", other)
        if rng.random() < 0.1:
            one = rng.choice(SAID["frames"]).replace("*", one)
        return family, (self._typed(one), self._typed(other), kind)

    def _typed(self, text: str) -> str:
        rng = self._rng
        if rng.random() < CASUAL:
            text = text.replace("n't", "nt").replace("I'm", "im")
        elif rng.random() < 0.3:
            text = text.replace("'", "’")
        text = " ".join(text.split())
        drawn = rng.random()
        if drawn < 0.3:
            return text.lower()
        if drawn < 0.6:
            return text[:1].upper() + text[1:] + rng.choice([".", "", "!", "."])
        return text

    def _sides(self, yes: Sequence[str], no: Sequence[str], kind: str) -> Pair:
        """Return two that say the same, or one of each side."""
        rng = self._rng
        if rng.random() < 0.5:
            return rng.choice(yes), rng.choice(no), kind
        side = yes if rng.random() < 0.5 else no
        return rng.choice(side), rng.choice(side), "same"

    def _act(self) -> tuple[str, str]:
        """Return a verb and its object."""
        rng = self._rng
        if rng.random() < 0.6:
            verb, _, thing = rng.choice(SAID["acts"]).partition(" ")
            return verb, thing
        verb, thing = self._words.act()
        return verb, f"{rng.choice(['the', 'the', 'a', 'my', 'this'])} {thing}"

    def _who(self) -> tuple[str, bool]:
        """Return who does something, and whether its verbs are in the third person singular."""
        rng = self._rng
        if rng.random() < 0.6:
            who = rng.choice(["I", "I", "I", "we", "they", "you", "he", "she"])
            return who, who in ("he", "she")
        return f"the {self._words.person()}", True

    def _both(self, key: str, **given: str) -> tuple[list[str], list[str]]:
        """Return what a list of sides says and denies, its places filled."""

        def filled(one: str) -> str:
            for name, said in given.items():
                one = one.replace(f"<{name}>", said)
            return one

        yes, no = SAID[key]
        return [filled(one) for one in yes], [filled(one) for one in no]

    def _forms(self, who: str, third: bool, verb: str, thing: str) -> dict[str, str]:
        return {
            "s": who,
            "es": "es" if third else "",
            "third": "s" if third else "",
            "do": "does" if third else "do",
            "have": "has" if third else "have",
            "be": "is" if third else "am" if who == "I" else "are",
            "was": "was" if third or who == "I" else "were",
            "v": verb,
            "vs": inflect(verb, "VBZ") if third else verb,
            "ved": inflect(verb, "VBD"),
            "vn": inflect(verb, "VBN"),
            "ving": inflect(verb, "VBG"),
            "o": thing,
        }

    def _wants(self) -> Pair:
        forms = self._forms(*self._who(), *self._act())
        if self._rng.random() < 0.3:
            forms["o"] = self._plural()
            return self._sides(*self._both("wants_things", **forms), "negation")
        return self._sides(*self._both("wants", **forms), "negation")

    def _plural(self) -> str:
        rng = self._rng
        if rng.random() < 0.5:
            return str(rng.choice(SAID["things"]))
        return inflect(self._words.thing(), "NNS")

    def _states(self) -> Pair:
        rng = self._rng
        group = rng.choice(SAID["states"])
        named = rng.random() < 0.5 and group[2:]
        thing = rng.choice(group[2]) if named else self._words.thing()
        begin = f"{rng.choice(['the', 'the', 'my', 'our', 'this'])} {thing}"
        yes, no = ([one.replace("*", begin) if "*" in one else f"{begin} {one}" for one in side]
                   for side in group[:2])  # fmt: skip
        return self._sides(yes, no, rng.choice(["negation", "negation", "antonym"]))

    def _given(self) -> Pair:
        verb, _ = self._act()
        forms = self._forms("we", False, verb, "")
        forms["ns"] = self._plural()
        return self._sides(*self._both("given", **forms), "negation")

    def _has(self) -> Pair:
        forms = self._forms(*self._who(), "have", "")
        forms["ns"] = self._plural()
        key = self._rng.choice(["exists", "owns", "with"])
        return self._sides(*self._both(key, **forms), "negation")

    def _duties(self) -> Pair:
        rng = self._rng
        forms = self._forms(*self._who(), *self._act())
        if rng.random() < 0.35:
            forms["ns"] = self._plural()
            yes, no = self._both("required", **forms)
            return self._sides(yes, no, "modal")
        duty, free = self._both("duty", **forms)
        leave, banned = self._both("leave", **forms)
        if rng.random() < 0.5:
            side = rng.choice([duty, duty, free, leave, banned])
            if side is free and rng.random() < 0.3:
                return rng.choice(free), rng.choice(leave), "same"
            return rng.choice(side), rng.choice(side), "same"
        one, other, kind = rng.choice([
            (duty, free, "modal"), (duty, banned, "negation"), (leave, banned, "negation"),
            (duty, leave, "modal"), (free, banned, "modal"),
        ])  # fmt: skip
        return rng.choice(one), rng.choice(other), kind

    def _chances(self) -> Pair:
        rng = self._rng
        forms = self._forms(*self._who(), *self._act())
        maybe, sure = self._both("maybe", **forms)
        yes, no = self._both("ability", **forms)
        must, _ = self._both("duty", **forms)
        wont = self._both("wont", **forms)[1]
        drawn = rng.random()
        if drawn < 0.45:
            return self._sides(yes, no, "negation")
        if drawn < 0.7:
            side = rng.choice([maybe, sure, wont])
            return rng.choice(side), rng.choice(side), "same"
        one, other, kind = rng.choice([
            (maybe, sure, "modal"), (maybe, wont, "negation"), (sure, wont, "negation"),
            (maybe, must, "modal"),
        ])  # fmt: skip
        return rng.choice(one), rng.choice(other), kind

    def _qualities(self) -> Pair:
        rng = self._rng
        good, bad = rng.choice(SAID["qualities"])
        if rng.random() < 0.5:
            good, bad = bad, good
        noun = rng.choice(["it", "this", "that", f"the {self._words.thing()}"])
        yes, no = self._both("is", n=noun, a=good, b=bad)
        return self._sides(yes, no, rng.choice(["negation", "antonym"]))

    def _deeds(self) -> Pair:
        rng = self._rng
        forms = self._forms(*self._who(), *self._act())
        key = rng.choice(["did", "did", "remembered", "does", "succeeded", "asked"])
        return self._sides(*self._both(key, **forms), "negation")

    def _topics(self) -> Pair:
        rng = self._rng
        thing = self._words.thing() if rng.random() < 0.5 else rng.choice(SAID["topical"])
        drawn = rng.random()
        if drawn < 0.5:
            noun, verb = rng.choice(SAID["nominal"])
            forms = self._forms("the " + thing, True, verb, "")
            own = [f"{thing} {noun}", f"{noun} of the {thing}", f"{noun} of my {thing}"]
            said = [one for side in self._both("happened", n=thing, **forms) for one in side]
            return rng.choice(own), rng.choice(said), "same"
        yes, no = self._both("trouble", n=thing)
        if drawn < 0.65:
            return f"{thing} problems", rng.choice(no), "same"
        if drawn < 0.8:
            return f"no {thing} problems", rng.choice(no), "negation"
        if drawn < 0.9:
            return f"{thing} without problems", rng.choice(yes), "same"
        return self._sides(yes, no, "negation")

    def _numbers(self) -> Pair:
        rng = self._rng
        forms = rng.choice([self._count, self._money, self._share, self._bound, self._length])
        same, others = forms()
        if rng.random() < 0.5:
            return rng.choice(same), rng.choice(same), "same"
        return rng.choice(same), rng.choice(others), "number"

    def _number(self, most: int = 60) -> tuple[int, int]:
        rng = self._rng
        one = rng.randint(2, rng.choice([12, most]))
        other = rng.choice([one + 1, one + rng.randint(2, 30), one * 2, one * 10, max(one - 1, 1)])
        return one, other if other != one else one + 3

    def _count(self) -> tuple[list[str], list[str]]:
        one, other = self._number()
        noun = self._rng.choice([self._plural(), "people", "users", "times", "pages"])
        frame = self._rng.choice(["*", "there are *", "we have *", "for *", "I ordered *"])
        return tuple(
            [frame.replace("*", f"{said} {noun}") for said in _said(n)] for n in (one, other)
        )  # type: ignore[return-value]

    def _money(self) -> tuple[list[str], list[str]]:
        one, other = self._number(500)
        frame = self._rng.choice(["*", "it costs *", "the price is *", "a fee of *", "I paid *"])
        return tuple(
            [frame.replace("*", said) for said in
             (f"${n}", f"{n} dollars", f"{_said(n)[-1]} dollars", f"${n}.00", f"USD {n}")]
            for n in (one, other)
        )  # type: ignore[return-value]  # fmt: skip

    def _share(self) -> tuple[list[str], list[str]]:
        rng = self._rng
        noun = rng.choice(["users", "people", "cases", "customers", "time", self._plural()])
        one, other = rng.sample(SAID["shares"], 2)
        return [f"{said} of the {noun}" for said in one], [
            f"{said} of the {noun}" for said in other
        ]

    def _bound(self) -> tuple[list[str], list[str]]:
        rng = self._rng
        one, _ = self._number()
        noun = self._plural()
        low, high = LISTS["bounds"][0], LISTS["bounds"][1]
        over, under = LISTS["bounds"][2], LISTS["bounds"][3]
        same, against = rng.choice([(low, high), (high, low), (over, under), (under, over)])
        return tuple(
            [f"{said} {rng.choice(_said(one))} {noun}" for said in side] for side in (same, against)
        )  # type: ignore[return-value]

    def _length(self) -> tuple[list[str], list[str]]:
        rng = self._rng
        one, other = rng.sample(SAID["lengths"], 2)
        frame = rng.choice(["within *", "for *", "in *", "it takes *", "after *", "* ago"])
        return [frame.replace("*", said) for said in one], [frame.replace("*", s) for s in other]

    def _dates(self) -> Pair:
        rng = self._rng
        drawn = rng.random()
        if drawn < 0.3:
            hours = [(rng.randint(1, 23), rng.choice(["00", "00", "30", "15"])) for _ in range(2)]
            if rng.random() < 0.3:
                hours[1] = ((hours[0][0] + 12) % 24, hours[0][1])
            same, others = (_clocks(*one) for one in hours)
            frame = rng.choice(["at *", "*", "until *", "we meet at *", "it opens at *"])
        else:
            days = [[rng.randint(1, 28), rng.randrange(12), 0] for _ in range(2)]
            if rng.random() < 0.5:
                days[1][1] = days[0][1]
            elif rng.random() < 0.5:
                days[1][0] = days[0][0]
            if rng.random() < 0.3:
                days[0][2], days[1][2] = (rng.randint(1990, 2027) for _ in range(2))
                if rng.random() < 0.3:
                    days[1] = [*days[0][:2], days[1][2]]
            same, others = (_days(*one) for one in days)
            frame = rng.choice(["on *", "due on *", "it begins on *", "by *", "*", "since *"])
            if rng.random() < 0.2:
                one, two = rng.sample(LISTS["weekdays"], 2)
                same = [one.title(), f"{one.title()}s", f"a {one.title()}", one]
                others = [two.title(), two, f"{two.title()} morning"]
        same, others = ([frame.replace("*", one) for one in some] for some in (same, others))
        if rng.random() < 0.5 or set(same) & set(others):
            return rng.choice(same), rng.choice(same), "same"
        return rng.choice(same), rng.choice(others), "number"


def _said(number: int) -> list[str]:
    small = LISTS["cardinals"]
    if number < len(small):
        return [str(number), small[number]]
    if number < 100:
        tens = LISTS["tens"][number // 10 - 3] if number >= 30 else "twenty"
        return [str(number), f"{tens}-{small[number % 10]}" if number % 10 else tens]
    return [str(number)]


def _clocks(hour: int, minute: str) -> list[str]:
    half = "am" if hour < 12 else "pm"
    short = (hour - 1) % 12 + 1
    plain = f"{short}{'' if minute == '00' else ':' + minute}"
    part = "in the morning" if hour < 12 else "in the afternoon" if hour < 18 else "in the evening"
    return [f"{hour:02}:{minute}", f"{plain} {half}", f"{plain}{half}", f"{plain} {part}"]


def _days(day: int, month: int, year: int) -> list[str]:
    name = LISTS["months"][month - (month > 4)].title() if month != 4 else "May"
    end = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd"}.get(day, "th")
    tail = f" {year}" if year else ""
    found = [f"{day} {name}{tail}", f"{name} {day}{end}{tail}", f"the {day}{end} of {name}{tail}",
             f"{name[:3]} {day}{tail}"]  # fmt: skip
    if year:
        found += [f"{year}-{month + 1:02}-{day:02}", f"{day:02}.{month + 1:02}.{year}"]
    return found

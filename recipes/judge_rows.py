"""Make what a judge learns opposition from: a text, another that says it, and one that does not.

    python recipes/judge_rows.py opposites.jsonl --data DATA --wordnet /usr/share/wordnet

A row has a query, a positive and a negative. The negative is changed by a rule of one of the kinds:
negation, antonym, number, role, modal, other (another thing of the same sort). The positive is
changed by a rule that keeps the meaning, so that neither a small change nor a large one gives the
opposite away. Paraphrases to begin with are pairs that people found alike (STS-B), what a sentence
entails (SNLI), PPDB's phrases, running text, which is its own, and its neighbours: sentences that
the packaged encoder finds near without being told why, as a search finds them. WordNet's files are
those of Debian's wordnet-base; inflecting its words needs `pip install lemminflect`.

Of a positive and a negative, ``before`` and ``after`` are words of the same sentence around the
span: an opposite's change may be there, as in "does not [want to cancel]".
"""

from __future__ import annotations

import csv
import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import numpy as np
from judge_sentences import Sentences, frequencies
from opposites import (
    CONTRACTED,
    OPPOSITE,
    SMALL,
    TAILS,
    Rule,
    contracted,
    exchanged,
    lower,
    modalised,
    negate,
    negating,
    number,
    other_modal,
    other_side,
    padded,
    respelled,
    same_modal,
    swap,
    turned,
    voiced,
)
from wordnet import Lexicon

import slice_os
from slice_os.corpus.data_files import field, read_rows
from slice_os.lab.train.sampling import read_pairs

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
ALIKE = 0.84
"""From this likeness on, a pair of STS-B says the same."""
LONG = 16
"""Words of a text at most."""
NEAR = (0.82, 0.95)
"""Degrees of neighbours."""
DENYING = {"not", "no", "never", "without", "nor", "none", "nothing", "nobody", "cannot"}


def phrases_of(path: Path) -> Iterator[tuple[str, str]]:
    """Yield PPDB's pairs."""
    for line in path.read_text(encoding="utf-8").splitlines():
        first, second, _ = line.split("|||")
        yield first, second


FIRST = {"modal": 4.0, "number": 3.0, "role": 3.0, "negation": 1.5, "antonym": 1.0, "other": 0.3}


class Maker:
    """Rows of a query, what says it and what does not."""

    def __init__(self, lexicon: Lexicon, said_alike: dict[str, list[str]], seed: int) -> None:
        self._rng = random.Random(seed)
        antonym = lexicon.rule("antonyms")
        self.opposing: dict[str, list[Rule]] = {
            "negation": [negate, negate, negating],
            "antonym": [antonym, antonym, swap(OPPOSITE)],
            "number": [number],
            "role": [exchanged, exchanged, other_side],
            "modal": [other_modal],
            "other": [lexicon.rule("siblings")],
        }
        synonym = lexicon.rule("synonyms")
        alike = swap(said_alike, 4)
        self.keeping: list[Rule] = [
            synonym, synonym, alike, alike, alike, padded, contracted, same_modal, same_modal,
            respelled, respelled, voiced, voiced, voiced, turned,
            lambda words, rng: self._not_opposite(words, rng, antonym),
        ]  # fmt: skip

    @staticmethod
    def _not_opposite(words: list[str], rng: random.Random, antonym: Rule) -> list[str] | None:
        """Negate what an antonym says: "is open", "is not closed"."""
        if rng.random() < 0.7 or not any(word in ("is", "are", "was", "were") for word in words):
            return None
        changed = antonym(words, rng)
        return changed and negate(changed, rng)

    def kept(self, words: list[str], times: int) -> list[str]:
        """Return words that say the same, changed up to some times."""
        for _ in range(times):
            for rule in self._rng.sample(self.keeping, len(self.keeping)):
                if changed := rule(words, self._rng):
                    words = changed
                    break
        return words

    def row(self, query: str, said: str, around: Sequence[str]) -> dict[str, object] | None:
        """Return a row, or None where no rule applies."""
        rng = self._rng
        if rng.random() < 0.2:
            tail = rng.choice(TAILS)
            query, said = (f"{text.rstrip(' .?!,;')} {rng.choice(tail)}" for text in (query, said))
        elif query == said and rng.random() < 0.35 and (new := modalised(said.split(), rng)):
            query = said = " ".join(new)
        words = said.split()
        # Those that seldom apply are tried first.
        kinds = sorted(FIRST, key=lambda kind: rng.random() ** (1 / FIRST[kind]), reverse=True)
        for kind in kinds:
            rule = rng.choice(self.opposing[kind])
            base = self.kept(words, rng.choice((0, 0, 1, 2)))
            changed = rule(base, rng)
            if changed and lower(changed) != lower(base) and lower(changed) != lower(words):
                break
        else:
            return None
        if rng.random() < 0.3:
            changed = self.kept(changed, 1)
        positive = self.kept(words, rng.choice((0, 1, 1, 2)))
        if " ".join(lower(positive)) == " ".join(lower(query.split())) and rng.random() < 0.7:
            positive = self.kept(positive, 2)
        cut = rng.random() < 0.2
        row: dict[str, object] = {
            "kind": kind,
            "query": query,
            "positive": self._placed(positive, positive, around, cut),
            "negative": self._placed(changed, positive, around, cut),
        }
        if rng.random() < 0.15:  # ask with the words of the other, as a person might
            row["query"], row["positive"] = " ".join(positive), {"span": query}
        return row

    def made_row(
        self, kind: str, query: str, right: str, wrong: str, around: Sequence[str]
    ) -> dict[str, object]:
        """Return a row of sentences that were made of parts."""
        return {
            "source": "made",
            "kind": kind,
            "query": query,
            "positive": self._placed(right.split(), right.split(), around, False),
            "negative": self._placed(wrong.split(), right.split(), around, False),
        }

    def _placed(
        self, words: list[str], like: list[str], around: Sequence[str], cut: bool
    ) -> dict[str, str]:
        """Return a span with the words around it; where `cut`, its own beginning stands before."""
        rng = self._rng
        before: list[str] = []
        after: list[str] = []
        if around and rng.random() < 0.35:
            other = rng.choice(around).split()
            before, after = other[-rng.randint(0, 4) :], other[: rng.randint(0, 2)]
            before = before if rng.random() < 0.8 else []
        differ = next(
            (n for n, (a, b) in enumerate(zip(words, like, strict=False)) if a != b), len(like)
        )
        if cut and len(words) > 3:
            # What is left out of the span is still before it.
            at = min(differ + 1 if words != like else rng.randint(1, 2), 4, len(words) - 2)
            before, words = words[max(0, at - 4) : at], words[at:]
        elif rng.random() < 0.2 and len(words) > 4 and words == like:
            at = rng.randint(1, 2)
            words = words[at:] if rng.random() < 0.5 else words[:-at]
        placed = {"before": " ".join(before), "span": " ".join(words), "after": " ".join(after)}
        return {name: text for name, text in placed.items() if text}


PLAIN = re.compile(r"\W*(?:[A-Za-z][a-z']*[,]? ){2,}[^A-Z_/@#()]*$").match
"""Whether a clause is running text, and no heading, address or form."""


def sentences(path: Path, rng: random.Random, most: int) -> list[str]:
    """Return clauses of a corpus of running text, of 3 to `LONG` words."""
    texts = [
        json.loads(row)["text"] for row in path.read_text(encoding="utf-8").rstrip().split("\n")
    ]
    rng.shuffle(texts)
    found: list[str] = []
    for text in texts:
        parts = re.split(r"(?<=[.?!;:])\s+|\n+", text)
        found += [one.strip() for one in parts if 3 <= len(one.split()) <= LONG and PLAIN(one)][:40]
        if len(found) > 3 * most:
            break
    return rng.sample(found, min(most, len(found)))


def neighbours(texts: Sequence[str], lexicon: Lexicon, rng: random.Random) -> list[tuple[str, str]]:
    """Return pairs of texts that are near one another and differ in no way that a rule knows."""

    def opposed(one: set[str], other: set[str]) -> bool:
        if any((word in DENYING or word in CONTRACTED) for word in one ^ other):
            return True
        if one == other or any(re.search(r"\d", word) for word in one ^ other):
            return True
        against = {
            name
            for word in one - other
            for name in (*lexicon.of(word, "antonyms"), *OPPOSITE.get(word, ()))
        }
        return bool(against & other)

    with slice_os.load_encoder() as encoder:
        vectors = encoder.encode(texts)
    bags = [set(lower(text.split())) for text in texts]
    found = []
    for at in range(0, len(texts), 512):
        near = (1 + vectors[at : at + 512] @ vectors.T) / 2
        near[near > NEAR[1]] = 0
        best = np.argpartition(-near, 3, axis=1)[:, :3]
        for row, others in enumerate(best, at):
            for other in others:
                if near[row - at, other] >= NEAR[0] and not opposed(bags[row], bags[other]):
                    found.append((texts[row], texts[other]))
    rng.shuffle(found)
    return found


def intents(folder: Path, most: int, rng: random.Random) -> Iterator[dict[str, object]]:
    """Yield rows of what two people said for one end, and another for a different one."""
    for rows in utterances(folder):
        said: dict[str, list[str]] = {}
        having: dict[str, list[tuple[str, str]]] = {}
        for text, intent in rows:
            said.setdefault(intent, []).append(text)
            for word in set(lower(text.split())) - SMALL:
                having.setdefault(word, []).append((text, intent))
        for _ in range(most // 2):
            intent = rng.choice([*said])
            query, right = rng.sample(said[intent], 2)
            shared = sorted(set(lower(f"{query} {right}".split())) & having.keys())
            near = having[rng.choice(shared)] if shared else rows
            wrong, other = rng.choice(near if rng.random() < 0.7 else rows)
            if other == intent:
                continue
            if rng.random() < 0.4:
                query = re.sub(r"[_?]+", " ", intent).strip().lower()
            yield {
                "source": "intents",
                "kind": "intent",
                "query": query,
                "positive": {"span": right},
                "negative": {"span": wrong},
            }


def utterances(folder: Path) -> Iterator[list[tuple[str, str]]]:
    """Yield what people said, and for which end; every third intent is left out, for measuring."""
    with (folder / "banking77-train.csv").open(encoding="utf-8", newline="") as stream:
        banking = [(row["text"].strip(), row["category"]) for row in csv.DictReader(stream)]
    clinc = json.loads((folder / "clinc150.json").read_text(encoding="utf-8"))["train"]
    for rows in (banking, [(text, intent) for text, intent in clinc]):
        names = sorted({intent for _, intent in rows})
        learnt = {intent for n, intent in enumerate(names) if n % 3}
        yield [(text, intent) for text, intent in rows if intent in learnt]


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--data", required=True, type=FOLDER, help="The folder of texts.")
@click.option("--wordnet", required=True, type=FOLDER, help="WordNet's files.")
@click.option("--rows", default=30_000, show_default=True, help="Rows of each kind of text.")
@click.option("--seed", default=0, show_default=True)
def main(out: Path, data: Path, wordnet: Path, rows: int, seed: int) -> None:
    """Write OUT, a .jsonl of rows."""
    rng = random.Random(seed)
    ppdb = list(phrases_of(data / "phrases/ppdb-train.txt"))
    alike: dict[str, list[str]] = {}
    for one, other in ppdb:
        denying = [set(text.split()) & {"not", "no"} for text in (one, other)]
        if len(one.split()) > 1 and denying[0] == denying[1]:
            alike.setdefault(one, []).append(other)
            alike.setdefault(other, []).append(one)
    running = [
        text
        for path in sorted((data / "text").glob("*.jsonl"))
        for text in sentences(path, rng, rows // 4)
    ]
    frequent = frequencies(running)
    lexicon = Lexicon(wordnet, frequent)
    maker = Maker(lexicon, alike, seed)
    made = Sentences(lexicon, frequent, rng)
    rated = [
        (pair.first, pair.second)
        for pair in read_pairs(data / "sts/stsb-train.tsv")
        if pair.likeness >= ALIKE
    ]
    entailed: list[tuple[str, str]] = []
    contradicted: dict[str, list[str]] = {}
    follows: dict[str, list[str]] = {}
    for name in ("validation", "test"):
        path = data / f"nli/snli-{name}.tsv"
        for line, values in read_rows(path):
            premise, text, label = (
                field(path, line, values, (key,)) for key in ("premise", "hypothesis", "label")
            )
            if label == "0":
                entailed.append((text, premise))
                follows.setdefault(premise, []).append(text)
            elif label == "2":
                contradicted.setdefault(premise, []).append(text)
    sources: dict[str, list[tuple[str, str]]] = {
        "rated": rated,
        "entailed": [pair for pair in entailed if len(pair[1].split()) <= LONG],
        "phrases": ppdb,
        "running": [(text, text) for text in running],
        "neighbours": neighbours(
            [
                *rng.sample(running, min(len(running), 2 * rows)),
                *{text for some in utterances(data / "intents") for text, _ in some},
            ],
            lexicon,
            rng,
        ),
    }
    count = 0
    with out.open("w", encoding="utf-8") as stream:

        def write(row: dict[str, object]) -> None:
            stream.write(json.dumps(row, ensure_ascii=False) + "\n")

        for source, pairs in sources.items():
            wanted = {"rated": rows // 2, "running": 2 * rows, "neighbours": 2 * rows}.get(
                source, rows
            )
            for _ in range(wanted):
                query, said = rng.choice(pairs)
                if rng.random() < 0.5:
                    query, said = said, query
                if row := maker.row(query, said, running):
                    write({"source": source, **row})
                    count += 1
        for _ in range(2 * rows):
            if drawn := made.row():
                write(maker.made_row(*drawn, running))
                count += 1
        for premise, others in contradicted.items():
            for text, right in zip(others, follows.get(premise, ()), strict=False):
                write(
                    {
                        "source": "contradicted",
                        "kind": "contradiction",
                        "query": premise,
                        "positive": {"span": right},
                        "negative": {"span": text},
                    }
                )
                count += 1
        for row in intents(data / "intents", rows, rng):
            write(row)
            count += 1
    click.echo(f"{count} rows in {out}.")


if __name__ == "__main__":
    main()

r"""Make what a judge learns: pairs of texts, and whether one says the opposite of the other.

    python recipes/judge_rows.py judge-rows.jsonl --data DATA --wordnet /usr/share/wordnet
    python recipes/judge_pairs.py judge-rows.jsonl judge-pairs.jsonl --data DATA \
      --wordnet /usr/share/wordnet

A line has a query, a span with the words of its sentence around it, and in ``said`` the words one
of which is right: "same", a kind of opposition, or "unrelated". Pairs are those of the rows, of
DATA/opposition and of NLI, people's ratings (STS-B), what people said for one end and for another
(two thirds of the intents), and everyday sentences (`judge_everyday.py`). Of cannot-antonyms a
tenth is left out, for measuring. A span is often a part of its clause, so that what denies it
stands outside of it.
"""

from __future__ import annotations

import csv
import json
import random
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from judge_everyday import Everyday
from judge_rows import FOLDER, sentences, utterances
from judge_sentences import Sentences, frequencies
from wordnet import Lexicon

from slice_os.encoders.judge import KINDS, OPPOSED
from slice_os.lab.train.sampling import read_pairs

Said = tuple[str, str, Sequence[str]]
ANY = list(OPPOSED)
COMPATIBLE = ["same", "unrelated"]
NLI = {"contradiction": ANY, "2": [*ANY, "unrelated"], "opposite": ANY, "same": ["same"],
       "entailment": ["same"], "0": ["same"], "neutral": COMPATIBLE, "1": COMPATIBLE}  # fmt: skip
DENYING = re.compile(r"\b(?:no|not|never|without|nobody|nothing|none|cannot|neither)\b|n['’]?t\b")
JOINS = ["and", "but", "because", "so", "while", ",", ", and", ", but", "although", ";", "that"]
LONGEST = 14
"""Words of a text at most."""
SHARE = {
    "cannot-antonyms": 1.5,
    "cannot-facts": 0.5,
    "breaking-nli": 0.7,
    "conj-nli": 0.3,
    "med": 0.4,
    "scone": 0.6,
    "rated": 6,
    "intents": 0.8,
}
"""How often a source's pairs are taken, if not once: how much they are like what is searched."""
HELD_BACK = 10
"""Of cannot-antonyms every so manieth sentence is left out."""


def held_back(sentence: str) -> bool:
    """Tell whether a sentence of cannot-antonyms is for measuring."""
    return zlib.crc32(sentence.lower().encode()) % HELD_BACK == 0


def opposition(folder: Path) -> Iterator[tuple[str, Said]]:
    """Yield the pairs of the tables of opposition, with their table's name."""
    for path in sorted(folder.glob("*.tsv")):
        if path.stem.endswith("dev"):
            continue
        with path.open(encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE):
                one, other = row["sentence1"], row["sentence2"]
                if path.stem == "cannot-antonyms" and (held_back(one) or held_back(other)):
                    continue
                said = NLI[row["label"]]
                if said is ANY and bool(DENYING.search(one.lower())) != bool(
                    DENYING.search(other.lower())
                ):
                    said = ["negation"]
                yield path.stem, (one, other, said)


def inference(folder: Path) -> Iterator[Said]:
    """Yield SNLI's pairs."""
    for path in sorted(folder.glob("snli-*.tsv")):
        with path.open(encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE):
                if row["label"] in NLI:
                    yield row["premise"], row["hypothesis"], NLI[row["label"]]


def rated(path: Path) -> Iterator[Said]:
    """Yield pairs that people found alike, or not at all."""
    for pair in read_pairs(path):
        if pair.likeness >= 0.8:
            yield pair.first, pair.second, ["same"]
        elif pair.likeness >= 0.6:
            yield pair.first, pair.second, [*COMPATIBLE, "other", "number"]
        elif pair.likeness <= 0.2:
            yield pair.first, pair.second, ["unrelated"]


def intents(folder: Path, most: int, rng: random.Random) -> Iterator[Said]:
    """Yield what people said for one end, or for two; an end is named, or said otherwise."""
    for rows in utterances(folder):
        names = sorted({intent for _, intent in rows})
        said = {name: [text for text, intent in rows if intent == name] for name in names}
        for _ in range(most // 2):
            text, intent = rng.choice(rows)
            same = rng.random() < 0.45
            other = intent if same else rng.choice([name for name in names if name != intent])
            if rng.random() < 0.7:
                query = re.sub(r"[_?]+", " ", other).strip().lower()
            else:
                query = rng.choice(said[other])
            yield query, text, ["same"] if same else ["unrelated"]


class Placer:
    """Puts a text into a sentence, or takes a part of it for the span."""

    def __init__(self, running: Sequence[str], rng: random.Random) -> None:
        self._running = running
        self._rng = rng

    def placed(self, text: str) -> dict[str, str]:
        """Return the span and the words around it."""
        rng = self._rng
        words = text.split()
        before: list[str] = []
        after: list[str] = []
        drawn = rng.random()
        if drawn < 0.25 and len(words) > 3:
            length = rng.randint(max(2, len(words) // 3), len(words) - 1)
            at = rng.randint(0, len(words) - length)
            before, words, after = words[:at], words[at : at + length], words[at + length :]
        if 0.15 < drawn < 0.4:
            other = rng.choice(self._running).rstrip(" .?!,;:").split()
            join = rng.choice(JOINS).split()
            if rng.random() < 0.6 and not before:
                before = [*other, *join]
            elif not after:
                after = [*join, *other]
        found = {
            "span": " ".join(words),
            "before": " ".join(before[-6:]),
            "after": " ".join(after[:4]),
        }
        return {name: said for name, said in found.items() if said}


@click.command()
@click.argument("rows", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--data", required=True, type=FOLDER, help="The folder of texts.")
@click.option("--wordnet", required=True, type=FOLDER, help="WordNet's files.")
@click.option("--everyday", default=80_000, show_default=True, help="Everyday pairs.")
@click.option("--made", default=36_000, show_default=True, help="Rows of ROWS that are taken.")
@click.option("--intents", "ends", default=24_000, show_default=True, help="Pairs of intents.")
@click.option("--without", multiple=True, help="Families of everyday pairs that are left out.")
@click.option("--seed", default=0, show_default=True)
def main(
    rows: Path,
    out: Path,
    data: Path,
    wordnet: Path,
    everyday: int,
    made: int,
    ends: int,
    without: tuple[str, ...],
    seed: int,
) -> None:
    """Write OUT, a .jsonl of pairs, from ROWS."""
    rng = random.Random(seed)
    running = [
        text
        for path in sorted((data / "text").glob("*.jsonl"))
        for text in sentences(path, rng, 4000)
    ]
    placer = Placer(running, rng)
    count = 0
    with out.open("w", encoding="utf-8") as stream:

        def write(source: str, query: str, placed: dict[str, str], said: Sequence[str]) -> None:
            nonlocal count
            if max(len(query.split()), len(placed["span"].split())) > LONGEST:
                return
            row = {"source": source, "query": query, "placed": placed, "said": list(said)}
            stream.write(json.dumps(row, ensure_ascii=False) + "\n")
            count += 1

        def place(source: str, pair: Said) -> None:
            one, other, said = pair
            share = SHARE.get(source, 1)
            if source == "cannot-antonyms" and said == ["same"]:
                share *= 2
            for _ in range(int(share + rng.random())):
                if rng.random() < 0.5 and source != "intents":
                    one, other = other, one
                write(source, one, placer.placed(other), said)

        for source, pair in opposition(data / "opposition"):
            place(source, pair)
        for pair in inference(data / "nli"):
            place("snli", pair)
        for pair in rated(data / "sts/stsb-train.tsv"):
            place("rated", pair)
        for pair in intents(data / "intents", ends, rng):
            place("intents", pair)
        lines = rows.read_text(encoding="utf-8").splitlines()
        for line in rng.sample(lines, min(made, len(lines))):
            row = json.loads(line)
            kind = row["kind"]
            if kind == "intent":
                continue
            against = [kind] if kind in KINDS else [*ANY, "unrelated"]
            write("rows", row["query"], row["positive"], ["same"])
            write("rows", row["query"], row["negative"], against)
        frequent = frequencies(running)
        lexicon = Lexicon(wordnet, frequent)
        drawn = Everyday(Sentences(lexicon, frequent, rng), rng)
        for _ in range(everyday):
            family, (one, other, kind) = drawn.pair(without)
            place(f"everyday {family}", (one, other, [kind]))
    click.echo(f"{count} pairs in {out}.")


if __name__ == "__main__":
    main()

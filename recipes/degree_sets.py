"""Make sets for `slice-os evaluate degrees` from intents: a phrase, and utterances in passages.

    python recipes/degree_sets.py banking77-test.csv banking.jsonl
    python recipes/degree_sets.py clinc150.json clinc.jsonl

A phrase is an intent's name in words ("card arrival"). A passage is an utterance among one to three
of other intents; it is right for its own intent, and wrong for others that it says nothing of: for
each right pair nine wrong ones, of phrases that occur.
"""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

import click

OTHERS = (1, 3)
WRONG = 9


@click.command()
@click.argument("intents", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--passages", default=400, show_default=True, help="How many passages.")
@click.option("--seed", default=0, show_default=True)
def main(intents: Path, out: Path, passages: int, seed: int) -> None:
    """Write OUT, a .jsonl, from INTENTS: a .csv with text and category, or CLINC150's .json."""
    rows = _read(intents)
    rng = random.Random(seed)
    names = sorted({intent for _, intent in rows})
    with out.open("w", encoding="utf-8") as stream:
        for text, intent in rng.sample(rows, min(passages, len(rows))):
            others = [row for row in rng.sample(rows, 20) if row[1] != intent]
            said = [(text, intent), *others[: rng.randint(*OTHERS)]]
            rng.shuffle(said)
            passage = " ".join(_sentence(one) for one, _ in said)
            absent = [name for name in names if name not in {own for _, own in said}]
            asked = [(intent, True), *((name, False) for name in rng.sample(absent, WRONG))]
            for name, right in asked:
                row = {
                    "query": _words(name),
                    "passage": passage,
                    "correct": "yes" if right else "no",
                }
                stream.write(json.dumps(row, ensure_ascii=False) + "\n")


def _read(path: Path) -> list[tuple[str, str]]:
    """Return texts and their intents; of CLINC150 those of its test split that have one."""
    if path.suffix == ".json":
        return [(text, intent) for text, intent in json.loads(path.read_text("utf-8"))["test"]]
    with path.open(encoding="utf-8", newline="") as stream:
        return [(row["text"], row["category"]) for row in csv.DictReader(stream)]


def _words(intent: str) -> str:
    return intent.replace("_", " ").replace("?", "").strip().lower()


def _sentence(text: str) -> str:
    """Return a text with an end, so that passages are not told apart by their punctuation."""
    plain = " ".join(text.split())
    return plain if plain[-1] in ".?!" else f"{plain}."


if __name__ == "__main__":
    main()

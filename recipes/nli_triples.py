"""Make triples for SLICE's loss from NLI's labels: what a sentence entails, what contradicts it.

    python recipes/nli_triples.py triples.tsv snli-validation.tsv snli-test.tsv

A triple is a premise, a passage that says what it entails and one that says what contradicts it,
each among one to three sentences of other premises: the form of a recipe's [slice].
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import click
import numpy as np

from slice_os.corpus.data_files import field, read_rows
from slice_os.errors import SliceOSError
from slice_os.lab.train.sampling import FILLERS, place

ENTAILMENT, CONTRADICTION = "0", "2"


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
def main(out: Path, files: tuple[Path, ...]) -> None:
    """Write OUT, a .tsv of triples, from FILES with the columns premise, hypothesis and label."""
    said: dict[tuple[str, str], list[str]] = defaultdict(list)
    try:
        for path in files:
            for line, values in read_rows(path):
                premise, label, hypothesis = (
                    field(path, line, values, (name,))
                    for name in ("premise", "label", "hypothesis")
                )
                said[premise, label].append(hypothesis)
    except SliceOSError as exc:
        raise click.ClickException(str(exc)) from exc
    rng = np.random.default_rng(0)
    others = sorted({text for texts in said.values() for text in texts})

    def passage(text: str) -> str:
        count = int(rng.integers(FILLERS[0], FILLERS[1] + 1))
        return place(rng, text, rng.choice(others, count).tolist())

    lines = [
        f"{premise}\t{passage(entailed)}\t{passage(contradicting)}\n"
        for premise, label in sorted(said)
        if label == ENTAILMENT
        for entailed, contradicting in zip(
            said[premise, ENTAILMENT], said.get((premise, CONTRADICTION), ()), strict=False
        )
    ]
    out.write_text("".join(rng.permutation(lines)), encoding="utf-8")
    click.echo(f"{len(lines)} triples in {out}.")


if __name__ == "__main__":
    main()

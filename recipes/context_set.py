"""Make a phrase-in-context set from sentence pairs, for `slice-os evaluate context`.

    python recipes/context_set.py stsb-dev.tsv context.jsonl
    python recipes/context_set.py stsb-dev.tsv long.jsonl --others 6 10

Each pair's second sentence is put among sentences of other pairs that share few words with it, as
the training room measures (slice_os.lab.train.checkpoints): one to three unless told. It needs no
language model, and is easier than passages that one writes around the sentence; the more other
sentences, the harder.
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from slice_os.lab.train.checkpoints import DevelopmentSet
from slice_os.lab.train.sampling import FILLERS


@click.command()
@click.argument("pairs", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--rows", type=int, default=1024, show_default=True, help="How many pairs.")
@click.option(
    "--others",
    type=click.IntRange(min=0),
    nargs=2,
    default=FILLERS,
    show_default=True,
    metavar="FROM TO",
    help="How many other sentences a passage has.",
)
def main(pairs: Path, out: Path, rows: int, others: tuple[int, int]) -> None:
    """Write OUT, a .jsonl, from PAIRS, a .tsv with score, sentence1 and sentence2."""
    if others[0] > others[1]:
        raise click.UsageError(f"--others {others[0]} {others[1]} is upside down: swap them.")
    made = DevelopmentSet(pairs, rows, fillers=others)
    lines = [
        json.dumps(
            {
                "line": pair.first,
                "paraphrase": pair.second.strip(),
                "passage": passage,
                "goldsim": round(5 * pair.likeness, 4),
            }
        )
        for pair, passage in zip(made.pairs, made.passages, strict=True)
    ]
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

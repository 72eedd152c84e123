"""Write pairs of sentences with the degrees that a teacher gives them, for a recipe's [[pairs]].

    python recipes/silver.py TEACHER silver.tsv --pairs snli-test.tsv --mined stsb-train.tsv

Pairs that people judged are few; a teacher that was tuned on them judges many more of their kind
(Thakur et al. 2021, "Augmented SBERT"). A file of --pairs (.tsv, .csv or .jsonl) gives its pairs as
they stand; of one that is --mined, a .tsv as a recipe's [[pairs]] takes it, each sentence is paired
with some of its nearest.
"""

from __future__ import annotations

from pathlib import Path

import click
import numpy as np

import slice_os
from slice_os.corpus.data_files import field, read_rows
from slice_os.errors import SliceOSError
from slice_os.lab.train.recipe import Pairs
from slice_os.lab.train.sampling import read_pairs

COLUMNS = (("sentence1", "premise"), ("sentence2", "hypothesis"))
TAUGHT = Pairs("")
"""What [[pairs]] teaches by default, and so what a teacher's cosine means."""
NEAREST, TAKEN = 30, 2
"""Of so many nearest sentences so many are taken."""
PLACES = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("teacher", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--pairs", multiple=True, type=PLACES, help="Pairs to judge.")
@click.option("--mined", multiple=True, type=PLACES, help="Sentences to pair first.")
def main(teacher: Path, out: Path, pairs: tuple[Path, ...], mined: tuple[Path, ...]) -> None:
    """Write OUT, a .tsv, with what the encoder folder TEACHER says of pairs of sentences."""
    try:
        given = [
            (field(path, line, values, COLUMNS[0]), field(path, line, values, COLUMNS[1]))
            for path in pairs
            for line, values in read_rows(path)
        ]
        found = [pair for path in mined for pair in read_pairs(path)]
    except SliceOSError as exc:
        raise click.ClickException(str(exc)) from exc
    loose = sorted({text.strip() for pair in found for text in (pair.first, pair.second)})
    texts = sorted({*loose, *(text for pair in given for text in pair)})
    row = {text: n for n, text in enumerate(texts)}
    with slice_os.load_encoder(teacher) as encoder:
        vectors = encoder.encode(texts)
    given += [(texts[a], texts[b]) for a, b in neighbours([row[text] for text in loose], vectors)]
    least = 2 * TAUGHT.least - 1
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("w", encoding="utf-8", newline="") as file:
        file.write("score\tsentence1\tsentence2\n")
        for first, second in dict.fromkeys(given):
            cosine = float(vectors[row[first]] @ vectors[row[second]])
            likeness = min(max((cosine - least) / (1 - least), 0.0), 1.0)
            file.write(f"{TAUGHT.most * likeness:.3f}\t{first}\t{second}\n")


def neighbours(rows: list[int], vectors: np.ndarray) -> list[tuple[int, int]]:
    """Return pairs of some rows of `vectors`: each with a few of those that are nearest to it."""
    rng = np.random.default_rng(0)
    own = vectors[rows]
    pairs = []
    for row, vector in zip(rows, own, strict=True):
        cosines = own @ vector
        nearest = np.argpartition(-cosines, NEAREST)[:NEAREST]
        chosen = rng.choice([rows[n] for n in nearest if rows[n] != row], TAKEN, replace=False)
        pairs += [(row, int(other)) for other in chosen]
    return pairs


if __name__ == "__main__":
    main()

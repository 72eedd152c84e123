"""Documents ranked by shared sentences: time against the plain programme, MRR against baselines.

The MRR table needs `--data FOLDER` with sts/stsb-dev.tsv (score, sentence1, sentence2).
"""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import numpy as np

import slice_os
from benchmarks.timing import seconds
from slice_os.encoder import Encoder
from slice_os.ranking import (
    DegreeSet,
    SentenceRanker,
    degree_set,
    lcs_scores,
    mean_reciprocal_rank,
)
from slice_os.ranking.baselines import length_weights, weight_lengths
from slice_os.ranking.construction import DEGREES
from slice_os.ranking.stack import stack
from slice_os.ranking.subsequence import THRESHOLD
from slice_os.records import Float32

TITLE = "Ranking by shared sentences"
DOCUMENTS = 10_000
SENTENCES = 50
ASKED = 10
DIMENSION = 384
ROUNDS = 3
SEEDS = range(3)


def run(data: Path | None) -> list[str]:
    """Return the table of times and, with data, that of MRR."""
    lines = _times()
    file = data / "sts" / "stsb-dev.tsv" if data else None
    if file and file.exists():
        lines += ["", *_quality(file)]
    return lines


def _times() -> list[str]:
    query, vectors = _sentences()
    documents = stack(vectors, np.full(DOCUMENTS, SENTENCES))
    work = {
        "the plain dynamic programme, a cell at a time in Python": lambda: plain(query, vectors),
        "`lcs_scores`": lambda: lcs_scores(query, documents),
        "of which the cosines alone, one matrix product": lambda: query @ vectors.T,
    }
    np.testing.assert_allclose(lcs_scores(query, documents), plain(query, vectors), rtol=1e-4)
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(ROUNDS):
        for name, one in work.items():
            times[name].append(seconds(one))
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    slowest = max(medians.values())
    return [
        f"A query of {ASKED} sentences, {DOCUMENTS:,} documents of {SENTENCES}, {DIMENSION} "
        f"dimensions, encoded before; medians of {ROUNDS} rounds in turns, the same scores.",
        "",
        "| one query | time | of the plain programme's |",
        "|---|---:|---:|",
        *(
            f"| {name} | {1000 * taken:,.0f} ms | 1/{slowest / taken:.0f} |"
            for name, taken in medians.items()
        ),
    ]


def _sentences() -> tuple[Float32, Float32]:
    """Return a query's and the documents' unit rows: 500 meanings, said a little differently."""
    rng = np.random.default_rng(0)
    meanings = rng.standard_normal((500, DIMENSION), dtype=np.float32)
    count = ASKED + DOCUMENTS * SENTENCES
    rows = meanings[rng.integers(0, len(meanings), count)]
    rows += rng.standard_normal(rows.shape, dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows[:ASKED], rows[ASKED:]


def plain(query: Float32, vectors: Float32) -> list[float]:
    """Return the scores by the recurrence of `slice_os.ranking.subsequence`, cell by cell."""
    scores = []
    for start in range(0, len(vectors), SENTENCES):
        above = [0.0] * (SENTENCES + 1)
        for cosines in (query @ vectors[start : start + SENTENCES].T).tolist():
            row = [0.0]
            for j, cosine in enumerate(cosines):
                best = max(above[j + 1], row[j])
                if cosine > THRESHOLD:
                    best = max(best, above[j] + cosine)
                row.append(best)
            above = row
        scores.append(above[-1])
    return scores


def _quality(file: Path) -> list[str]:
    with file.open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened, delimiter="\t", quoting=csv.QUOTE_NONE))
    pairs = [(row["sentence1"], row["sentence2"], float(row["score"])) for row in rows]
    found: dict[str, list[float]] = {}
    sizes = []
    with slice_os.load_encoder() as loaded:
        encoder = cast(Encoder, Remembering(loaded))
        for degree, split in DEGREES:
            figures: dict[str, list[float]] = {}
            for seed in SEEDS:
                made = degree_set(pairs, degree, split=split, seed=seed)
                for method, mrr in _measure(SentenceRanker(encoder, made.documents), made):
                    figures.setdefault(method, []).append(mrr)
            sizes.append(f"{len(made.queries)} of {len(made.documents)}")
            for method, values in figures.items():
                found.setdefault(method, []).append(statistics.fmean(values))
    heads = [f"degree {degree}{', split' if split else ''}" for degree, split in DEGREES]
    return [
        f"MRR on sets made from {file.name} by `degree_set`, mean of {len(SEEDS)} seeds, with the "
        "encoder in the package. Queries of documents: " + "; ".join(sizes) + ".",
        "",
        f"| method | {' | '.join(heads)} |",
        "|---|" + "---:|" * len(heads),
        *(
            f"| {label} | {' | '.join(f'{value:.3f}' for value in values)} |"
            for label, values in found.items()
        ),
    ]


class Remembering:
    """An encoder that encodes a text once: the sets are made of the same sentences."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._known: dict[str, Float32] = {}

    def encode(self, texts: Sequence[str]) -> Float32:
        """Return what the encoder would."""
        new = list(dict.fromkeys(text for text in texts if text not in self._known))
        self._known.update(zip(new, self._encoder.encode(new), strict=True))
        return np.stack([self._known[text] for text in texts])


def _measure(ranker: SentenceRanker, made: DegreeSet) -> Iterator[tuple[str, float]]:
    """Yield each method, as it is and length-weighted, with its MRR."""
    counts = np.array([len(made.documents[name]) for name in ranker.ids])
    for method in ranker.methods:
        plainly: dict[str, dict[str, float]] = {}
        weighted: dict[str, dict[str, float]] = {}
        for name, query in made.queries.items():
            scores = ranker.scores(query, method)
            weights = length_weights(len(query), counts)
            for rankings, values in (
                (plainly, scores),
                (weighted, weight_lengths(scores, weights)),
            ):
                rankings[name] = dict(zip(ranker.ids, values.tolist(), strict=True))
        yield method, mean_reciprocal_rank(plainly, made.qrels)
        yield f"{method}, length-weighted", mean_reciprocal_rank(weighted, made.qrels)

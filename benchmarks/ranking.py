"""Documents ranked by shared sentences: time against the plain programme, MRR against baselines.

Two MRR tables need `--data FOLDER` with sts/stsb-dev.tsv (score, sentence1, sentence2) and
retrieval/dl19-judged/ (a TREC collection).
"""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import numpy as np

import slice_os
from benchmarks.timing import seconds
from slice_os.encoders import Encoder
from slice_os.lab.evaluate.collections import read_collection
from slice_os.lab.ranking import (
    DegreeCase,
    DegreeReport,
    Doc2Vec,
    SentenceRanker,
    SharedSentenceSet,
    degree_set,
    lcs_scores,
    mean_reciprocal_rank,
    measure_degrees,
    shared_sentence_set,
)
from slice_os.lab.ranking.sets import DEGREES
from slice_os.lab.ranking.subsequence import THRESHOLD, Stack
from slice_os.types import Float32

TITLE = "Ranking by shared sentences"
DOCUMENTS = 10_000
SENTENCES = 50
ASKED = 10
DIMENSION = 384
ROUNDS = 3
SEEDS = range(3)
PER_QUERY = 4
SWEEP = [k / 20 for k in range(1, 19)]
""".05 to .9."""
METHODS = ("lcs", "threshold-mean")
"""Those with a threshold; lcs-sum ranks as lcs where a query has one sentence."""
EXAMPLES = Path(__file__).parents[1] / "examples"
SHARED, FILLERS = (2, 4), (4, 8)
"""Sentences that a query of several shares with its text, and how many others a text has."""
OF_SEVERAL = ("lcs", "lcs-sum", "lcs-count", "threshold-mean", "best-pair", "average", "bm25")
DIFFERENCES = ("relevant less irrelevant", "relevant less degrees")
SHOWN = (
    *("lcs", "lcs-sum", "lcs-count", "threshold-mean", "average", "maximum", "best-pair"),
    *(
        "all-pairs",
        "vector",
        "doc2vec",
        "bm25",
        "bm25-no-stem",
        "bm25-no-idf",
        "bm25-no-stem-no-idf",
    ),
)


def run(data: Path | None) -> list[str]:
    """Return the table of times, that of queries of several sentences, and, with data, others."""
    lines = [*_times(), "", *_several()]
    file = data / "sts" / "stsb-dev.tsv" if data else None
    if file and file.exists():
        lines += ["", *_quality(file)]
    folder = data / "retrieval" / "dl19-judged" if data else None
    if folder and folder.exists():
        lines += ["", *_degrees(folder)]
    return lines


def _times() -> list[str]:
    query, vectors = _sentences()
    documents = Stack(vectors, np.full(DOCUMENTS, SENTENCES))
    work = {
        "the plain dynamic programme, a cell at a time in Python": lambda: plain(query, vectors),
        "`lcs_scores`": lambda: lcs_scores(query, documents),
        "`lcs_scores`, as published": lambda: lcs_scores(query, documents, score="cosine"),
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
    """Return the scores by the recurrence of `slice_os.lab.ranking.subsequence`, cell by cell."""
    scores = []
    for start in range(0, len(vectors), SENTENCES):
        above = [0.0] * (SENTENCES + 1)
        for cosines in (query @ vectors[start : start + SENTENCES].T).tolist():
            row = [0.0]
            for j, cosine in enumerate(cosines):
                best = max(above[j + 1], row[j])
                if cosine >= THRESHOLD:
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
        for shared, split in DEGREES:
            figures: dict[str, list[float]] = {}
            for seed in SEEDS:
                made = shared_sentence_set(pairs, shared, split=split, seed=seed)
                for method, mrr in _measure(SentenceRanker(encoder, made.documents), made):
                    figures.setdefault(method, []).append(mrr)
            sizes.append(f"{len(made.queries)} of {len(made.documents)}")
            for method, values in figures.items():
                found.setdefault(method, []).append(statistics.fmean(values))
    heads = [f"{shared} shared{', split' if split else ''}" for shared, split in DEGREES]
    return [
        f"MRR on sets made from {file.name} by `shared_sentence_set`, mean of {len(SEEDS)} seeds, "
        "with the encoder in the package. Queries of documents: " + "; ".join(sizes) + ".",
        "",
        *_table(["method", *heads], found),
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


def _measure(ranker: SentenceRanker, made: SharedSentenceSet) -> Iterator[tuple[str, float]]:
    """Yield each method, as it is and length-weighted, with its MRR."""
    counts = np.array([len(made.documents[name]) for name in ranker.ids])
    for method in ranker.methods:
        if method == "doc2vec":  # it would learn from what it ranks; `_degrees` has other texts
            continue
        plainly: dict[str, dict[str, float]] = {}
        weighted: dict[str, dict[str, float]] = {}
        for name, query in made.queries.items():
            scores = ranker.scores(query, method)
            weights = (counts / len(query)).astype(np.float32)
            for rankings, values in (
                (plainly, scores),
                (weighted, scores * weights),
            ):
                rankings[name] = dict(zip(ranker.ids, values.tolist(), strict=True))
        yield method, mean_reciprocal_rank(plainly, made.qrels)
        yield f"{method}, length-weighted", mean_reciprocal_rank(weighted, made.qrels)


def _degrees(folder: Path) -> list[str]:
    collection = read_collection(folder)
    texts = {document.id: document.text for document in collection.documents()}
    made = degree_set(collection.queries, texts, collection.qrels.relevance, per_query=PER_QUERY)
    used = {name for case in made for name in case.documents}
    found: dict[str, list[float]] = {}
    swept: dict[str, list[float]] = {}
    with slice_os.load_encoder() as loaded:
        encoder = cast(Encoder, Remembering(loaded))
        doc2vec = Doc2Vec([text for name, text in texts.items() if name not in used])
        rankers = {
            id(case): SentenceRanker(encoder, case.documents, doc2vec=doc2vec) for case in made
        }
        for method in SHOWN:
            for weighted in (False, True):
                report = _measured(made, rankers, method, weighted)
                found[f"{method}, length-weighted" if weighted else method] = [
                    *(report.relevance, report.length),
                    *report.mrr.values(),
                ]
        for threshold in SWEEP:
            tried = {
                id(case): SentenceRanker(encoder, case.documents, threshold=threshold)
                for case in made
            }
            reports = [_measured(made, tried, method) for method in METHODS]
            swept[f"{threshold:.2f}"] = [x for one in reports for x in (one.relevance, one.length)]
    held = len(texts) - len(used & texts.keys())
    return [
        f"Documents of degree k made of {folder.name} by `degree_set`: {len(made)} cases of "
        f"{len({case.query for case in made})} queries, each with {len(made[0].documents)} "
        f"documents; the threshold is {THRESHOLD}. Doc2vec learnt from the {held:,} texts that no "
        "case holds. MRR of each type, equal documents sharing their ranks, and two differences.",
        "",
        *_table(["method", *DIFFERENCES, *report.mrr], found),
        "",
        "The two differences at other thresholds:",
        "",
        *_table(["threshold", *(f"{m}: {x}" for m in METHODS for x in DIFFERENCES)], swept),
    ]


def _several() -> list[str]:
    """Documents of known degree for queries of several sentences, of the pairs in examples/."""
    rows = [row for name in ("minimal", "unseen", "everyday") for row in _read(EXAMPLES, name)]
    pairs = [(row["phrase"], row["paraphrase"], 5.0) for row in rows if "domain" in row]
    pairs += [(row["phrase"], row["opposite"], 0.0) for row in rows if "domain" not in row]
    found: dict[str, list[float]] = {}
    with slice_os.load_encoder() as loaded:
        encoder = cast(Encoder, Remembering(loaded))
        for shared in SHARED:
            made = shared_sentence_set(pairs, shared, document_fillers=FILLERS)
            cases = degree_set(made.queries, made.documents, made.qrels)
            rankers = {id(case): SentenceRanker(encoder, case.documents) for case in cases}
            for method in OF_SEVERAL:
                report = _measured(cases, rankers, method)
                found.setdefault(method, []).extend([report.relevance, report.length])
    heads = [f"{shared} shared: {name}" for shared in SHARED for name in DIFFERENCES]
    return [
        "Documents of degree k for queries of several sentences, which share the meaning of so "
        "many with one text each; both are made of the pairs in examples/ by "
        f"`shared_sentence_set`, {len(cases)} queries each. What else they say differs. MRR, two "
        "differences.",
        "",
        *_table(["method", *heads], found),
    ]


def _read(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / f"{name}-pairs.tsv").open(encoding="utf-8", newline="") as opened:
        return list(csv.DictReader(opened, delimiter="\t", quoting=csv.QUOTE_NONE))


def _measured(
    made: Sequence[DegreeCase],
    rankers: Mapping[int, SentenceRanker],
    method: str,
    weighted: bool = False,
) -> DegreeReport:
    return measure_degrees(
        made,
        lambda case: rankers[id(case)].scores(case.query, method, length_weighted=weighted),
    )


def _table(heads: Sequence[str], found: Mapping[str, Sequence[float]]) -> list[str]:
    return [
        f"| {' | '.join(heads)} |",
        "|---|" + "---:|" * (len(heads) - 1),
        *(f"| {label} | {' | '.join(f'{x:.3f}' for x in row)} |" for label, row in found.items()),
    ]

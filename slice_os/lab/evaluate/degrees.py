"""Whether a degree means the same for every query: one threshold over many, and opposites."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from slice_os.calibration.gold import THRESHOLDS
from slice_os.calibration.labels import Floats, Labels
from slice_os.calibration.thresholds import curve, reached_at
from slice_os.corpus.data_files import field, read_rows
from slice_os.encoders import EncoderLike, open_encoder
from slice_os.encoders.judge import JudgeLike, Placed, open_judge
from slice_os.errors import EvaluationError
from slice_os.lab.evaluate.scorers import SCORERS, Encoded
from slice_os.lab.evaluate.significance import load_stats
from slice_os.spans import degree
from slice_os.teaching.labels import NO, YES
from slice_os.types import Plain

QUERY, PASSAGE, LABEL = ("query", "phrase"), ("passage", "text"), ("correct", "label")
DEGREES = {"window": "single pass", "rescored": "rescored", "judged": "judged"}
"""The scorers whose scores are shown to users -> which degree that is."""
BINS = 10
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Bin(Plain):
    """Pairs of about one degree: how many, their mean degree, and the share that is right."""

    pairs: int
    degree: float
    right: float


@dataclass(frozen=True, slots=True)
class DegreeResult(Plain):
    """How far one threshold on a degree tells right from wrong.

    Attributes:
        name: "single pass", "rescored" or "judged".
        average_precision: Of all pairs together, the highest degree first.
        auc: How often a right pair has the higher degree than a wrong one, whatever their queries.
        auc_within: The same of pairs of one query, the mean over queries that have both.
        thresholds: Precision and recall by degree; precision is NaN where no pair reaches it.
        reliability: Tenths of the degrees from 0 to 1 that hold any pair.
    """

    name: str
    average_precision: float
    auc: float
    auc_within: float
    thresholds: Mapping[float, tuple[float, float]]
    reliability: Sequence[Bin]


@dataclass(frozen=True, slots=True)
class DegreeReport(Plain):
    """What `evaluate_degrees` found, of so many pairs, right ones, and queries."""

    pairs: int
    right: int
    queries: int
    degrees: Sequence[DegreeResult]


@dataclass(frozen=True, slots=True)
class OppositeReport(Plain):
    """What `evaluate_opposites` found, by kind of opposition; "all" has all of them.

    Attributes:
        pairs: How many phrases there are.
        above: The share whose paraphrase has the higher degree than their opposite.
        paraphrase: The mean degree of the paraphrases.
        opposite: The mean degree of the opposites.
    """

    pairs: Mapping[str, int]
    above: Mapping[str, float]
    paraphrase: Mapping[str, float]
    opposite: Mapping[str, float]


def evaluate_degrees(
    file: str | Path,
    *,
    encoder: EncoderLike = None,
    judge: JudgeLike = None,
    device: str = "auto",
    progress: Callable[[str, int, int], None] | None = None,
) -> DegreeReport:
    """Measure one threshold over many queries: pairs of a query and a passage, right or wrong.

    Args:
        file: A .csv, .tsv or .jsonl with the columns query (or phrase), passage (or text), and
            correct (or label): yes or no.
        encoder: What `slice_os.load_encoder` takes.
        judge: What `slice_os.load_judge` takes; its degrees are measured too.
        device: Where an encoder that is loaded here runs.
        progress: Called with what is done, how much of it, and of how much.

    Raises:
        EvaluationError: The file is not such a file, or all of its pairs are right, or wrong.
        MissingExtraError: scipy is not installed.
    """
    load_stats("Evaluating degrees")
    queries, passages, labels = [], [], []
    for line, values in read_rows(file):
        queries.append(field(file, line, values, QUERY))
        passages.append(field(file, line, values, PASSAGE))
        label = field(file, line, values, LABEL).lower()
        if label not in YES + NO:
            raise EvaluationError(f"{file}, line {line}: {label!r} is no label: say yes or no.")
        labels.append(label in YES)
    right = np.array(labels, bool)
    if right.all() or not right.any():
        raise EvaluationError(f"{file} needs right pairs and wrong ones, to tell them apart.")
    with open_encoder(encoder, device) as loaded, open_judge(judge, device) as judging:
        show = progress or (lambda name, done, count: None)
        encoded = Encoded(loaded, queries, passages, [""] * len(queries), show, judge=judging)
        results = [
            _measured(name, np.array(SCORERS[scorer](encoded)), right, queries)
            for scorer, name in DEGREES.items()
            if judging or scorer != "judged"
        ]
    return DegreeReport(len(right), int(right.sum()), len(set(queries)), results)


def _measured(name: str, scores: Floats, right: Bools, queries: Sequence[str]) -> DegreeResult:
    degrees = degree(scores) if name == "single pass" else scores
    labels = Labels(degrees, right, np.ones(len(right)))
    every = np.arange(len(right))
    _, precision, recall = curve(labels)
    own = defaultdict(list)
    for row, query in enumerate(queries):
        own[query].append(row)
    within = [_auc(degrees[rows], right[rows]) for rows in own.values()]
    bins = np.minimum((degrees * BINS).astype(int), BINS - 1)
    return DegreeResult(
        name,
        float(np.diff(recall, prepend=0.0) @ precision),
        _auc(degrees, right),
        float(np.nanmean(within)) if not np.isnan(within).all() else float("nan"),
        {degree: reached_at(labels, every, degree) for degree in THRESHOLDS},
        [
            Bin(int(held.sum()), float(degrees[held].mean()), float(right[held].mean()))
            for tenth in np.unique(bins)
            if (held := bins == tenth).any()
        ],
    )


def _auc(degrees: Floats, right: Bools) -> float:
    """Return the share of pairs of a right and a wrong one that are in order; NaN without both.

    Ties count half: Mann and Whitney's U over the number of pairs.
    """
    good, bad = degrees[right], degrees[~right]
    if not len(good) or not len(bad):
        return float("nan")
    u = load_stats().mannwhitneyu(good, bad).statistic
    return float(u) / (len(good) * len(bad))


def read_opposites(file: str | Path) -> tuple[list[str], list[str]]:
    """Return phrase, paraphrase and opposite of each row, one after the other, and their kinds."""
    texts, kinds = [], []
    for line, values in read_rows(file):
        texts += [
            field(file, line, values, (column,)) for column in ("phrase", "paraphrase", "opposite")
        ]
        kinds.append(str(values.get("kind", "")))
    if not texts:
        raise EvaluationError(f"{file} holds no phrase: give a file with rows below its header.")
    return texts, kinds


def evaluate_opposites(
    file: str | Path,
    *,
    encoder: EncoderLike = None,
    judge: JudgeLike = None,
    device: str = "auto",
) -> OppositeReport:
    """Measure how often a phrase is nearer to its paraphrase than to its opposite, each alone.

    Args:
        file: A .csv, .tsv or .jsonl with the columns phrase, paraphrase, opposite, and perhaps
            kind; examples/minimal-pairs.tsv is one.
        encoder: What `slice_os.load_encoder` takes.
        judge: What `slice_os.load_judge` takes; its degrees are measured then.
        device: Where an encoder that is loaded here runs.

    Raises:
        EvaluationError: The file is not such a file, or holds no row.
    """
    texts, kinds = read_opposites(file)
    with open_encoder(encoder, device) as loaded, open_judge(judge, device) as judging:
        vectors = loaded.encode(texts)
        near, far = (
            degree(np.einsum("nd,nd->n", vectors[::3], vectors[which::3])) for which in (1, 2)
        )
        if judging:
            pairs = [
                [(phrase, Placed(text)) for phrase, text in zip(texts[::3], other, strict=True)]
                for other in (texts[1::3], texts[2::3])
            ]
            near, far = judging.degrees(pairs[0], near), judging.degrees(pairs[1], far)
    groups = {
        **{kind: np.array(kinds) == kind for kind in dict.fromkeys(kinds) if kind},
        "all": np.ones(len(kinds), bool),
    }
    return OppositeReport(
        {kind: int(held.sum()) for kind, held in groups.items()},
        {kind: float((near > far)[held].mean()) for kind, held in groups.items()},
        {kind: float(near[held].mean()) for kind, held in groups.items()},
        {kind: float(far[held].mean()) for kind, held in groups.items()},
    )

"""Phrase in context: a passage should score as high for a query as the target that it contains.

A pair is a query, a target, a passage that contains the target, and a gold score: the similarity of
query and target. A scorer sees the query and the passage alone.
Such sets are Orbach et al. (2023)'s STS-B-Context (section 4.2) and those of `build_context`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from slice_os.corpus.data_files import field, read_rows, score
from slice_os.encoders import EncoderLike
from slice_os.encoders.judge import NO_JUDGE, JudgeLike, open_judge
from slice_os.errors import EvaluationError
from slice_os.lab.evaluate.compared import listed, open_each
from slice_os.lab.evaluate.scorers import DEFAULT_SCORERS, JUDGED, LEXICAL, SCORERS, Encoded
from slice_os.lab.evaluate.significance import (
    Correlation,
    WilliamsTest,
    compare,
    correlate,
    load_stats,
)
from slice_os.spans import MAX_WORDS

QUERY, TARGET = ("line", "query", "phrase"), ("paraphrase", "target")
PASSAGE, GOLD = ("passage", "context"), ("goldsim", "gold", "score")
MAX_SCORE = 5.0
AGAINST = "single pass"
SHOWN = "rescored"
ALIKE = 0.6
"""The gold score from which a passage's target is what a search should show."""


@dataclass(frozen=True, slots=True)
class ContextPair:
    """A query, a target, a passage that contains it, and the pair's gold score (0 to 1)."""

    query: str
    target: str
    passage: str
    gold: float


@dataclass(frozen=True, slots=True)
class ScorerResult:
    """How well a scorer's scores agree with the gold scores.

    Attributes:
        encoder: The encoder's name or path; "" if the scorer needs none.
        name: A key of `slice_os.lab.evaluate.scorers.SCORERS`.
        correlation: With the gold scores.
        comparison: Williams' test of one encoder's scorer against the report's `against`, of one of
            several encoders against the best with the same scorer; None for what is compared with.
        scores: One for each pair: cosines, degrees or BM25 scores; NaN where there is none.
        span_f1: Of "rescored", the mean F1 in characters of the span that is shown with the target,
            over pairs of a gold score of 0.6 or more.
        broken: Of "rescored", the share of spans shown that cross the end of a sentence or begin or
            end on a dangling word (`slice_os.text.phrasing`).
    """

    encoder: str
    name: str
    correlation: Correlation
    comparison: WilliamsTest | None
    scores: Sequence[float]
    span_f1: float | None = None
    broken: float | None = None


@dataclass(frozen=True, slots=True)
class ContextReport:
    """What `evaluate_context` found; `gold` has each pair's gold score, from 0 to 1.

    `not_found` counts the pairs whose target is not in its passage, which "target in context"
    leaves out; `against` is the scorer that the others are compared with, "" for several encoders.
    """

    pairs: int
    not_found: int
    encoders: Sequence[str]
    against: str
    gold: Sequence[float]
    scorers: Sequence[ScorerResult]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types, without the scores."""
        rows = [
            {
                "encoder": result.encoder,
                "scorer": result.name,
                "pearson": result.correlation.pearson,
                "spearman": result.correlation.spearman,
                **(
                    {"t": result.comparison.t, "p": result.comparison.p}
                    if result.comparison
                    else {}
                ),
                **(
                    {"span_f1": result.span_f1, "broken": result.broken}
                    if result.name == SHOWN
                    else {}
                ),
            }
            for result in self.scorers
        ]
        about = {"pairs": self.pairs, "not_found": self.not_found, "encoders": list(self.encoders)}
        return {**about, "against": self.against, "scorers": rows}


def read_context(path: str | Path, max_score: float = MAX_SCORE) -> list[ContextPair]:
    """Read pairs from a .csv, .tsv or .jsonl file in any encoding.

    Columns: ``line`` (or query, phrase), ``paraphrase`` (or target), ``passage`` (or context),
    ``goldsim`` (or gold, score). Others are ignored.

    Args:
        path: The file.
        max_score: The maximum gold score; the minimum is 0.
    """
    pairs = []
    for line, values in read_rows(path):
        query, target = (field(path, line, values, names) for names in (QUERY, TARGET))
        passage = field(path, line, values, PASSAGE)
        gold = score(path, line, values, GOLD, (0.0, max_score)) / max_score
        pairs.append(ContextPair(query, target, passage, gold))
    if not pairs:
        raise EvaluationError(f"{path} holds no pair: give a file with rows below its header.")
    return pairs


def evaluate_context(
    file: str | Path,
    *,
    encoder: EncoderLike | Sequence[EncoderLike] = None,
    device: str = "auto",
    judge: JudgeLike = None,
    scorers: Sequence[str] = DEFAULT_SCORERS,
    against: str | None = None,
    max_score: float = MAX_SCORE,
    max_words: int = MAX_WORDS,
    progress: Callable[[str, int, int], None] | None = None,
) -> ContextReport:
    """Measure how well scorers of a passage agree with the gold scores of query and target.

    Args:
        file: The pairs, see `read_context`.
        encoder: What `slice_os.load_encoder` takes, or several to compare.
        device: Where an encoder that is loaded here runs.
        judge: What `slice_os.load_judge` takes; the scorer "judged" asks it.
        scorers: Keys of `slice_os.lab.evaluate.scorers.SCORERS`.
        against: The scorer that the others are compared with; "single pass", or the first. Several
            encoders are compared with the best of them, scorer by scorer.
        max_score: The maximum gold score.
        max_words: The longest span.
        progress: Called with a scorer's name, how much of it is done, and of how much.

    Raises:
        EvaluationError: A file, an encoder or a scorer is not usable.
        MissingExtraError: scipy is not installed, or torch where a checkpoint is given.
    """
    for name in [*scorers, *([against] if against else [])]:
        if name not in SCORERS:
            raise EvaluationError(f"There is no scorer {name!r}: use {', '.join(SCORERS)}.")
    judge = None if judge == NO_JUDGE else judge
    if judge is None and JUDGED in (*scorers, against):
        raise EvaluationError(
            f"The scorer {JUDGED} needs a judge",
            hint="give one with --judge.",
        )
    if not scorers:
        raise EvaluationError(f"No scorer is given: use some of {', '.join(SCORERS)}.")
    if max_words < 1:
        raise EvaluationError(f"A span of {max_words} words cannot be had: use 1 or more.")
    encoders = listed(encoder)
    if not encoders or (against and len(encoders) > 1):
        raise EvaluationError(
            "One encoder's scorers are compared with --against, several encoders with the best of "
            "them: give one, or leave --against out."
        )
    pairs = read_context(file, max_score)
    load_stats()  # before the work: it may be missing
    if len(encoders) == 1:
        against = against or (AGAINST if AGAINST in scorers else scorers[0])
    more = [*([against] if against else []), *([] if judge is None else [JUDGED])]
    wanted = list(dict.fromkeys([*scorers, *more]))
    gold = [pair.gold for pair in pairs]
    names: list[str] = []
    scores: dict[tuple[str, str], Sequence[float]] = {}
    shown: dict[tuple[str, str], tuple[float, float]] = {}
    for named, loaded in open_each(encoders, device):
        with open_judge(judge, device) as judging:
            names.append(named)
            encoded = Encoded(
                loaded,
                [pair.query for pair in pairs],
                [pair.passage for pair in pairs],
                [pair.target for pair in pairs],
                progress or (lambda name, done, count: None),
                max_words=max_words,
                judge=judging,
            )
            for name in wanted:
                key = ("" if name in LEXICAL else named, name)
                scores[key] = scores.get(key) or SCORERS[name](encoded)
                if name == SHOWN:
                    shown[key] = _shown(encoded, gold)
    correlations = {key: _correlated(values, gold) for key, values in scores.items()}
    rows = []
    for key, values in scores.items():
        other = key if len(encoders) > 1 else next(k for k in scores if k[1] == against)
        if len(encoders) > 1:
            rivals = [rival for rival in scores if rival[1] == key[1]]
            other = max(rivals, key=lambda rival: correlations[rival].pearson)
        test = None if key == other else _compared(values, scores[other], gold)
        rows.append(ScorerResult(*key, correlations[key], test, values, *shown.get(key, ())))
    missing = sum(place is None for place in encoded.places)
    return ContextReport(len(pairs), missing, names, against or "", gold, rows)


def _shown(encoded: Encoded, gold: Sequence[float]) -> tuple[float, float]:
    """Return the mean F1 of the spans shown with their targets, and the share that is broken."""
    f1 = [
        2 * max(0, min(span.end, place[1]) - max(span.start, place[0]))
        / (span.end - span.start + place[1] - place[0])
        for span, place, score in zip(encoded.shown, encoded.places, gold, strict=True)
        if place and score >= ALIKE
    ]  # fmt: skip
    broken = [span.broken for span in encoded.shown]
    return float(np.mean(f1)) if f1 else float("nan"), float(np.mean(broken))


def _correlated(scores: Sequence[float], gold: Sequence[float]) -> Correlation:
    kept = np.isfinite(scores)
    return correlate(np.asarray(scores)[kept], np.asarray(gold)[kept].tolist())


def _compared(
    first: Sequence[float], second: Sequence[float], gold: Sequence[float]
) -> WilliamsTest:
    kept = np.isfinite(first) & np.isfinite(second)
    return compare(
        np.asarray(first)[kept], np.asarray(second)[kept], np.asarray(gold)[kept].tolist()
    )


def plot_context(report: ContextReport, path: str | Path) -> None:
    """Draw each scorer's scores against the gold scores into a .png, .svg or .pdf file.

    Raises:
        EvaluationError: The file cannot be written.
        MissingExtraError: matplotlib is not installed.
    """
    from slice_os.calibration.plots import scatter

    several = len(report.encoders) > 1
    series = {
        f"{result.encoder} {result.name}".strip() if several else result.name: result.scores
        for result in report.scorers
    }
    scatter(path, report.gold, series, "gold similarity", "score")

"""Phrase in context: a passage should score as high for a query as the target that it contains.

A pair is a query, a target, a passage of 20 to 60 words that contains the target word for word, and
a gold score: the similarity of query and target. A scorer sees the query and the passage alone.
Such sets are Orbach et al. (2023)'s STS-B-Context (section 4.2) and those of `build_context`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slice_os.encoder import EncoderLike, open_encoder
from slice_os.errors import EvaluationError
from slice_os.evaluation.rows import field, read_rows, score
from slice_os.evaluation.scorers import DEFAULT_SCORERS, SCORERS, Encoded, find_words
from slice_os.evaluation.significance import (
    Correlation,
    WilliamsTest,
    compare,
    correlate,
    load_stats,
)

QUERY, TARGET = ("line", "query", "phrase"), ("paraphrase", "target")
PASSAGE, GOLD = ("passage", "context"), ("goldsim", "gold", "score")
MAX_SCORE = 5.0
AGAINST = "single pass"


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
        name: A key of `slice_os.evaluation.scorers.SCORERS`.
        correlation: With the gold scores.
        comparison: Williams' test against the report's `against`; None for that scorer itself.
        scores: One for each pair: cosines, degrees or BM25 scores.
    """

    name: str
    correlation: Correlation
    comparison: WilliamsTest | None
    scores: Sequence[float]


@dataclass(frozen=True, slots=True)
class ContextReport:
    """What `evaluate_context` found; `gold` has each pair's gold score, from 0 to 1."""

    pairs: int
    against: str
    gold: Sequence[float]
    scorers: Sequence[ScorerResult]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types, without the scores."""
        rows = [
            {
                "scorer": one.name,
                "pearson": one.correlation.pearson,
                "spearman": one.correlation.spearman,
                **({"t": one.comparison.t, "p": one.comparison.p} if one.comparison else {}),
            }
            for one in self.scorers
        ]
        return {"pairs": self.pairs, "against": self.against, "scorers": rows}


def read_context(path: str | Path, max_score: float = MAX_SCORE) -> list[ContextPair]:
    """Read pairs from a .csv, .tsv or .jsonl file in any encoding.

    Columns: ``line`` (or query, phrase), ``paraphrase`` (or target), ``passage`` (or context),
    ``goldsim`` (or gold, score). Others are ignored.

    Args:
        path: The file.
        max_score: The maximum gold score; the minimum is 0.

    Raises:
        EvaluationError: The file is not such a file, or a passage does not contain its target;
            the line is named.
    """
    pairs = []
    for line, values in read_rows(path):
        query, target = (field(path, line, values, names) for names in (QUERY, TARGET))
        passage = field(path, line, values, PASSAGE)
        gold = score(path, line, values, GOLD, (0.0, max_score)) / max_score
        if find_words(passage, target) < 0:
            raise EvaluationError(
                f"{path}, line {line}: the passage does not contain {target[:60]!r} word for word: "
                "correct it, or leave the row out."
            )
        pairs.append(ContextPair(query, target, passage, gold))
    if not pairs:
        raise EvaluationError(f"{path} holds no pair: give a file with rows below its header.")
    return pairs


def evaluate_context(
    file: str | Path,
    *,
    encoder: EncoderLike = None,
    device: str = "auto",
    scorers: Sequence[str] = DEFAULT_SCORERS,
    against: str | None = None,
    max_score: float = MAX_SCORE,
    progress: Callable[[str, int, int], None] | None = None,
) -> ContextReport:
    """Measure how well scorers of a passage agree with the gold scores of query and target.

    Args:
        file: The pairs, see `read_context`.
        encoder: What `slice_os.load_encoder` takes.
        device: Where an encoder that is loaded here runs.
        scorers: Keys of `slice_os.evaluation.scorers.SCORERS`.
        against: The scorer that the others are compared with; "single pass", or the first.
        max_score: The maximum gold score.
        progress: Called with a scorer's name, how much of it is done, and of how much.

    Raises:
        EvaluationError: The file, the encoder or a scorer is not usable.
        MissingExtraError: scipy is not installed, or torch where a checkpoint is given.
    """
    for name in [*scorers, *([against] if against else [])]:
        if name not in SCORERS:
            raise EvaluationError(f"There is no scorer {name!r}: use {', '.join(SCORERS)}.")
    if not scorers:
        raise EvaluationError(f"No scorer is given: use some of {', '.join(SCORERS)}.")
    pairs = read_context(file, max_score)
    load_stats()  # before the work: it may be missing
    against = against or (AGAINST if AGAINST in scorers else scorers[0])
    wanted = list(dict.fromkeys([*scorers, against]))
    gold = [pair.gold for pair in pairs]
    tell = progress or (lambda name, done, count: None)
    with open_encoder(encoder, device) as loaded:
        encoded = Encoded(
            loaded,
            [pair.query for pair in pairs],
            [pair.passage for pair in pairs],
            [_target(pair) for pair in pairs],
            tell,
        )
        scores: Mapping[str, Sequence[float]] = {name: SCORERS[name](encoded) for name in wanted}
    rows = [
        ScorerResult(
            name,
            correlate(found, gold),
            None if name == against else compare(found, scores[against], gold),
            found,
        )
        for name, found in scores.items()
    ]
    return ContextReport(len(pairs), against, gold, rows)


def plot_context(report: ContextReport, path: str | Path) -> None:
    """Draw each scorer's scores against the gold scores into a .png, .svg or .pdf file.

    Raises:
        EvaluationError: The file cannot be written.
        MissingExtraError: matplotlib is not installed.
    """
    from slice_os.evaluation.plots import scatter

    series = {one.name: one.scores for one in report.scorers}
    scatter(path, report.gold, series, "gold similarity", "score")


def _target(pair: ContextPair) -> tuple[str, int]:
    """Return the target as it stands in the passage, and its offset."""
    start = find_words(pair.passage, pair.target)
    return pair.passage[start : start + len(pair.target)], start

"""Phrase in context: is a passage as near to a phrase as what it says is (SLICE's STS-B-Context).

A pair is a query, a target and a passage of 20 to 60 words that says the target word for word; the
gold score is how alike query and target are. What sees only query and passage should come near it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slice_os.encoder import EncoderLike, open_encoder
from slice_os.errors import EvaluationError
from slice_os.evaluation.correlation import Comparison, Correlation, compare, correlate
from slice_os.evaluation.rows import field, read_rows, score
from slice_os.evaluation.said import place_of
from slice_os.evaluation.setups import DEFAULT_SETUPS, SETUPS, Encoded
from slice_os.evaluation.significance import load_stats

QUERY, TARGET = ("line", "query", "phrase"), ("paraphrase", "target")
PASSAGE, GOLD = ("passage", "context"), ("goldsim", "gold", "score")
MOST = 5.0
AGAINST = "single pass"


@dataclass(frozen=True, slots=True)
class ContextPair:
    """A query, what a passage says of it, the passage, and how alike the first two are (0 to 1)."""

    query: str
    target: str
    passage: str
    gold: float


@dataclass(frozen=True, slots=True)
class Setup:
    """How well a set-up's scores agree with the gold.

    Attributes:
        name: The set-up, a key of `slice_os.evaluation.setups.SETUPS`.
        correlation: With the gold.
        comparison: Williams' test against the report's `against`; None for that itself.
        scores: One a pair, as they come: cosines, degrees or BM25.
    """

    name: str
    correlation: Correlation
    comparison: Comparison | None
    scores: Sequence[float]


@dataclass(frozen=True, slots=True)
class ContextReport:
    """What `evaluate_context` found: `gold` of each pair, from 0 to 1, and the set-ups."""

    pairs: int
    against: str
    gold: Sequence[float]
    setups: Sequence[Setup]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types, without the scores."""
        rows = [
            {
                "setup": one.name,
                "pearson": one.correlation.pearson,
                "spearman": one.correlation.spearman,
                **({"t": one.comparison.t, "p": one.comparison.p} if one.comparison else {}),
            }
            for one in self.setups
        ]
        return {"pairs": self.pairs, "against": self.against, "setups": rows}


def read_context(path: str | Path, most: float = MOST) -> list[ContextPair]:
    """Read pairs from a .csv, .tsv or .jsonl file in any encoding.

    Columns: ``line`` (or query, phrase), ``paraphrase`` (or target), ``passage`` (or context),
    ``goldsim`` (or gold, score). Others are ignored.

    Args:
        path: The file.
        most: The gold score that means the same; the least is 0.

    Raises:
        EvaluationError: The file is not such a file, or a passage does not say its target; the
            line is named.

    """
    pairs = []
    for line, values in read_rows(path):
        query, target = (field(path, line, values, names) for names in (QUERY, TARGET))
        passage = field(path, line, values, PASSAGE)
        gold = score(path, line, values, GOLD, (0.0, most)) / most
        if place_of(passage, target) < 0:
            raise EvaluationError(
                f"{path}, line {line}: the passage does not say {target[:60]!r} word for word: "
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
    setups: Sequence[str] = DEFAULT_SETUPS,
    against: str | None = None,
    most: float = MOST,
    progress: Callable[[str, int, int], None] | None = None,
) -> ContextReport:
    """Measure how well ways to score a passage agree with how alike query and target are.

    Args:
        file: The pairs, see `read_context`.
        encoder: What `slice_os.load_encoder` takes.
        device: Where an encoder that is loaded here runs.
        setups: Keys of `slice_os.evaluation.setups.SETUPS`.
        against: The set-up that the others are compared with; "single pass", or the first.
        most: The gold score that means the same.
        progress: Is told a set-up, and how much of it is done of how much.

    Raises:
        EvaluationError: The file, the encoder or a set-up is not usable.
        MissingExtraError: scipy is not installed, or torch where a checkpoint is given.

    """
    for name in [*setups, *([against] if against else [])]:
        if name not in SETUPS:
            raise EvaluationError(f"There is no set-up {name!r}: use {', '.join(SETUPS)}.")
    if not setups:
        raise EvaluationError(f"No set-up is asked for: use some of {', '.join(SETUPS)}.")
    pairs = read_context(file, most)
    load_stats()  # what takes long finds out first that it is missing
    against = against or (AGAINST if AGAINST in setups else setups[0])
    wanted = list(dict.fromkeys([*setups, against]))
    gold = [pair.gold for pair in pairs]
    tell = progress or (lambda name, done, count: None)
    with open_encoder(encoder, device) as loaded:
        encoded = Encoded(
            loaded,
            [pair.query for pair in pairs],
            [pair.passage for pair in pairs],
            [_said(pair) for pair in pairs],
            tell,
        )
        scores: Mapping[str, Sequence[float]] = {name: SETUPS[name](encoded) for name in wanted}
    rows = [
        Setup(
            name,
            correlate(found, gold),
            None if name == against else compare(found, scores[against], gold),
            found,
        )
        for name, found in scores.items()
    ]
    return ContextReport(len(pairs), against, gold, rows)


def plot_context(report: ContextReport, path: str | Path) -> None:
    """Draw the scores of each set-up against the gold, into a file that matplotlib knows by name.

    Raises:
        EvaluationError: The file cannot be written.
        MissingExtraError: matplotlib is not installed.

    """
    from slice_os.evaluation.plots import scatter

    series = {one.name: one.scores for one in report.setups}
    scatter(path, report.gold, series, "gold similarity", "score")


def _said(pair: ContextPair) -> tuple[str, int]:
    """Return the target as the passage says it, and where it begins there."""
    start = place_of(pair.passage, pair.target)
    return pair.passage[start : start + len(pair.target)], start

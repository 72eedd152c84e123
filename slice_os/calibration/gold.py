"""Evaluation of mining on your own data: matches compared with spans that people marked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from slice_os.corpus.data_files import field, read_rows, score
from slice_os.errors import EvaluationError
from slice_os.types import Match, Plain

if TYPE_CHECKING:
    from slice_os.api import Index

QUERY, DOCUMENT = ("query", "phrase"), ("document", "doc")
BOUNDS, LABEL = ("start", "end"), "correct"
LEAST = 0.6
"""The degree below which nothing is mined, unless it is asked for."""
THRESHOLDS = tuple(round(0.6 + 0.05 * step, 2) for step in range(8))
_LONGEST = float(1 << 40)


@dataclass(frozen=True, slots=True)
class GoldSpan:
    """A marked span: characters `start` to `end` (half-open) of a document match the query."""

    query: str
    document: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Judged:
    """A match, whether it overlaps a marked span, and how many that no better match overlaps."""

    match: Match
    correct: bool
    found: int


@dataclass(frozen=True, slots=True)
class AtThreshold:
    """Precision, recall and F1 of the matches of a degree or more."""

    degree: float
    precision: float
    recall: float
    f1: float
    matches: int


@dataclass(frozen=True, slots=True)
class SpanReport(Plain):
    """What `evaluate_spans` found.

    Attributes:
        gold: How many spans are marked.
        documents: How many documents they are in.
        unjudged: How many matches lie in other documents, which nobody judged.
        missing: How many of the documents the index does not hold: nothing is found there.
        best_span_f1: Mean over query and document of the best match's F1 in characters with the
            marked span that it agrees best with; 0 where nothing was found.
        overlap: The share of query and document whose best match overlaps a marked span.
        average_precision: Of all judged matches, the best degree first.
        thresholds: Precision and recall by degree.
    """

    gold: int
    documents: int
    unjudged: int
    missing: int
    best_span_f1: float
    overlap: float
    average_precision: float
    thresholds: Sequence[AtThreshold]


def read_gold(path: str | Path) -> list[GoldSpan]:
    """Read marked spans: .jsonl, .csv or .tsv with query, document, start and end; each once.

    Raises:
        EvaluationError: The file is not such a file; the line is named.
    """
    gold = []
    for line, values in read_rows(path):
        query, document = (field(path, line, values, names) for names in (QUERY, DOCUMENT))
        start, end = (score(path, line, values, (name,), (0, _LONGEST)) for name in BOUNDS)
        if not (start.is_integer() and end.is_integer()):
            raise EvaluationError(f"{path}, line {line}: start and end must be whole numbers.")
        if end <= start:
            raise EvaluationError(
                f"{path}, line {line}: the span {start:.0f} to {end:.0f} holds nothing: its end "
                "must be past its start."
            )
        if LABEL in values:
            raise EvaluationError(
                f"{path} has a column {LABEL}, so it is a sample with labels",
                hint="give it to 'slice-os calibrate'.",
            )
        gold.append(GoldSpan(query, document, int(start), int(end)))
    if not gold:
        raise EvaluationError(f"{path} holds no span: give a file with rows.")
    return list(dict.fromkeys(gold))


def evaluate_spans(
    file: str | Path,
    index: Index,
    *,
    min_degree: float = LEAST,
    rescore: bool = True,
    progress: Callable[[float], object] | None = None,
) -> SpanReport:
    """Mine the queries of `file` in `index` and compare the matches with the marked spans.

    Documents that the file does not name are not judged: their matches are counted and left out.

    Args:
        file: The marked spans, see `read_gold`.
        index: An open index that holds the documents.
        min_degree: The least degree of a match.
        rescore: Whether spans are encoded alone, as in `Index.mine`.
        progress: Called with the share that is done.

    Raises:
        EvaluationError: The file cannot be used, or nothing was found in any of its documents.
    """
    gold = read_gold(file)
    judged, unjudged = judge(gold, mined(gold, index, min_degree, rescore, progress))
    if not judged:
        raise EvaluationError(
            f"Nothing of degree {min_degree:g} was found in the documents that {file} names",
            hint="check their ids (slice-os status shows the index), or lower the degree.",
        )
    f1, overlap = _best_spans(gold, judged)
    return SpanReport(
        len(gold),
        len({span.document for span in gold}),
        unjudged,
        missing(gold, index),
        f1,
        overlap,
        average_precision(judged, len(gold)),
        [at_threshold(judged, len(gold), least) for least in THRESHOLDS if least >= min_degree],
    )


def missing(gold: Iterable[GoldSpan], index: Index) -> int:
    """Return how many documents of `gold` an index does not hold."""
    documents = {span.document for span in gold}
    return len(documents) - len(index.holds(documents))


def mined(
    gold: Iterable[GoldSpan],
    index: Index,
    min_degree: float,
    rescore: bool = True,
    progress: Callable[[float], object] | None = None,
) -> list[Match]:
    """Mine the queries of `gold` in `index`."""
    queries = list(dict.fromkeys(span.query for span in gold))
    show = progress or (lambda share: None)
    return list(
        index.mine(queries, min_degree=min_degree, literal=True, rescore=rescore, on_progress=show)
    )


def judge(gold: Sequence[GoldSpan], matches: Iterable[Match]) -> tuple[list[Judged], int]:
    """Return the matches in the documents of `gold`, best first, and how many lie in others."""
    marked: Mapping[tuple[str, str], list[GoldSpan]] = defaultdict(list)
    for span in gold:
        marked[span.query, span.document].append(span)
    documents = {span.document for span in gold}
    judged, unjudged = [], 0
    taken: set[GoldSpan] = set()
    for match in sorted(matches, key=lambda match: -match.degree):
        if match.document not in documents:
            unjudged += 1
            continue
        spans = marked.get((match.name, match.document), ())
        hits = {span for span in spans if _common(span, match)}
        judged.append(Judged(match, bool(hits), len(hits - taken)))
        taken |= hits
    return judged, unjudged


def average_precision(judged: Sequence[Judged], gold: int) -> float:
    """Return the mean, over marked spans, of the precision where each is first found."""
    total, right, seen = 0.0, 0, 0
    for match in judged:
        if match.correct and not match.found:
            continue  # a second match of what was found: neither right nor wrong
        seen += 1
        if match.found:
            right += 1
            total += match.found * right / seen
    return total / gold


def at_threshold(judged: Sequence[Judged], gold: int, degree: float) -> AtThreshold:
    """Return precision, recall and F1 of the matches of `degree` or more."""
    kept = [match for match in judged if match.match.degree >= degree]
    precision = sum(match.correct for match in kept) / len(kept) if kept else 0.0
    recall = sum(match.found for match in kept) / gold
    both = precision + recall
    return AtThreshold(
        degree, precision, recall, 2 * precision * recall / both if both else 0.0, len(kept)
    )


def _best_spans(gold: Sequence[GoldSpan], judged: Sequence[Judged]) -> tuple[float, float]:
    """Return the mean F1 of each query and document's best match, and how often it overlaps."""
    best: dict[tuple[str, str], Match] = {}
    for match_judged in judged:  # best first
        best.setdefault((match_judged.match.name, match_judged.match.document), match_judged.match)
    f1: dict[tuple[str, str], float] = {}
    for span in gold:
        key = span.query, span.document
        match = best.get(key)
        value = 0.0
        if match:
            sizes = span.end - span.start + match.document_end - match.document_start
            value = 2 * _common(span, match) / sizes
        f1[key] = max(f1.get(key, 0.0), value)
    values = f1.values()
    return sum(values) / len(values), sum(value > 0 for value in values) / len(values)


def _common(span: GoldSpan, match: Match) -> int:
    """Return how many characters a marked span and a match have in common."""
    return max(0, min(span.end, match.document_end) - max(span.start, match.document_start))

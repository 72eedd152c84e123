"""Searching for every query of a set: documents ranked by their best passages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from slice_os.api import Index
from slice_os.errors import QueryError
from slice_os.evaluation.runs import Run
from slice_os.evaluation.settings import Setting

PASSAGES = 1000
"""The most passages looked through for a query's documents; a hybrid search has no more."""


@dataclass(frozen=True, slots=True)
class EvaluationProgress:
    """How far an evaluation is: `stage` is ``indexing`` or a setting's label."""

    stage: str
    done: int
    total: int


Progress = Callable[[EvaluationProgress], object]


def search_queries(
    index: Index,
    queries: Mapping[str, str],
    setting: Setting,
    depth: int,
    progress: Progress,
    warn: Callable[[str], object],
) -> Run:
    """Rank the documents for every query; one that the encoder cannot encode finds none."""
    run: Run = {}
    unknown: list[str] = []
    for number, (query, text) in enumerate(queries.items()):
        progress(EvaluationProgress(setting.label, number, len(queries)))
        try:
            run[query] = rank_documents(index, text, setting, depth)
        except QueryError:  # the setting is sound, so the query holds no word for the encoder
            run[query] = {}
            unknown.append(query)
    progress(EvaluationProgress(setting.label, len(queries), len(queries)))
    if unknown:
        warn(
            f"{setting.label}: queries without a word that the encoder knows count as zero: "
            f"{len(unknown)}, {unknown[0]!r} for one."
        )
    return run


def rank_documents(index: Index, query: str, setting: Setting, depth: int) -> dict[str, float]:
    """Return `depth` documents, each with its best passage's score, in the order they are found.

    Fewer where the best 1,000 passages belong to fewer.
    """
    best: dict[str, float] = {}
    for offset in range(0, PASSAGES, depth):
        size = min(depth, PASSAGES - offset)
        hits = index.search(query, size=size, offset=offset, literal=True, **setting.arguments)
        for hit in hits:
            best[hit.document] = max(hit.score, best.get(hit.document, hit.score))
        if len(hits) < size or len(best) >= depth:
            break
    return dict(list(best.items())[:depth])

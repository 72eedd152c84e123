"""TREC run files: rankings of documents for queries."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path

from slice_os.errors import EvaluationError
from slice_os.evaluation.lines import spaced_rows

Ranking = Mapping[str, float]
"""Document -> score."""
Run = dict[str, Ranking]
"""Query -> its ranking."""
_COLUMNS = ("query", "Q0", "document", "rank", "score", "tag")


def read_run(path: str | Path) -> Run:
    """Read lines ``query Q0 document rank score tag``, of which the score alone ranks.

    Raises:
        EvaluationError: The file or a line of it is not so, or names a document twice for a query.
    """
    path = Path(path)
    run: dict[str, dict[str, float]] = {}
    for _, place, values in spaced_rows(path, _COLUMNS):
        query, _, document, _, text, _ = values
        ranking = run.setdefault(query, {})
        if document in ranking:
            raise EvaluationError(
                f"{place} names the document {document!r} again for query {query!r}: remove one."
            )
        ranking[document] = _score(text, place)
    return {**run}


def _score(text: str, place: str) -> float:
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise EvaluationError(f"{place} has the score {text!r}: make it a number.")
    return score


def run_lines(run: Run, tag: str) -> list[str]:
    """Return a run as lines of a TREC run file, each query's best score first.

    Scores are written in full, so a run that is read again measures the same.

    Raises:
        EvaluationError: An id holds white space, which the format cannot hold.
    """
    for name in {*run, *(document for ranking in run.values() for document in ranking)}:
        if len(name.split()) != 1:
            raise EvaluationError(
                f"The id {name!r} cannot stand in a TREC run file: leave the output out, or give "
                "ids without spaces."
            )
    return [
        f"{query} Q0 {document} {rank} {score!r} {tag}"
        for query, ranking in run.items()
        for rank, (document, score) in enumerate(
            sorted(ranking.items(), key=lambda item: -item[1]), start=1
        )
    ]


def run_name(label: str) -> str:
    """Return the name of a setting's run file."""
    return f"{re.sub('[^A-Za-z0-9._-]+', '-', label)}.run"

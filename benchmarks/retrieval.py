"""Ranking quality on SciFact and CISI: what the default mode and fusion are chosen by.

Needs `--data FOLDER` with the collections retrieval/scifact and retrieval/cisi. A document's score
is its best passage's.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from slice_os.lab.evaluate import evaluate_retrieval
from slice_os.lab.evaluate.metrics import Metrics

TITLE = "Ranking quality"
SETS = {"SciFact": "scifact", "CISI": "cisi"}
MEASURE = "nDCG@10"


def run(data: Path | None) -> list[str]:
    """Return nDCG@10 of every setting on both sets."""
    if data is None:
        return []
    found = [
        evaluate_retrieval(data / "retrieval" / folder, measures=[MEASURE]).systems
        for folder in SETS.values()
    ]
    rows = [f"| setting | {' | '.join(f'{name} {MEASURE}' for name in SETS)} |"]
    rows.append("|---|" + "---:|" * len(SETS))
    for setting in found[0]:
        figures = " | ".join(f"{systems[setting].means[MEASURE]:.4f}" for systems in found)
        rows.append(f"| {setting} | {figures} |")
    return rows


def ndcg(
    run: Mapping[str, Mapping[str, float]], relevance: Mapping[str, Mapping[str, int]]
) -> float:
    """Return the mean nDCG@10 of a run: query -> document -> score."""
    return Metrics([MEASURE], relevance).measure(dict(run)).means[MEASURE]

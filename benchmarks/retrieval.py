"""Ranking quality on SciFact and CISI: what the default mode and fusion are chosen by.

Needs `--data FOLDER` with retrieval/scifact (corpus.jsonl, queries.tsv, qrels.txt) and
retrieval/cisi (CISI.ALL, CISI.QRY, CISI.REL). A document's score is its best passage's.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import slice_os

TITLE = "Ranking quality"
DEPTH = 100
SETTINGS: dict[str, dict[str, Any]] = {
    "lexical": {"mode": "lexical"},
    "dense": {"mode": "dense"},
    "dense, all lengths": {"mode": "dense", "all_lengths": True},
    **{
        f"hybrid, saturation, weight {weight}": {"fusion": "saturation", "weight": weight}
        for weight in (0.2, 0.3, 0.4, 0.5)
    },
    "hybrid, saturation, weight 0.3, all lengths": {"weight": 0.3, "all_lengths": True},
    **{
        f"hybrid, min_max, weight {weight}": {"fusion": "min_max", "weight": weight}
        for weight in (0.3, 0.5)
    },
    "hybrid, rrf": {"fusion": "rrf"},
}
Qrels = dict[str, dict[str, int]]


def run(data: Path | None) -> list[str]:
    """Return nDCG@10 of every setting on both sets."""
    if data is None:
        return []
    results = {
        name: _measure(*load(data / "retrieval" / name.lower())) for name, load in SETS.items()
    }
    rows = [f"| setting | {' | '.join(f'{name} nDCG@10' for name in results)} |"]
    rows.append("|---|" + "---:|" * len(results))
    for setting in SETTINGS:
        figures = " | ".join(f"{result[setting]:.4f}" for result in results.values())
        rows.append(f"| {setting} | {figures} |")
    return rows


def _measure(
    documents: Iterable[slice_os.Document], queries: dict[str, str], qrels: Qrels
) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder, slice_os.open(f"{folder}/eval.slice") as index:
        index.add(documents)
        found = {}
        for name, setting in SETTINGS.items():
            ranking: dict[str, dict[str, float]] = {}
            for number, query in queries.items():
                best: dict[str, float] = {}
                for hit in index.search(query, size=DEPTH, verify=0, **setting):
                    best[hit.document] = max(best.get(hit.document, 0.0), hit.score)
                ranking[number] = best
            found[name] = ndcg(ranking, qrels)
    return found


def ndcg(rankings: dict[str, dict[str, float]], qrels: Qrels) -> float:
    """Return the mean nDCG@10 of rankings: query -> document -> score."""
    import ir_measures
    from ir_measures import nDCG

    return float(ir_measures.calc_aggregate([nDCG @ 10], qrels, rankings)[nDCG @ 10])


def _scifact(folder: Path) -> tuple[Iterable[slice_os.Document], dict[str, str], Qrels]:
    lines = (folder / "queries.tsv").read_text(encoding="utf-8").splitlines()
    queries = dict(line.split("\t")[:2] for line in lines)
    qrels: Qrels = {}
    for line in (folder / "qrels.txt").read_text().splitlines():
        query, _, document, relevance = line.split()
        qrels.setdefault(query, {})[document] = int(relevance)
    return slice_os.read(folder / "corpus.jsonl"), queries, qrels


def _cisi(folder: Path) -> tuple[Iterable[slice_os.Document], dict[str, str], Qrels]:
    documents = [
        slice_os.Document(
            number, f"{fields.get('T', '')}\n{fields.get('W', '')}".strip(), fields.get("T", "")
        )
        for number, fields in _smart(folder / "CISI.ALL")
    ]
    queries = {number: fields.get("W", "") for number, fields in _smart(folder / "CISI.QRY")}
    qrels: Qrels = {}
    for line in (folder / "CISI.REL").read_text().splitlines():
        query, document = line.split()[:2]
        qrels.setdefault(query, {})[document] = 1
    return documents, {q: text for q, text in queries.items() if q in qrels}, qrels


def _smart(file: Path) -> Iterable[tuple[str, dict[str, str]]]:
    """Yield (number, fields) of a SMART collection: `.I 12`, then `.T`, `.W` and other fields."""
    text = file.read_text(encoding="utf-8", errors="replace")
    for record in re.split(r"^\.I ", text, flags=re.M)[1:]:
        number, _, body = record.partition("\n")
        parts = re.split(r"^\.([A-Z])\s*$", body, flags=re.M)
        fields = {k: " ".join(v.split()) for k, v in zip(parts[1::2], parts[2::2], strict=True)}
        yield number.strip(), fields


SETS: dict[str, Callable[[Path], tuple[Iterable[slice_os.Document], dict[str, str], Qrels]]] = {
    "SciFact": _scifact,
    "CISI": _cisi,
}

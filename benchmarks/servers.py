"""The same searches in an embedded index, a node of OpenSearch and a node of Elasticsearch.

Needs `--data FOLDER` with retrieval/scifact. Of its documents the judged ones and the first others
are indexed once, up to SLICE_OS_BENCH_DOCUMENTS, and handed over to both nodes without encoding.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np

import slice_os
from benchmarks.timing import seconds
from slice_os.lab.evaluate.collections import Collection, read_collection
from tests.cluster.elasticsearch import ELASTICSEARCH
from tests.cluster.launcher import start_cluster
from tests.cluster.opensearch import OPENSEARCH

TITLE = "OpenSearch and Elasticsearch: the same hits"
SIZE = 10
TIE = 0.003
"""Scores this close count as equal."""
WAYS: dict[str, dict[str, str]] = {
    "lexical": {"mode": "lexical"},
    "dense": {"mode": "dense"},
    **{f"hybrid, {fusion}": {"fusion": fusion} for fusion in ("saturation", "rrf", "min_max")},
}
Ranks = list[dict[tuple[str, int], tuple[float, float]]]


def run(data: Path | None) -> list[str]:
    """Compare ten hits of every judged query, and their degrees."""
    if data is None:
        return []
    collection = read_collection(data / "retrieval" / "scifact")
    count = int(os.environ.get("SLICE_OS_BENCH_DOCUMENTS", "1000"))
    rows = []
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        own = str(Path(temporary) / "own.slice")
        held = slice_os.index(some(collection, count), own).documents
        places = {}
        for server in (OPENSEARCH, ELASTICSEARCH):
            node = stack.enter_context(start_cluster(heap="1g", server=server, measured=True))
            place = f"{node.url}/scifact"
            took = seconds(lambda to=place: slice_os.reindex(own, to=to, cluster={"replicas": 0}))  # type: ignore[misc]
            with slice_os.open(place) as index:
                status = index.status()
            places[server.title] = place
            rows.append(
                f"{server.title}: {status.passages:,} passages, {status.details['spans']:,} spans, "
                f"{status.bytes / status.words:,.0f} bytes a word, handed over in {took:.0f} s."
            )
        rows += ["", _row("", WAYS), "|---|" + "---:|" * len(WAYS)]
        queries = list(collection.queries.values())
        exact = [_ranks(own, queries, way) for way in WAYS.values()]
        found = {
            title: [_ranks(place, queries, way) for way in WAYS.values()]
            for title, place in places.items()
        }
        for title, ours in found.items():
            pairs = list(zip(ours, exact, strict=True))
            rows.append(_row(f"{title}: recall@10", [f"{_recall(*pair):.3f}" for pair in pairs]))
            least = [f"{_difference(*pair):.1e}" for pair in pairs]
            rows.append(_row(f"{title}: largest difference of a degree", least))
        shares = [f"{_recall(*pair):.3f}" for pair in zip(*found.values(), strict=True)]
        rows.append(_row(f"{' against '.join(found)}: recall@10", shares))
    return [
        f"SciFact: {held:,} documents, {len(queries)} queries, "
        "the ten hits of the embedded index (whose degrees are exact) against those of each node, "
        f"and those of one node against the other's; scores within {TIE} of the tenth are ties.",
        "",
        *rows,
    ]


def some(collection: Collection, count: int) -> Iterator[slice_os.Document]:
    """Yield so many documents of a collection: those that are judged, and the first others."""
    judged = {name for some in collection.qrels.relevance.values() for name in some}
    others = count - len(judged)
    for document in collection.documents():
        if document.id in judged:
            yield document
        elif others > 0:
            others -= 1
            yield document


def _ranks(place: str, queries: list[str], way: dict[str, str]) -> Ranks:
    """Return for each query its hits, more than ten of them: passage -> score and degree."""
    with slice_os.open(place) as index:
        return [
            {
                (hit.document, hit.passage): (hit.score, hit.degree)
                for hit in index.search(text, size=2 * SIZE, rescore=0, **way)
            }
            for text in queries
        ]


def _recall(found: Ranks, exact: Ranks) -> float:
    shares = []
    for ours, best in zip(found, exact, strict=True):
        scores = [score for score, _ in best.values()]
        least = scores[:SIZE][-1] - TIE
        tied = {key for key, (score, _) in best.items() if score >= least}
        top = list(ours)[:SIZE]
        shares.append(len(tied.intersection(top)) / min(SIZE, len(best)))
    return float(np.mean(shares))


def _difference(found: Ranks, exact: Ranks) -> float:
    """Return by how much the degrees of one passage differ at most."""
    return max(
        abs(ours[key][1] - best[key][1])
        for ours, best in zip(found, exact, strict=True)
        for key in ours.keys() & best.keys()
    )


def _row(name: str, values: Iterable[str]) -> str:
    return f"| {name} | {' | '.join(values)} |"

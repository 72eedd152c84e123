"""Searching and mining a million words in a real node.

Needs `--data FOLDER` with retrieval/scifact. Loads it, or SLICE_OS_BENCH_DOCUMENTS of it (judged
ones first), into a node of its own, measures searches before and after its segments are merged
(some forty minutes), or uses the index that SLICE_OS_BENCH_INDEX names, which holds it already.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import slice_os
from benchmarks.mining import mining
from benchmarks.recall import recall_at_10
from benchmarks.servers import some
from benchmarks.stages import stages
from benchmarks.timing import seconds
from slice_os.encoders import load_encoder
from slice_os.lab.evaluate.collections import read_collection
from slice_os.storage.cluster.backend import ClusterBackend
from slice_os.storage.cluster.requests import Cluster
from tests.cluster.launcher import start_cluster

TITLE = "OpenSearch: searching and mining"
TIMED = 60
BEFORE = 5
"""Rows that show what merging brings."""
PHRASES = 200


def run(data: Path | None) -> list[str]:
    """Measure searches stage by stage, what they find, and mining."""
    if data is None:
        return []
    collection = read_collection(data / "retrieval" / "scifact")
    queries = collection.queries
    count = int(os.environ.get("SLICE_OS_BENCH_DOCUMENTS", "10000"))
    with _index(some(collection, count)) as index, load_encoder() as encoder:
        backend = index._backend
        assert isinstance(backend, ClusterBackend)
        status = index.status()
        texts = list(queries.values())
        stored = status.bytes / status.words
        every = 20 * backend.meta.dimension * 4
        rows = [
            f"SciFact: {status.words:,} words in {status.passages:,} passages, "
            f"{status.details['spans']:,} spans stored (tolerance {backend.layout.tolerance}, at "
            f"most 149 a passage, {status.details['vectors']}), one node. {stored:,.0f} bytes a "
            f"word with text and words: 1/{every / stored:.1f} of the {every:,} that 20 "
            "spans a word take as floats.",
            "",
        ]
        before, scattered = _segments(backend), []
        if before > 1:
            scattered = ["", f"The same before its {before} segments were merged:", ""]
            scattered += stages(backend, encoder, texts[:TIMED])[: 2 + BEFORE]
            taken = seconds(lambda: merge(index))
            rows += [
                f"Merging {before} segments into one, which a load asks for and does not wait for, "
                f"took the node {taken / 60:.0f} minutes.",
                "",
            ]
        return [
            *rows,
            *stages(backend, encoder, texts[:TIMED]),
            *scattered,
            "",
            *recall_at_10(index, backend, encoder, queries, collection.qrels.relevance),
            "",
            *mining(index, texts[:PHRASES]),
        ]


@contextmanager
def _index(documents: Any) -> Iterator[slice_os.Index]:
    if location := os.environ.get("SLICE_OS_BENCH_INDEX"):
        with slice_os.open(location) as index:
            yield index
        return
    with start_cluster(heap="2g", measured=True) as cluster:
        location = f"{cluster.url}/scifact"
        with (
            slice_os.open(location, cluster=slice_os.ClusterSettings(replicas=0)) as index,
            patch.object(Cluster, "merge"),  # until it has been measured without
        ):
            index.add(documents)
            yield index


def _segments(backend: ClusterBackend) -> int:
    ask = backend.cluster
    stats: dict[str, Any] = ask.ask("GET", "_stats/segments")
    count: int = stats["_all"]["primaries"]["segments"]["count"]
    return count


def merge(index: slice_os.Index) -> None:
    """Make one segment of an index, as one that is mostly read should have few."""
    backend = index._backend
    assert isinstance(backend, ClusterBackend)
    ask = backend.cluster
    ask.ask("POST", "_forcemerge", max_num_segments=1, request_timeout=3600)

"""Searching and mining a million words in a real node.

Needs `--data FOLDER` with retrieval/scifact. Loads it into a node of its own and merges its
segments (some twenty minutes), or uses the index that SLICE_OS_BENCH_INDEX names, which holds it
already.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import slice_os
from benchmarks.mining import mining
from benchmarks.recall import recall_at_10
from benchmarks.stages import stages
from slice_os.backends.opensearch import OpenSearchBackend
from slice_os.encoder import load_encoder
from slice_os.evaluation.collections import read_collection
from tests.cluster.launcher import start_cluster

TITLE = "OpenSearch: searching and mining"
TIMED = 60
PHRASES = 200


def run(data: Path | None) -> list[str]:
    """Measure searches stage by stage, what they find, and mining."""
    if data is None:
        return []
    collection = read_collection(data / "retrieval" / "scifact")
    queries = collection.queries
    with _index(collection.documents()) as index, load_encoder() as encoder:
        backend = index._backend
        assert isinstance(backend, OpenSearchBackend)
        status = index.status()
        texts = list(queries.values())
        stored = status.bytes / status.words
        every = 20 * backend.meta.dimension * 4
        return [
            f"SciFact: {status.words:,} words in {status.passages:,} passages, "
            f"{status.details['spans']:,} spans stored (tolerance {backend.settings.tolerance}, "
            f"{status.details['vectors']}), one node, one segment. {stored:,.0f} bytes a word "
            f"with text and words: 1/{every / stored:.1f} of the {every:,} that 20 spans a word "
            "take as floats.",
            "",
            *stages(backend, encoder, texts[:TIMED]),
            "",
            *recall_at_10(index, backend, encoder, queries, collection.qrels.relevance),
            "",
            *mining(index, texts[:PHRASES]),
        ]


@contextmanager
def _index(documents: Any) -> Iterator[slice_os.Index]:
    if place := os.environ.get("SLICE_OS_BENCH_INDEX"):
        with slice_os.open(place) as index:
            yield index
        return
    with start_cluster(heap="2g") as cluster:
        place = f"{cluster.url}/scifact"
        with slice_os.open(place, cluster=slice_os.ClusterSettings(replicas=0)) as index:
            index.add(documents)
            merge(index)
            yield index


def merge(index: slice_os.Index) -> None:
    """Make one segment of an index, as one that is mostly read should have few."""
    backend = index._backend
    assert isinstance(backend, OpenSearchBackend)
    ask = backend._cluster
    params = {"max_num_segments": 1, "request_timeout": 3600}
    ask.client.indices.forcemerge(index=ask.index, params=params)

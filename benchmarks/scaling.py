"""What `slice_os.plan` says of three sizes, against what they take on a real node and in a folder.

Starts a node of its own (tests/cluster: Maven and a JDK of 21 or newer). With `--data FOLDER`,
which holds retrieval/scifact, the texts are those of SciFact, and the plan is made without looking
at them.
"""

from __future__ import annotations

import json
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import slice_os
from benchmarks.text import documents
from slice_os.lab.evaluate.collections import read_collection
from slice_os.operate.scaling import MEASURED
from slice_os.types import Document
from tests.cluster.launcher import start_cluster

TITLE = "The plan of an index, and what it takes"
SIZES = (20, 60, 180)
"""Documents of SciFact, of some 215 words."""
SETTINGS: tuple[dict[str, Any], ...] = (
    {"tolerance": 0.9},
    {"tolerance": 0.9, "dimensions": 192},
    {"tolerance": 0.8, "dimensions": 192, "vector_type": "float"},
)
GRAPHS = ("vec", "vex")
"""Endings of Lucene's files that a search of vectors reads."""


def run(data: Path | None) -> list[str]:
    """Build the three sizes with each setting, and in a folder."""
    if data is None:
        texts = [list(documents(215 * size, 215)) for size in SIZES]
    else:
        every = list(read_collection(data / "retrieval" / "scifact").documents())
        texts = [every[:size] for size in SIZES]
    with start_cluster(measured=True) as cluster:
        rows = [*_rows(cluster.url, texts, data is not None)]
    worst = max(abs(planned / taken - 1) for *_, planned, taken in rows)
    return [
        f"{'SciFact' if data else 'Texts of examples/'}; {MEASURED}. At most {worst:.1%} off.",
        "",
        "| words | settings | what | planned | taken | |",
        "|---:|---|---|---:|---:|---:|",
        *(
            f"| {words:,} | {settings} | {what} | {planned:,} | {taken:,} "
            f"| {planned / taken - 1:+.1%} |"
            for words, settings, what, planned, taken in rows
        ),
    ]


def _rows(
    url: str, texts: Sequence[list[Document]], is_known: bool
) -> Iterator[tuple[int, str, str, int, int]]:
    for size, held in zip(SIZES, texts, strict=True):
        corpus = None if is_known else held
        for number, settings in enumerate(SETTINGS):
            settings = {**settings, "replicas": 0}
            name = f"{size}-{number}"
            with slice_os.open(f"{url}/{name}", cluster=settings) as index:
                index.add(held)
                status = index.status()
            plan = slice_os.plan(status.words, corpus=corpus, cluster=settings)
            described = ", ".join(f"{key} {value}" for key, value in settings.items() if value)
            yield status.words, described, "vectors", plan.vectors, status.details["spans"]
            yield status.words, described, "disk", plan.disk, status.bytes
            yield (
                status.words,
                described,
                "memory beside the heap",
                plan.off_heap,
                _searched(url, name),
            )
        with tempfile.TemporaryDirectory() as folder:
            with slice_os.open(f"{folder}/a.slice") as index:
                index.add(held)
                status = index.status()
            plan = slice_os.plan(status.words, corpus=corpus)
            yield status.words, "a folder", "disk", plan.embedded_disk, status.bytes


def _searched(url: str, name: str) -> int:
    """Return the bytes of the files that a search of vectors reads."""
    path = f"{url}/{name}/_stats/segments?include_segment_file_sizes=true"
    with urllib.request.urlopen(path) as answer:
        files = json.load(answer)["_all"]["primaries"]["segments"]["file_sizes"]
    return sum(files[ending]["size_in_bytes"] for ending in GRAPHS if ending in files)

"""Moving the name of an index, back and forth, under 200 searches a second by that name."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Sized
from pathlib import Path

import numpy as np
from opensearchpy import OpenSearch

import slice_os
from benchmarks.text import documents
from tests.cluster.launcher import start_cluster

TITLE = "Swapping under load"
WORDS = 5_000
RATE = 200
THREADS = 8
WARM = 75
"""Seconds of searches before anything is counted: a node that has just started answers a quarter
of what it does once its JVM has compiled the code that answers."""
BETWEEN = 5.0
"""Seconds of searches before the first, between two and after the last change."""
QUERY = "wants to cancel"


def run(data: Path | None) -> list[str]:
    """Search an index in a folder and one in a node, while their generations change."""
    rows = [
        "| an index in | while | searches/s | failed | empty | median | 99 % | longest |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        place = str(Path(folder) / "bench.slice")
        slice_os.index(documents(WORDS), place)
        with slice_os.open(place) as index:
            index.search(QUERY)
            rows += _rows("a folder", place, lambda: index.search(QUERY, rescore=0))
    with start_cluster(measured=True) as cluster:
        place = f"{cluster.url}/bench"
        settings = slice_os.ClusterSettings(replicas=0)
        slice_os.index(documents(WORDS), place, cluster=settings)
        body = slice_os.build_request(QUERY, place)
        client = OpenSearch(cluster.urls, pool_maxsize=THREADS, max_retries=0)

        def search() -> Sized:
            found: Sized = client.search(index="bench", body=body)["hits"]["hits"]
            return found

        rows += _rows("a node, by its alias", place, search)
        client.close()
    return [
        f"{RATE} searches a second are begun, whatever those before take: first while three "
        "generations are built from stored words, the first two made live, then while the third is "
        "made live and the name goes back three times. In a folder they are hybrid ones, not "
        "verified, from Python, of a node hybrid ones with opensearch-py, as an application sends "
        "them. Client, node and reindexing share the cores.",
        "",
        *rows,
    ]


def _rows(where: str, place: str, search: Callable[[], Sized]) -> list[str]:
    def build() -> None:
        for last in (False, False, True):
            slice_os.reindex(place, swap=not last)

    def move() -> None:
        slice_os.swap(place)
        for _ in range(3):
            time.sleep(BETWEEN)
            slice_os.rollback(place)

    steps = {"built, 2 swaps": build, "1 swap, 3 rollbacks": move}
    return [f"| {where} | {name} | {_searched(search, step)} |" for name, step in steps.items()]


def _searched(search: Callable[[], Sized], step: Callable[[], None]) -> str:
    failed, empty, took = [], [], []
    stop, begun, one = threading.Event(), [0], threading.Lock()
    start = time.monotonic() + WARM

    def work() -> None:
        while time.monotonic() < start:
            search()
        while not stop.is_set():
            with one:
                due, begun[0] = start + begun[0] / RATE, begun[0] + 1
            time.sleep(max(due - time.monotonic(), 0.0))
            began = time.monotonic()
            try:
                if not len(search()):
                    empty.append(began)
            except Exception as exc:
                failed.append(exc)
            took.append(time.monotonic() - began)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    time.sleep(WARM + BETWEEN)
    step()
    time.sleep(BETWEEN)
    stop.set()
    for thread in threads:
        thread.join()
    rate = len(took) / (time.monotonic() - start)
    half, most, last = (1000 * np.quantile(took, share) for share in (0.5, 0.99, 1.0))
    return (
        f"{rate:,.0f} | {len(failed)} of {len(took):,} | {len(empty)} | "
        f"{half:,.0f} ms | {most:,.0f} ms | {last:,.0f} ms"
    )

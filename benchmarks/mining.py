"""What mining a node finds and costs: as it is by default, by the graph, by every word."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import slice_os
from slice_os.storage.cluster import mining_scan as scan

DEGREES = (0.85, 0.9, 0.95)


def mining(index: slice_os.Index, phrases: list[str]) -> list[str]:
    """Return the table."""
    rows = [
        f"| mining {len(phrases)} phrases at degree | matches, every word read "
        "| found by the graph | recall | by default | the graph | every word |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for threshold in DEGREES:
        found: dict[str, set[tuple[Any, ...]]] = {}
        taken = {}
        for way in ("default", "graph", "words"):
            with _always_the_graph() if way == "graph" else nullcontext():
                start = time.perf_counter()
                found[way] = {
                    (m.phrase, m.document, m.passage, m.start, m.end)
                    for m in index.mine(
                        phrases, min_degree=threshold, rescore=False, graph=way != "words"
                    )
                }
                taken[way] = time.perf_counter() - start
        common = len(found["words"] & found["graph"])
        times = " | ".join(f"{taken[way]:.1f} s" for way in ("default", "graph", "words"))
        rows.append(
            f"| {threshold} | {len(found['words']):,} | {common:,} | "
            f"{common / max(len(found['words']), 1):.4f} | {times} |"
        )
        assert found["default"] >= found["words"] & found["graph"]
    return rows


@contextmanager
def _always_the_graph() -> Iterator[None]:
    """Have mining ask the graph, whatever a sample says."""
    chosen = scan.Scan.graph_pays
    scan.Scan.graph_pays = lambda self: True  # type: ignore[method-assign]
    try:
        yield
    finally:
        scan.Scan.graph_pays = chosen  # type: ignore[method-assign]

"""Peak memory of indexing and mining: it must not grow with the corpus or the phrases.

Each run is a process of its own. Starts a node for what a cluster is asked (tests/cluster).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.cluster.launcher import start_cluster

TITLE = "Memory of indexing and mining"
EMBEDDED = (500_000, 2_000_000)
CLUSTER = (50_000, 200_000)
PHRASES = (200, 2000)
DEGREE = 0.9
MAPPED = """\
An embedded index is mapped into memory where it is mined: some 830 MiB of those figures are the
index itself, which the system takes back when it needs the room."""
PEAK = r"""
import re
# Not getrusage: a child's begins at its parent's peak.
peak = int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1])
print(count, seconds, peak)
"""
INDEX = (
    r"""
import sys, slice_os
from benchmarks.text import documents
report = slice_os.index(documents(int(sys.argv[2])), sys.argv[1])
count, seconds = report.words, report.seconds
"""
    + PEAK
)
MINE = (
    r"""
import sys, time, slice_os
from benchmarks.text import phrases
from benchmarks.memory import DEGREE
wanted = phrases(int(sys.argv[2]))
start = time.perf_counter()
with slice_os.open(sys.argv[1]) as index:
    count = sum(1 for _ in index.mine(wanted, min_degree=DEGREE))
seconds = time.perf_counter() - start
"""
    + PEAK
)


def run(data: Path | None) -> list[str]:
    """Index into folders and into a node with the default encoder; mine the larger of each."""
    rows = ["| what | peak resident memory | |", "|---|---:|---:|"]
    with tempfile.TemporaryDirectory() as folder:
        rows += _rows("a folder", lambda size: f"{folder}/{size}.slice", EMBEDDED)
    with start_cluster(heap="1g", measured=True) as cluster:
        rows += _rows("a node", lambda size: f"{cluster.url}/bench-{size}", CLUSTER)
    return [*rows, "", MAPPED]


def _rows(where: str, location: Callable[[int], str], sizes: tuple[int, ...]) -> list[str]:
    rows = []
    for size in sizes:
        words, seconds, peak = _measured(INDEX, location(size), size)
        rate = words / seconds
        rows.append(f"| {words:,.0f} words into {where} | {peak:,.0f} MiB | {rate:,.0f} words/s |")
    for count in PHRASES:
        matches, seconds, peak = _measured(MINE, location(sizes[-1]), count)
        rows.append(
            f"| mining {count:,} phrases at {DEGREE} there, {matches:,.0f} matches | "
            f"{peak:,.0f} MiB | {seconds:,.0f} s |"
        )
    return rows


def _measured(program: str, *arguments: object) -> tuple[float, float, float]:
    """Return what a program counts, its seconds, and the most memory it had, in MiB."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    count, seconds, kilobytes = map(float, done.stdout.split())
    return count, seconds, kilobytes / 1024

"""Peak memory of indexing: it must not grow with the corpus. Each run is a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TITLE = "Memory while indexing"
SIZES = (1_000_000, 4_000_000)
CHILD = r"""
import re, sys, tempfile
import slice_os
from benchmarks.text import documents
with tempfile.TemporaryDirectory() as folder:
    report = slice_os.index(documents(int(sys.argv[1])), folder + "/bench.slice")
# Not getrusage: a child's begins at its parent's peak.
peak = re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1]
print(report.words, report.seconds, peak)
"""


def run(data: Path | None) -> list[str]:
    """Index one and four million words with the default encoder."""
    rows = ["| words | peak resident memory | words/s |", "|---:|---:|---:|"]
    for size in SIZES:
        done = subprocess.run(
            [sys.executable, "-c", CHILD, str(size)], capture_output=True, text=True, check=True
        )
        words, seconds, kilobytes = done.stdout.split()
        rate = int(words) / float(seconds)
        rows.append(f"| {int(words):,} | {int(kilobytes) / 1024:,.0f} MiB | {rate:,.0f} |")
    return rows

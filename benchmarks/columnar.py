"""Reading a Parquet file of a million rows: how fast against encoding, and in what memory."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path

import slice_os
from benchmarks.text import passages

TITLE = "Reading Parquet"
ROWS = 1_000_000
WORDS = 100_000
ENCODED = 20_000
"""Words that are indexed, to compare with."""
READ = """
import pathlib, re, resource, sys, time
from slice_os.corpus import parse_process, read
began, words, peaks = time.perf_counter(), 0, []
for number, document in enumerate(read(sys.argv[1]), start=1):
    words += document.text.count(" ") + 1
    if number % 250_000 == 0:
        status = pathlib.Path("/proc/self/status").read_text()
        peaks.append(int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) >> 10)
took = time.perf_counter() - began
parse_process._close_idle()
print(words, took, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10, *peaks)
"""


def run(data: Path | None) -> list[str]:
    """Read a file of four row groups, and index as much text as takes some seconds."""
    texts = passages(WORDS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.parquet"
        _write(path, texts)
        size = path.stat().st_size >> 20
        done = subprocess.run(
            [sys.executable, "-c", READ, path], capture_output=True, text=True, check=True
        )
        words, seconds, parser, *peaks = map(float, done.stdout.split())
        rate = _indexed(f"{folder}/b.slice", passages(ENCODED))
    share = seconds / (seconds + words / rate)
    grown = ", ".join(f"{peak:.0f}" for peak in peaks)
    return [
        f"{ROWS:,} rows of a .parquet of {size} MB in four row groups, {words / 1e6:.0f} M words "
        "of examples/, each row with an id, a text and a nested column; beside it the whole "
        "pipeline to the committed index.",
        "",
        "| what | figure |",
        "|---|---:|",
        f"| rows read a second | {ROWS / seconds:,.0f} |",
        f"| words read a second | {words / seconds:,.0f} |",
        f"| words indexed a second | {rate:,.0f} |",
        f"| reading, of the time of indexing | {share:.1%} |",
        f"| most memory after each quarter of the rows, MB | {grown} |",
        f"| most memory of the process that parses, MB | {parser:.0f} |",
    ]


def _write(path: Path, texts: list[str]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    kinds = {"id": pa.int64(), "text": pa.string()}
    schema = pa.schema({**kinds, "about": pa.struct(kinds)})
    group, endless = ROWS // 4, cycle(texts)
    with parquet.ParquetWriter(path, schema) as writer:
        for start in range(0, ROWS, group):
            rows = [
                {"id": n, "text": f"{n} {text}", "about": {"id": n, "text": "nested"}}
                for n, text in enumerate(islice(endless, group), start)
            ]
            table = pa.Table.from_pylist(rows, schema)
            writer.write_table(table, row_group_size=group)


def _indexed(location: str, texts: list[str]) -> float:
    """Return how many words a second are indexed."""
    rates = []
    with slice_os.open(location) as index:
        index.encoder  # noqa: B018 - loaded
        for turn in range(3):
            began = time.perf_counter()
            report = index.add((f"{turn}-{n}", text) for n, text in enumerate(texts))
            rates.append(report.encoded_words / (time.perf_counter() - began))
    return statistics.median(rates)

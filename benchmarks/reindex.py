"""Building the next generation of an embedded index: from stored words, and from text."""

from __future__ import annotations

import tempfile
from pathlib import Path

import slice_os
from benchmarks.text import documents
from benchmarks.timing import seconds

TITLE = "Reindexing"
WORDS = 50_000


def run(data: Path | None) -> list[str]:
    """Index real text once, then build it anew both ways, by turns."""
    with tempfile.TemporaryDirectory() as temporary:
        location = Path(temporary) / "bench.slice"
        slice_os.index(documents(WORDS), location)
        with slice_os.open(location) as index:
            words = index.status().words
        took: dict[str, list[float]] = {"words": [], "text": []}
        for _ in range(3):
            for source, times in took.items():
                times.append(seconds(lambda s=source: slice_os.reindex(location, source=s)))  # type: ignore[misc]
        copied = seconds(lambda: slice_os.reindex(location, to=Path(temporary) / "copy.slice"))
    by_words, by_text = min(took["words"]), min(took["text"])
    return [
        f"{words:,} words of examples/ in an embedded index, the checks and the swap included.",
        "",
        "| the next generation from | words/s | |",
        "|---|---:|---:|",
        f"| stored text | {words / by_text:,.0f} | 1.0 × |",
        f"| stored words | {words / by_words:,.0f} | {by_text / by_words:.1f} × |",
        f"| stored words, to another location | {words / copied:,.0f} | {by_text / copied:.1f} × |",
    ]

"""Encoding on two local workers of Ray, against `slice-os index` of the same files."""

from __future__ import annotations

import json
import os
import tempfile
from functools import partial
from pathlib import Path

import ray

import slice_os
from benchmarks.text import documents
from benchmarks.timing import seconds
from slice_os.integrations.ray import pack
from slice_os.types import Passage

TITLE = "Encoding on Ray"
WORDS = int(os.environ.get("BENCHMARK_RAY_WORDS", "2000000"))
FILES = 20


def run(data: Path | None) -> list[str]:
    """Index the same files in one process and by workers; compare what is stored."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        corpus = _written(folder / "corpus")
        started = seconds(partial(ray.init, num_cpus=2, include_dashboard=False))
        direct, packed, loaded = (folder / name for name in ("direct", "packed", "loaded"))
        alone = seconds(partial(slice_os.index, slice_os.read(corpus), direct))
        packing = seconds(partial(pack, slice_os.read(corpus), packed, workers=2))
        loading = seconds(partial(slice_os.load, packed, loaded))
        ray.shutdown()
        same = _held(direct) == _held(loaded)
    return [
        f"{WORDS:,} words of examples/ in {FILES} files; an index in one process on all cores, and "
        "two workers of one core each, whose start is counted, then `load`.",
        "",
        "| what | |",
        "|---|---:|",
        f"| `slice_os.index` | {alone:.1f} s |",
        f"| `pack` on Ray | {packing:.1f} s |",
        f"| `load` of what was packed | {loading:.1f} s |",
        f"| both, against one process | {(packing + loading) / alone:.2f} × |",
        f"| Ray's own start, once | {started:.1f} s |",
        f"| documents, passages and bytes of words the same | {'yes' if same else 'no'} |",
        "",
    ]


def _written(folder: Path) -> Path:
    """Return a folder of files with documents of some hundred words."""
    folder.mkdir()
    streams = [(folder / f"{n}.jsonl").open("w", encoding="utf-8") for n in range(FILES)]
    for number, document in enumerate(documents(WORDS, 400)):
        row = {"id": document.id, "text": document.text}
        streams[number % FILES].write(json.dumps(row) + "\n")
    for stream in streams:
        stream.close()
    return folder


def _held(location: Path) -> list[tuple[Passage, bytes]]:
    """Return the passages of an index, with the bytes of their words."""
    with slice_os.open(location) as index:
        return [(stored.passage, stored.packed.to_bytes()) for stored in index.passages()]

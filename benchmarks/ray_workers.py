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
WORDS = int(os.environ.get("BENCHMARK_RAY_WORDS", "400000"))
FILES = 20
TURNS = 2


def run(data: Path | None) -> list[str]:
    """Index the same files by turns, in one process and by workers; compare what is stored."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        corpus = _written(folder / "corpus")
        started = seconds(partial(ray.init, num_cpus=2, include_dashboard=False))
        alone, packing, loading = [], [], []
        for turn in range(TURNS):
            direct, packed, loaded = (folder / f"{name}-{turn}" for name in ("a", "b", "c"))
            alone.append(seconds(partial(slice_os.index, slice_os.read(corpus), direct)))
            packing.append(seconds(partial(pack, slice_os.read(corpus), packed, workers=2)))
            loading.append(seconds(partial(slice_os.load, packed, loaded)))
        ray.shutdown()
        same = _held(direct) == _held(loaded)
    one, workers, load = min(alone), min(packing), min(loading)
    return [
        f"{WORDS:,} words of examples/ in {FILES} files; an index in one process on all cores, and "
        f"two workers of one core each, then `load`; the best of {TURNS} by turns.",
        "",
        "| what | |",
        "|---|---:|",
        f"| `slice_os.index` | {one:.1f} s |",
        f"| `pack` on Ray | {workers:.1f} s |",
        f"| `load` of what was packed | {load:.1f} s |",
        f"| both, against one process | {(workers + load) / one:.2f} × |",
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

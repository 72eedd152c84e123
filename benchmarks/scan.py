"""The embedded index: scan against a plain read of the same bytes, search, opening, size."""

from __future__ import annotations

import random
import statistics
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import slice_os
from benchmarks.text import documents
from benchmarks.timing import seconds
from slice_os.spans import PackedPassage, length_window
from slice_os.storage.contract import IndexMeta, Writer
from slice_os.storage.local import LocalBackend
from slice_os.storage.local.compaction import segment_file
from slice_os.storage.local.database import connect, recorded_segments
from slice_os.storage.local.scan import best_cosines
from slice_os.storage.local.segments import Segment
from slice_os.text import split
from slice_os.types import Words

TITLE = "The embedded index"
WORDS = 1_000_000
MANY = 64
QUERIES = [
    "the customer wants to cancel", "limitation of liability", "a refund for a late delivery",
    "she was very tired of sitting by her sister", "either party may terminate this agreement",
    "my internet connection does not work", "change the seat of my flight", "governing law",
]  # fmt: skip


def run(data: Path | None) -> list[str]:
    """Build an index of a million words once, then time it warm."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "bench.slice"
        words = _build(folder)
        with closing(connect(folder)) as database:
            recorded = recorded_segments(database)
        segments = [Segment.open(segment_file(folder, n), row) for n, row in recorded.items()]
        size = sum(file.stat().st_size for file in (folder / "segments").iterdir())
        query = np.random.default_rng(0).normal(size=384).astype(np.float32)
        query /= np.linalg.norm(query)
        with ThreadPoolExecutor() as pool:
            scan = {
                lengths: (
                    sum(part.nbytes for s in segments for part in _parts(s, lengths)) / 1e9,
                    _median(lambda: list(pool.map(lambda s: _read(s, lengths), segments))),
                    _median(
                        lambda: list(
                            pool.map(
                                lambda s: best_cosines([s], query[None], [lengths], exact=True),
                                segments,
                            )
                        )
                    ),
                )
                for lengths in (range(1, 2), length_window(5), range(1, 21))
            }
        opening = _median(lambda: slice_os.open(folder).close())
        with slice_os.open(folder) as index:
            index.search("warm", size=10)
            search = {
                mode: [seconds(lambda: index.search(q, mode=mode)) for q in QUERIES * 3]
                for mode in ("hybrid", "dense", "lexical")
            }
            plain = [seconds(lambda: index.search(q, rescore=0)) for q in QUERIES * 3]
            together = _together(index)
            threads = _threads(index)
    rows = [
        f"{words:,} words in passages of at most 110, 384 dimensions, all in memory. The plain "
        "read sums the same bytes (vectors, scales, norms) with numpy, as integers, on all cores.",
        "",
        "| what is scanned | plain read | scan | ratio |",
        "|---|---:|---:|---:|",
    ]
    rows += [
        f"| spans of {lengths[0]} to {lengths[-1]} words | {gigabytes / read:.1f} GB/s | "
        f"{gigabytes / taken:.1f} GB/s | {100 * read / taken:.0f} % |"
        for lengths, (gigabytes, read, taken) in scan.items()
    ]
    rows += ["", "| what | figure |", "|---|---:|"]
    rows += [
        f"| search, {mode}, 10 hits, p50 | {1000 * statistics.median(times):.0f} ms |"
        for mode, times in search.items()
    ]
    return [
        *rows,
        f"| search, hybrid, --no-rescore, p50 | {1000 * statistics.median(plain):.0f} ms |",
        f"| opening the index, p50 | {1000 * opening:.1f} ms |",
        *together,
        *threads,
        f"| vector segments, bytes a word (384 dimensions) | {size / words:.1f} |",
    ]


def _one_by_one(index: slice_os.Index, queries: list[str], rescore: int) -> None:
    for query in queries:
        index.search(query, rescore=rescore)


def _together(index: slice_os.Index) -> list[str]:
    """Compare searches for many queries at once with the same searches one by one."""
    words = " ".join(" ".join(QUERIES).split() * 4).split()
    rng = random.Random(0)
    queries = [" ".join(rng.choices(words, k=rng.randint(3, 10))) for _ in range(MANY)]
    rows = []
    for said, rescore in (("", 1), (", --no-rescore", 0)):
        single, many = [], []
        for _ in range(3):  # by turns: the machine may be busy now and then
            single.append(seconds(partial(_one_by_one, index, queries, rescore)))
            many.append(seconds(partial(index.search_many, queries, rescore=rescore)))
        rows.append(
            f"| `search_many` of {MANY} queries{said} | {MANY / min(many):.0f} queries/s, "
            f"{min(single) / min(many):.1f} × one by one |"
        )
    return rows


def _threads(index: slice_os.Index) -> list[str]:
    """Compare searches in one thread with the same in several."""
    rows = []
    alone = 0.0
    for count in (1, 2, 8):
        with ThreadPoolExecutor(count) as pool:
            work = lambda: list(pool.map(lambda q: index.search(q, rescore=0), QUERIES * 8))  # noqa: E731
            taken = min(seconds(work) for _ in range(3))
        alone = alone or taken
        rows.append(
            f"| searches, --no-rescore, in {count} thread{'s' * (count > 1)} | "
            f"{len(QUERIES) * 8 / taken:.0f} queries/s, {alone / taken:.2f} × one thread |"
        )
    return rows


def _parts(segment: Segment, lengths: range) -> list[npt.NDArray[Any]]:
    """Return the arrays that a scan of these span lengths reads."""
    return [segment.vectors, segment.scales, segment.norms[lengths.start - 1 : lengths.stop - 1]]


def _read(segment: Segment, lengths: range) -> int:
    flat = [part.reshape(-1).view(np.uint8) for part in _parts(segment, lengths)]
    return sum(int(part[: len(part) // 8 * 8].view("<i8").sum()) for part in flat)


def _build(folder: Path) -> int:
    """Write a million words; the text is real, the vectors random (the scan cannot tell)."""
    info = slice_os.encoder_info()
    backend = LocalBackend.create(
        str(folder), IndexMeta(info.name, info.weights_hash, info.dimension)
    )
    rng = np.random.default_rng(0)
    words = 0
    with backend.writer() as writer:
        for document in documents(WORDS):
            words += _write(writer, document, rng, info.dimension)
    backend.close()
    return words


def _write(
    writer: Writer, document: slice_os.Document, rng: np.random.Generator, dimension: int
) -> int:
    writer.begin(document)
    for passage in split(document):
        ends = np.cumsum([len(word) + 1 for word in passage.text.split()], dtype=np.int32) - 1
        starts = np.concatenate(([0], ends[:-1] + 1)).astype(np.int32)
        vectors = rng.standard_normal((len(ends), dimension), dtype=np.float32)
        words = Words(starts, ends, vectors)
        writer.put(passage, PackedPassage.pack(words, 20, passage))
    return writer.finish()


def _median(work: Callable[[], object], rounds: int = 9) -> float:
    work()
    return statistics.median(seconds(work) for _ in range(rounds))

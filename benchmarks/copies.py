"""An index of any size on real text: one that was encoded, and copies of it that rank otherwise."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np

from slice_os.spans import PackedPassage, dequantize, quantize
from slice_os.storage.local.compaction import segment_file
from slice_os.storage.local.database import connect, record_segment, recorded_segments
from slice_os.storage.local.segments import Recorded, Segment, write_segment
from slice_os.types import Float32

ANGLE = 0.2
"""By about how much a copy's vectors are turned, in radians."""


def write_copies(source: Path, folder: Path, count: int) -> int:
    """Write an index that holds another one and `count` - 1 copies of it; return its words.

    Nothing is encoded. The vectors of each copy are turned by a rotation of its own, which leaves
    norms as they are: its passages have other degrees than those they are copies of, as much apart
    as if the query was another one.
    """
    shutil.copytree(source, folder)
    rng = np.random.default_rng(0)
    with closing(connect(folder)) as database:
        recorded = recorded_segments(database)
        keys, passages, last = (
            database.execute(f"SELECT ifnull(max({column}), 0) + 1 FROM {table}").fetchone()[0]
            for column, table in (("key", "documents"), ("key", "passages"), ("number", "segments"))
        )
        for copy in range(1, count):
            turned = _rotation(rng, Segment.open(*_file(folder, recorded, 0)).vectors.shape[1])
            database.execute("BEGIN")
            for place, row in enumerate(recorded.values()):
                segment = Segment.open(*_file(folder, recorded, place))
                number = row.number + copy * last
                written = write_segment(
                    segment_file(folder, number), list(_turned(segment, turned))
                )
                record_segment(database, Recorded(number, row.passages, row.words, *written))
            moved = {"document": copy * keys, "passage": copy * passages, "segment": copy * last}
            for table, values in _COPIED.items():
                kept = "key < :first" if table != "hidden" else "segment < :first"
                first = {"documents": keys, "passages": passages, "hidden": last}[table]
                database.execute(
                    f"INSERT INTO {table} SELECT {values} FROM {table} WHERE {kept}",
                    {**moved, "copy": f"{copy}/", "first": first},
                )
            database.execute("COMMIT")
        return sum(row.words for row in recorded_segments(database).values())


_COPIED = {
    "documents": "key + :document, :copy || id, title, metadata, hash, run, source, digest",
    "passages": (
        'key + :passage, document + :document, number, start, "end", title, text, hash, words,'
        " segment + :segment, ordinal, pending, length"
    ),
    "hidden": "segment + :segment, ordinal, words",
}


def _file(folder: Path, recorded: dict[int, Recorded], place: int) -> tuple[Path, Recorded]:
    row = list(recorded.values())[place]
    return segment_file(folder, row.number), row


def _rotation(rng: np.random.Generator, dimension: int) -> Float32:
    """Return a rotation of all directions by about ANGLE, float32 ``[d, d]``."""
    skew = rng.normal(size=(dimension, dimension))
    skew = (skew - skew.T) * ANGLE / np.sqrt(2 * dimension)
    unit = np.eye(dimension)
    # Cayley's form of a rotation.
    rotation: Float32 = np.linalg.solve(unit + skew / 2, unit - skew / 2).astype(np.float32)
    return rotation


def _turned(segment: Segment, rotation: Float32) -> Iterator[PackedPassage]:
    codes, scales = quantize(dequantize(segment.vectors, segment.scales) @ rotation)
    for ordinal in range(len(segment.bounds) - 1):
        words = segment.slice(ordinal)
        yield replace(segment.passage(ordinal), codes=codes[words], scales=scales[words])

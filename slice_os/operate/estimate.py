"""What a reindex would take, measured on a sample that is written somewhere else."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from slice_os.encoders import Encoder
from slice_os.operate.copying import Copier
from slice_os.operate.sample_checks import draw_documents
from slice_os.storage import Backend, backend_for
from slice_os.storage.contract import IndexMeta
from slice_os.types import Plain

SAMPLE = 400
"""Documents that a plan is measured on, at most,"""
SAMPLE_PASSAGES = 200
"""and about so many passages."""


@dataclass(frozen=True, slots=True)
class ReindexPlan(Plain):
    """What a reindex does: from which `source`, to which generation, how much of it and how long.

    `passages`, `words` and `documents` are those of the live generation; `bytes` and `seconds` are
    measured on a sample of its documents, with the new settings: bytes without replicas, seconds
    without what a cluster takes to merge.
    """

    location: str
    source: str
    generation: int
    documents: int
    passages: int
    words: int
    bytes: int
    seconds: float
    settings: dict[str, Any]


def plan(
    live: Backend,
    where: str,
    meta: IndexMeta,
    settings: Mapping[str, Any],
    source: str,
    number: int,
    encoder: Encoder | None,
    options: Mapping[str, Any],
) -> ReindexPlan:
    """Write a sample to an index beside `where`, measure it, and delete it."""
    state, sample = live.status(), _sample(live)
    with _beside(where, meta, settings, options) as target:
        empty = target.status().bytes
        copier = Copier(live, target, encoder)
        if sample:
            copier.copy(dict.fromkeys(sample[:1], ""))  # the first takes longer
        began = time.monotonic()
        copier.copy(dict.fromkeys(sample, ""))
        took = time.monotonic() - began
        made = target.status()
    share = state.words / made.words if made.words else 0.0
    return ReindexPlan(
        live.location,
        source,
        number,
        state.documents,
        state.passages,
        state.words,
        int(empty + (made.bytes - empty) * share),
        took * share,
        {**asdict(meta), **settings},
    )


def _sample(live: Backend) -> list[str]:
    """Return the ids of some documents at random, with enough words in all."""
    drawn, words, end = draw_documents(live, SAMPLE), 0, 0
    while words < SAMPLE_PASSAGES * live.meta.passage_words and end < len(drawn):
        begin, end = end, 2 * end + 1
        for stored in live.passages(documents=drawn[begin:end]):
            words += stored.packed.own_words(stored.passage)
    return drawn[:end]


@contextmanager
def _beside(
    where: str, meta: IndexMeta, settings: Mapping[str, Any], options: Mapping[str, Any]
) -> Iterator[Backend]:
    """Make an index of the same kind, and delete it in the end."""
    kind = backend_for(where)
    if "://" not in where:
        with (
            tempfile.TemporaryDirectory(prefix="slice-os-plan-") as folder,
            closing(kind.create(str(Path(folder) / "sample"), meta)) as target,
        ):
            yield target
        return
    given = {**settings, "replicas": 0}
    # Where a role lets generations be made, it lets this be made.
    beside = f"{where.rstrip('/')}-0plan-{uuid4().hex[:8]}"
    with closing(kind.create(beside, meta, settings=given, **options)) as target:
        try:
            yield target
        finally:
            target.drop(1)

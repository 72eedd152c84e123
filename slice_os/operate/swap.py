"""Letting a location name another generation, with nothing lost that was written."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from slice_os.errors import LocationError
from slice_os.operate.copying import Copier
from slice_os.operate.lease import Lease
from slice_os.operate.sample_checks import CheckError, drawn_queries, overlap
from slice_os.storage import Backend, backend_for
from slice_os.storage.contract import IndexMeta

PASSES = 5
"""Times that what was written meanwhile is copied before writers are held off."""


def open_live(location: str | Path, options: Mapping[str, Any] | None = None) -> Backend:
    """Open the live generation of an index, or raise LocationError."""
    location = os.fspath(location)
    backend = backend_for(location).open(location, **(options or {}))
    if backend is None:
        raise LocationError(f"There is no index at {location}: check the location.")
    return backend


def words_suffice(live: IndexMeta, target: IndexMeta, *, any_head: bool = False) -> bool:
    """Tell whether the stored words of one generation are what another stores of the same text.

    With `any_head` the phrase head may be another: its norms follow from the words.
    """
    same = ["weights_hash", "dimension", "max_words", "passage_words"]
    same += [] if any_head else ["phrase_head"]
    return all(getattr(live, name) == getattr(target, name) for name in same)


def catch_up(live: Backend, copier: Copier) -> tuple[int, object]:
    """Copy until nothing is left, or often enough; return how much, and the last change token."""
    copied = 0
    for _ in range(PASSES):
        token = live.changes()
        more = copier.copy()
        copied += more
        if not more:
            break
    return copied, token


def make_live(
    live: Backend, target: Backend, lease: Lease, copier: Copier, accept_rejects: bool = False
) -> int:
    """Copy what was written meanwhile, hold writers off for the last of it, and move the name.

    Returns:
        How many documents were copied.

    Raises:
        CheckError: what is live has documents that the other did not take, unless that is accepted,
            or that a broken-off run has left half replaced; or a search by the name does not work
            afterwards, and the name is moved back.
    """
    copied, token = catch_up(live, copier)
    with live.hold():
        lease.check()
        former = next(one.number for one in live.generations() if one.state == "live")
        if not live.is_live():
            raise LocationError(
                f"Another generation of {live.location} was made live meanwhile: run this again."
            )
        if live.changes() != token:
            copied += copier.copy()
            if copier.copy():  # which compares the hashes of all documents
                raise CheckError(
                    f"The next generation of {live.location} does not hold what was copied to it",
                    hint="look at it ('slice-os generations') and run reindex again.",
                )
        if copier.refused and not accept_rejects:
            raise CheckError(
                f"Documents of {live.location} were rejected, which the next generation would not "
                f"hold: {len(copier.refused):,} ({copier.refused[0]!r} for one). The live one is "
                "left alone",
                hint="mend them or the settings, or accept it (--accept-rejects).",
            )
        if left := copier.left():
            raise CheckError(
                f"Documents of {live.location} are not whole, as a run was broken off: "
                f"{len(left):,} ({left[0]!r} for one): run that again, or delete them, then run "
                "this again."
            )
        note = {"state": "retired", "half": copier.half, "refused": copier.refused}
        live.note_build({**note, "corpus": copier.took_corpus})
        live.swap(lease.number)
        try:
            with closing(open_live(live.location, live.connection)) as now:
                query = drawn_queries(now)[:1]
                overlap(now, query, now, query)
        except BaseException:
            target.swap(former)
            raise
    target.note_build(None)
    return copied

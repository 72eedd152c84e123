"""The next generation of an index, built beside the live one and made live when it is whole."""

from __future__ import annotations

import getpass
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from slice_os.backends import Backend, backend_for
from slice_os.backends.base import FORMAT, Generation, IndexMeta
from slice_os.encoder import Encoder, EncoderLike, encoder_info, open_encoder
from slice_os.errors import EncoderMismatchError, IndexLockedError, LocationError
from slice_os.lifecycle.checks import (
    CheckError,
    check_words,
    drawn_queries,
    encoded,
    overlap,
)
from slice_os.lifecycle.copying import copy_documents
from slice_os.pipeline import LOOKED_UP
from slice_os.records import Plain, Reject

Source = Literal["words", "text"]
LEASE = 120.0
"""Seconds after which somebody who builds and has not said so is taken for dead."""
OVERLAP = 0.8
"""The least mean share of the ten best that are as near to the query as those of the live one."""
PASSES = 5
"""Times that what was written meanwhile is copied before writers are held off."""
SAMPLE = 50
"""Passages that a plan is measured on."""


@dataclass(frozen=True, slots=True)
class ReindexPlan(Plain):
    """What a reindex does: from which `source`, to which generation, how much of it and how long.

    `seconds` is measured on a sample, without what a cluster takes to merge.
    """

    location: str
    source: Source
    generation: int
    documents: int
    passages: int
    words: int
    bytes: int
    seconds: float
    settings: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ReindexReport(Plain):
    """What a reindex did.

    `overlap` is the share of the sample queries' ten best that are those of the live generation, or
    as near; None if not compared. `live` tells whether the generation is the live one now.
    """

    location: str
    source: Source
    generation: int
    documents: int
    copied: int
    rejected: int
    seconds: float
    overlap: float | None
    live: bool


def reindex(
    location: str | Path,
    *,
    encoder: EncoderLike = None,
    device: str = "auto",
    threads: int | None = None,
    passage_words: int | None = None,
    store: Sequence[str] | None = None,
    cluster: Mapping[str, Any] | None = None,
    source: Source | None = None,
    to: str | Path | None = None,
    queries: Sequence[str] = (),
    least_overlap: float = OVERLAP,
    swap: bool = True,
    dry_run: bool = False,
    max_rate: float | None = None,
    on_progress: Callable[[int, int], object] = lambda done, of: None,
    on_reject: Callable[[Reject], None] = lambda reject: None,
) -> ReindexReport | ReindexPlan:
    """Build the next generation of an index, check it, and let the location name it.

    What is not given stays as it is. The live generation is searched and written to meanwhile;
    what is written is copied before the swap. Interrupted, or killed, it goes on when it is called
    again, by anyone.

    Args:
        location: The index.
        encoder: Of the next generation, see `slice_os.load_encoder`; None: the same. It is only
            loaded if text is to be encoded, or `queries` are given.
        device: See `slice_os.load_encoder`.
        threads: See `slice_os.load_encoder`.
        passage_words: The most words of a passage.
        store: The metadata that hits bring along.
        cluster: What changes of an index in a cluster (`slice_os.ClusterSettings`).
        source: ``words``, the stored word vectors, or ``text``, encoded anew; None: words if they
            suffice.
        to: Another location, which is to hold the same, instead of a next generation: a folder, or
            one in this or another cluster. It may hold nothing else.
        queries: That are asked of both generations; None: spans drawn from the text.
        least_overlap: The least mean share of their ten best that must be as near to them as those
            of the live generation, if the encoder is the same.
        swap: Whether to make it live when the checks have passed; else `slice_os.swap` does.
        dry_run: Return the plan, and change nothing.
        max_rate: The most passages a second; None for as many as it can.
        on_progress: Told how many of how many documents have been looked at.
        on_reject: Handed what cannot be indexed.

    Raises:
        LocationError: there is no index, or somebody else is building its next generation.
        CheckError: the next generation is not what it should be; the live one is left alone.
    """
    began = time.monotonic()
    live = open_live(location)
    try:
        info = encoder_info(encoder) if encoder is not None else None
        meta = live.meta
        if info is not None:
            meta = replace(meta, encoder=info.name, family=info.family, dimension=info.dimension)
        meta = replace(
            meta,
            passage_words=passage_words or meta.passage_words,
            store=meta.store if store is None else tuple(store),
        )
        chosen = _source(live, meta, source)
        build = None if to is not None else find_build(live)
        if dry_run:
            return _plan(live, meta, chosen, build, encoder, cluster or {}, device, threads)
        if to is not None:
            target, swap = _elsewhere(live, to, meta, cluster), False
        else:
            target = _target(live, meta, cluster or {}, build)
        needed = chosen == "text" or bool(queries)
        loaded = open_encoder(encoder, device, threads) if needed else nullcontext()
        note = _Lease(target, chosen, build, noted=to is None)
        with loaded as opened, note as lease:
            if opened is not None:
                _fits(opened, meta)
            documents = live.status().documents
            rejected: set[str] = set()

            def reject(one: Reject) -> None:
                if one.document not in rejected:
                    rejected.add(one.document)
                    on_reject(one)

            def copy() -> int:
                def tell(done: int) -> None:
                    lease.renew(done, documents)
                    on_progress(done, documents)

                text_encoder = opened if chosen == "text" else None
                return copy_documents(live, target, text_encoder, max_rate, tell, reject)

            copied, _ = _catch_up(live, copy)
            share = _checked(live, target, opened, chosen, queries, least_overlap)
            lease.finish(share)
            if swap:
                copied += make_live(live, target, lease.number, copy)
        return ReindexReport(
            str(location),
            chosen,
            lease.number,
            target.status().documents,
            copied,
            len(rejected),
            time.monotonic() - began,
            share,
            swap,
        )
    finally:
        live.close()


def open_live(location: str | Path) -> Backend:
    """Open the live generation of an index, or raise LocationError."""
    location = os.fspath(location)
    backend = backend_for(location).open(location)
    if backend is None:
        raise LocationError(f"There is no index at {location}: check the location.")
    return backend


def _source(live: Backend, meta: IndexMeta, wanted: Source | None) -> Source:
    """Return the cheapest source that suffices, or the one that is wanted."""
    same = ("family", "dimension", "max_words", "passage_words")
    suffices = all(getattr(live.meta, name) == getattr(meta, name) for name in same)
    if wanted == "words" and not suffices:
        raise LocationError(
            "Stored words do not fit another encoder or passages of other lengths: leave --from "
            "out, or give --from text."
        )
    return wanted or ("words" if suffices else "text")


def _fits(encoder: Encoder, meta: IndexMeta) -> None:
    if encoder.info.family != meta.family:
        raise EncoderMismatchError(
            f"The next generation is for the encoder {meta.encoder} (family {meta.family[:12]}), "
            f"not for {encoder.info.name} (family {encoder.info.family[:12]}): give that encoder."
        )


def find_build(live: Backend) -> Generation | None:
    """Return the generation that was begun and is not live.

    Raises:
        IndexLockedError: somebody is building it.
    """
    found = [one for one in live.generations() if one.state in ("building", "ready")]
    if not found:
        return None
    build = found[-1].build
    if found[-1].state == "building" and _is_alive(build):
        raise IndexLockedError(
            f"The next generation of {live.location} is being built by {build['by']} since "
            f"{build['since']}, {build.get('done', 0):,} of {build.get('of', 0):,} documents: wait "
            "for it to end, or stop it."
        )
    return found[-1]


def _is_alive(build: Mapping[str, Any]) -> bool:
    """Tell whether who builds a generation is still at it, as far as can be told from here."""
    if time.time() - build.get("renewed", 0) > LEASE or build["by"] == _me():
        return False
    if build.get("host") == socket.gethostname() and os.name != "nt":
        try:
            os.kill(build["process"], 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
    return True


def _target(
    live: Backend, meta: IndexMeta, settings: Mapping[str, Any], build: Generation | None
) -> Backend:
    if build is None:
        return live.next_generation(meta, settings)
    target = live.generation(build.number)
    differs = {name for name, value in settings.items() if build.settings.get(name) != value}
    if replace(target.meta, format=meta.format) != meta or differs:
        raise LocationError(
            f"The generation {build.number} of {live.location} was begun with other settings: go "
            "on with those, or delete it ('slice-os generations prune')."
        )
    return target


def _elsewhere(
    live: Backend, to: str | Path, meta: IndexMeta, settings: Mapping[str, Any] | None
) -> Backend:
    """Open or make the index of another location; LocationError if it holds something else."""
    location = os.fspath(to)
    kind = backend_for(location)
    target = kind.open(location)
    if target is None:
        options = {"settings": settings} if settings else {}
        return kind.create(location, replace(meta, format=FORMAT), **options)
    if replace(target.meta, format=meta.format) != meta:
        raise LocationError(f"The index {location} exists and is made otherwise: name another.")
    sources = target.sources()
    while some := [name for name, _ in islice(sources, LOOKED_UP)]:
        if others := set(some) - live.stored(some).keys():
            raise LocationError(
                f"The index {location} holds other documents ({min(others)!r} for one): name "
                "another location."
            )
    return target


def _me() -> str:
    with suppress(Exception):  # a user without a name
        return f"{getpass.getuser()}@{socket.gethostname()} (process {os.getpid()})"
    return f"{socket.gethostname()} (process {os.getpid()})"


class _Lease:
    """The note of who builds a generation, renewed while documents are copied."""

    def __init__(
        self, target: Backend, source: Source, build: Generation | None, *, noted: bool
    ) -> None:
        self._target, self._noted = target, noted
        generations = target.generations()
        self.number = build.number if build else generations[-1].number
        self._said: dict[str, Any] = {
            "state": "building",
            "by": _me(),
            "host": socket.gethostname(),
            "process": os.getpid(),
            "source": source,
            "since": datetime.now(tz=timezone.utc).isoformat(timespec="seconds"),
            "renewed": time.time(),
        }
        self._note(self._said)

    def _note(self, said: Mapping[str, Any]) -> None:
        if self._noted:
            self._target.note_build(said)

    def __enter__(self) -> _Lease:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:  # it may be taken over at once
            with suppress(Exception):
                self._note({**self._said, "renewed": 0})

    def renew(self, done: int, of: int) -> None:
        """Say how far it is, now and then."""
        if time.time() - self._said["renewed"] > LEASE / 8:
            self._said |= {"renewed": time.time(), "done": done, "of": of}
            self._note(self._said)

    def finish(self, share: float | None) -> None:
        """Say that it is whole and has passed its checks."""
        self._note({**self._said, "state": "ready", "overlap": share})


def _checked(
    live: Backend,
    target: Backend,
    encoder: Encoder | None,
    source: Source,
    queries: Sequence[str],
    least: float,
) -> float | None:
    """Return the overlap of the ten best, None for another encoder; CheckError if a check fails."""
    check_words(live, target, encoder if source == "text" else None)
    same = live.meta.family == target.meta.family
    if queries and encoder is not None:
        ours = encoded(queries, target, encoder)
        theirs = ours if same else []
    elif same:
        ours = theirs = drawn_queries(live)
    else:
        ours, theirs = drawn_queries(target), []
    if not same:
        overlap(target, ours, target, ours)
        return None
    share = overlap(live, theirs, target, ours)
    if share < least:
        raise CheckError(
            f"Of the ten best of the sample queries {100 * share:.0f} % are those of the live "
            f"generation or as near, less than the {100 * least:.0f} % asked for: look at them, "
            "or ask for less (--least-overlap)."
        )
    return share


def _catch_up(live: Backend, copy: Callable[[], int]) -> tuple[int, object]:
    """Copy until nothing is left, or often enough; return how much, and since when nothing is."""
    copied = 0
    for _ in range(PASSES):
        before = live.changes()
        more = copy()
        copied += more
        if not more:
            break
    return copied, before


def make_live(
    live: Backend,
    target: Backend,
    number: int,
    copy: Callable[[], int],
) -> int:
    """Copy what was written meanwhile, hold writers off for the last of it, and move the name.

    Returns:
        How many documents were copied.

    Raises:
        CheckError: a search by the name does not work afterwards; it is moved back.
    """
    copied, before = _catch_up(live, copy)
    former = next(one.number for one in live.generations() if one.state == "live")
    queries = drawn_queries(live)[:1]
    with live.hold():
        if live.changes() != before:
            copied += copy()
            if copy():  # which compares the hashes of all documents
                raise CheckError(
                    f"The next generation of {live.location} does not hold what was copied to it: "
                    "look at it ('slice-os generations') and run reindex again."
                )
        live.swap(number)
        try:
            with closing(open_live(live.location)) as now:
                ours = queries if now.meta.family == live.meta.family else drawn_queries(now)[:1]
                overlap(now, ours, now, ours)
        except Exception:
            live.swap(former)
            raise
    target.note_build(None)
    return copied


def _plan(
    live: Backend,
    meta: IndexMeta,
    source: Source,
    build: Generation | None,
    encoder: EncoderLike,
    settings: Mapping[str, Any],
    device: str,
    threads: int | None,
) -> ReindexPlan:
    """Measure a sample of passages."""
    state = live.status()
    number = build.number if build else max(one.number for one in live.generations()) + 1
    began = time.monotonic()
    sample = list(islice(live.passages(), SAMPLE))
    if source == "text" and sample:
        with open_encoder(encoder, device, threads) as opened:
            list(opened.encode_words([sample[0].passage.text]))  # the first takes longer
            began = time.monotonic()
            list(opened.encode_words(one.passage.text for one in sample))
    each = (time.monotonic() - began) / max(len(sample), 1)
    return ReindexPlan(
        live.location,
        source,
        number,
        state.documents,
        state.passages,
        state.words,
        state.bytes,
        each * state.passages,
        {**asdict(meta), **settings},
    )

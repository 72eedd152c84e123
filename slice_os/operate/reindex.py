"""The next generation of an index, built beside the live one and made live when it is whole."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from slice_os.corpus import Corpus
from slice_os.encoders import EncoderLike, encoder_info, open_encoder
from slice_os.errors import LocationError
from slice_os.ingest import LOOKED_UP, claim_roots
from slice_os.operate.copying import Copier
from slice_os.operate.estimate import ReindexPlan, plan
from slice_os.operate.lease import Lease, find_build
from slice_os.operate.sample_checks import check
from slice_os.operate.swap import catch_up, make_live, open_live, words_suffice
from slice_os.storage import Backend, backend_for, connection
from slice_os.storage.contract import FORMAT, Generation, IndexMeta
from slice_os.types import Document, OnProgress, Plain, Reject

Source = Literal["words", "text", "corpus"]
OVERLAP = 0.8
"""The least mean share of the ten best that are as near to the query as those of the live one."""


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
    corpus: Corpus | Iterable[Document] | None = None,
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
    accept_rejects: bool = False,
    dry_run: bool = False,
    max_rate: float | None = None,
    on_progress: OnProgress = lambda share: None,
    on_reject: Callable[[Reject], None] = lambda reject: None,
    credentials: Mapping[str, str] | None = None,
    client: Any = None,
) -> ReindexReport | ReindexPlan:
    """Build the next generation of an index, check it, and let the location name it.

    What is not given stays as it is. The live generation is searched and written to meanwhile;
    what is written is copied before the swap. Interrupted, or killed, it goes on when it is called
    again, by anyone.

    Args:
        location: The index.
        corpus: Documents to encode (`slice_os.read`) instead of what the index holds of those with
            the same ids; the others are taken from the index. What is written to the index from
            when they are read is newer.
        encoder: Of the next generation, see `slice_os.load_encoder`; None: the same. It is only
            loaded if text is to be encoded, or `queries` are given.
        device: See `slice_os.load_encoder`.
        threads: See `slice_os.load_encoder`.
        passage_words: The most words of a passage.
        store: The metadata that hits bring along.
        cluster: What changes of an index in a cluster (`slice_os.ClusterSettings`).
        source: ``words``, the stored word vectors, ``text``, encoded anew, or ``corpus``; None: the
            corpus if it is given, else words if they suffice.
        to: Another location, which is to hold the same, instead of a next generation: a folder, or
            one in this or another cluster. It may hold nothing else.
        queries: That are asked of both generations; None: spans drawn from the text.
        least_overlap: The least mean share of their ten best that must be as near to them as those
            of the live generation, if the encoder is the same.
        swap: Whether to make it live when the checks have passed; else `slice_os.swap` does.
        accept_rejects: Make it live although it lacks documents that were rejected.
        dry_run: Return the plan, and change nothing.
        max_rate: The most passages a second; None for as many as it can.
        on_progress: Is told now and then what share of the documents have been looked at.
        on_reject: Handed what cannot be indexed.
        credentials: Of the cluster that holds the index, or `to`, or both; see `slice_os.Index`.
        client: Likewise.

    Raises:
        LocationError: there is no index, or somebody else is building its next generation.
        CheckError: the next generation is not what it should be; the live one is left alone.
    """
    began = time.monotonic()
    options = connection(credentials, client)
    from_folder = to is not None and "://" not in os.fspath(location)
    live = open_live(location, {} if from_folder else options)
    with closing(live):
        meta = _next_meta(live.meta, encoder, passage_words, store)
        chosen = _source(live, meta, source, corpus is not None)
        if corpus is not None and to is not None:
            raise LocationError(
                "A copy is made of what is stored",
                hint="leave the corpus out, or --to.",
            )
        stored = chosen if corpus is None else _source(live, meta, None, False)
        roots = claim_roots(corpus, live)
        build = None if to is not None else find_build(live)
        needed = "text" in (chosen, stored) or chosen == "corpus" or (queries and not dry_run)
        loaded = open_encoder(encoder, device, threads) if needed else nullcontext()
        if dry_run:
            where = str(location) if to is None else os.fspath(to)
            number = build.number if build else max(one.number for one in live.generations()) + 1
            settings = dict(cluster or {}) if to else _settings(live, meta, cluster or {})
            with loaded as opened:
                reached = live.connection if to is None else options if "://" in where else {}
                return plan(live, where, meta, settings, chosen, number, opened, reached)
        if to is not None:
            target, swap = _elsewhere(live, to, meta, cluster, options), False
        else:
            target = _target(live, meta, cluster or {}, build)
        with (
            closing(target),
            loaded as opened,
            Lease(target, chosen, build, noted=to is None) as lease,
        ):
            if opened is not None:
                meta.check_encoder(live.location, opened.info)
            documents = live.status().documents
            rejected: set[str] = set()

            def reject(reject: Reject) -> None:
                if reject.document not in rejected:
                    rejected.add(reject.document)
                    on_reject(reject)

            def tell(done: int) -> None:
                lease.renew(done, documents)
                on_progress(min(done / max(documents, 1), 1.0))

            by_text = opened if stored == "text" else None
            head = None
            if meta.phrase_head != live.meta.phrase_head:
                with open_encoder(encoder, device, threads) as given:
                    head = given.head
            copier = Copier(live, target, by_text, max_rate, tell, reject, head)
            copied = 0
            if corpus is not None and opened is not None:
                copied += copier.take(corpus, opened, roots)
            copied += catch_up(live, copier)[0]
            share = check(
                live,
                target,
                opened,
                from_words=chosen == "words",
                queries=queries,
                least=least_overlap,
            )
            lease.passed()
            if swap:
                copied += make_live(live, target, lease, copier, accept_rejects)
            else:
                lease.release()
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


def _next_meta(
    live: IndexMeta, encoder: EncoderLike, passage_words: int | None, store: Sequence[str] | None
) -> IndexMeta:
    """Return the description of the next generation: what is not given stays as it is.

    The phrase head of the live one's encoder may have changed since.
    """
    meta = replace(
        live,
        passage_words=passage_words or live.passage_words,
        store=live.store if store is None else tuple(store),
    )
    info = encoder_info(encoder)
    if encoder is None and info.weights_hash != live.weights_hash:  # the packaged one is not it
        return meta
    return replace(
        meta,
        encoder=info.name,
        weights_hash=info.weights_hash,
        dimension=info.dimension,
        phrase_head=info.phrase_head,
    )


def _source(live: Backend, meta: IndexMeta, given: Source | None, has_corpus: bool) -> Source:
    """Return the source that is given, or the cheapest that suffices."""
    if has_corpus and given is None:
        return "corpus"
    if has_corpus != (given == "corpus"):
        raise LocationError(
            "Give the paths of the corpus with --from corpus, and with no other: nothing else is "
            "read from them."
        )
    suffices = words_suffice(live.meta, meta, any_head=True)
    if given == "words" and not suffices:
        raise LocationError(
            "Stored words do not fit another encoder or passages of other lengths",
            hint="leave --from out, or give --from text.",
        )
    return given or ("words" if suffices else "text")


def _settings(live: Backend, meta: IndexMeta, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return how the next generation is made: as the live one, but for what is given."""
    settings = next(one.settings for one in live.generations() if one.state == "live")
    if meta.dimension != live.meta.dimension:
        settings = {name: value for name, value in settings.items() if name != "dimensions"}
    return {**settings, **given}


def _target(
    live: Backend, meta: IndexMeta, settings: Mapping[str, Any], build: Generation | None
) -> Backend:
    if settings.get("dimensions") == meta.dimension:  # which is noted as all
        settings = {**settings, "dimensions": None}
    if build is None:
        return live.next_generation(meta, settings)
    target = live.generation(build.number)
    differs = {name for name, value in settings.items() if build.settings.get(name) != value}
    if replace(target.meta, format=meta.format) != meta or differs:
        raise LocationError(
            f"The generation {build.number} of {live.location} was begun with other settings",
            hint="go on with those, or delete it ('slice-os generations prune --unfinished').",
        )
    return target


def _elsewhere(
    live: Backend,
    to: str | Path,
    meta: IndexMeta,
    settings: Mapping[str, Any] | None,
    connected: Mapping[str, Any],
) -> Backend:
    """Open or make the index of another location; LocationError if it holds something else."""
    location = os.fspath(to)
    kind = backend_for(location)
    options = dict(connected) if "://" in location or not live.connection else {}
    target = kind.open(location, **options)
    if target is None:
        options |= {"settings": settings} if settings else {}
        target = kind.create(location, replace(meta, format=FORMAT), **options)
    if replace(target.meta, format=meta.format) != meta:
        raise LocationError(f"The index {location} exists and is made otherwise: name another.")
    sources = target.sources()
    while names := [name for name, _ in islice(sources, LOOKED_UP)]:
        if others := set(names) - live.stored(names).keys():
            raise LocationError(
                f"The index {location} holds other documents ({min(others)!r} for one): name "
                "another location."
            )
    return target

"""The generations of an index: listing them, making one live, going back, deleting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any, NoReturn

from slice_os.encoders import EncoderLike, open_encoder
from slice_os.errors import LocationError, WritesLostError
from slice_os.operate.copying import Copier
from slice_os.operate.lease import Lease, find_build
from slice_os.operate.swap import catch_up, make_live, open_live, words_suffice
from slice_os.storage import connection
from slice_os.storage.contract import Backend, Generation


def generations(
    location: str | Path,
    *,
    credentials: Mapping[str, str] | None = None,
    client: Any = None,
) -> list[Generation]:
    """Return the generations of an index: live, building, ready to be made live, retired.

    `credentials` and `client` are those of `slice_os.Index`, here and below.

    Raises:
        LocationError: there is no index.
    """
    with closing(open_live(location, connection(credentials, client))) as live:
        return live.generations()


def swap(
    location: str | Path,
    *,
    encoder: EncoderLike = None,
    device: str = "auto",
    threads: int | None = None,
    accept_rejects: bool = False,
    credentials: Mapping[str, str] | None = None,
    client: Any = None,
) -> Generation:
    """Make the generation live that `reindex` has built and left; return it.

    What was written meanwhile is copied first; the encoder is needed if it was made from text.
    `accept_rejects` makes it live although it lacks documents that were rejected.

    Raises:
        LocationError: there is no index, or no generation that is ready.
        CheckError: it is not what it should be; the live one is left alone.
        IndexLockedError: somebody is building one, or making it live.
    """
    with closing(open_live(location, connection(credentials, client))) as live:
        build = find_build(live)
        if build is None or build.state != "ready":
            raise LocationError(
                f"No generation of {live.location} is ready",
                hint="'slice-os reindex' builds one.",
            )
        source = build.build["source"]
        if source == "corpus":
            raise LocationError(
                f"The generation {build.number} of {live.location} was made from a corpus, which "
                "is to be read again",
                hint="run the same 'slice-os reindex' without --no-swap.",
            )
        target, by_text = live.generation(build.number), source == "text"
        with (
            closing(target),
            open_encoder(encoder, device, threads) if by_text else nullcontext() as opened,
            Lease(target, source, build, state="ready") as lease,
        ):
            documents = live.status().documents
            copier = Copier(live, target, opened, on_done=lambda done: lease.renew(done, documents))
            make_live(live, target, lease, copier, accept_rejects)
        return build


def rollback(
    location: str | Path,
    *,
    keep_writes: bool | None = None,
    encoder: EncoderLike = None,
    device: str = "auto",
    threads: int | None = None,
    credentials: Mapping[str, str] | None = None,
    client: Any = None,
) -> Generation:
    """Make the generation live again that was live before this one; return it.

    With `keep_writes` the documents that differ by now are copied back, and those that were deleted
    are deleted there; with False they stay as they were, but for those that were just being written
    at the swap. By default they are kept if both generations are of one encoder and this one was
    not read from a corpus; else it is an error if there are any. Where the stored words do not
    suffice, the encoder is needed that the former generation was made by.

    Raises:
        LocationError: there is no index, or no retired generation.
        WritesLostError: documents were written since, and `keep_writes` is None.
        EncoderMismatchError: another encoder is needed.
        IndexLockedError: somebody is writing to an index in a folder.
    """
    with closing(open_live(location, connection(credentials, client))) as live:
        known = live.generations()
        now = next(generation.number for generation in known if generation.state == "live")
        before = [g for g in known if g.state == "retired" and g.number < now]
        if not before:
            raise LocationError(f"The index {live.location} has no generation to go back to.")
        former = before[-1]
        target, half = live.generation(former.number), former.build.get("half", [])
        keep = keep_writes
        if keep is None:
            same = live.meta.weights_hash == target.meta.weights_hash
            keep = same and not former.build.get("corpus", False)
        by_text = (keep or bool(half)) and not words_suffice(live.meta, target.meta)
        with (
            closing(target),
            open_encoder(encoder, device, threads) if by_text else nullcontext() as opened,
        ):
            copier = Copier(live, target, opened, spared=former.build.get("refused", ()))
            if keep:
                catch_up(live, copier)
            elif keep_writes is None and (lost := copier.differing()):
                _refuse(live.location, lost)
            with live.hold(wait=False):
                if keep:
                    copier.copy()
                elif half:
                    _complete(live, target, half, copier)
                live.note_build({"state": "rolled back"})
                live.swap(former.number)
            target.note_build(None)
        return former


def _refuse(location: str, lost: Sequence[str]) -> NoReturn:
    named = ", ".join(map(repr, lost[:5])) + (", ..." if len(lost) > 5 else "")
    raise WritesLostError(
        f"{len(lost):,} documents of {location} differ from those of the generation before and "
        f"would be lost ({named})",
        lost,
        hint="carry them over with --keep-writes, or leave them out with --drop-writes.",
    )


def _complete(live: Backend, target: Backend, half: Sequence[str], copier: Copier) -> None:
    """Make documents of `target` that are not whole what they are in `live`."""
    there = live.stored(half)
    with target.writer() as writer:
        writer.delete([name for name in half if name not in there])
    copier.copy({name: source for name, source in live.sources() if name in there})


def prune_generations(
    location: str | Path,
    keep: int = 1,
    *,
    unfinished: bool = False,
    credentials: Mapping[str, str] | None = None,
    client: Any = None,
) -> list[Generation]:
    """Delete retired generations, but for the newest `keep`, and all rolled back; return them.

    With `unfinished` also those that were begun, or are ready, and were not made live.

    Raises:
        LocationError: there is no index, or `keep` is negative.
        IndexLockedError: somebody is building one.
    """
    if keep < 0:
        raise LocationError(f"{keep} generations cannot be kept: keep 0 or more.")
    with closing(open_live(location, connection(credentials, client))) as live:
        listed = live.generations()
        retired = [one for one in listed if one.state == "retired"]
        gone = retired[: max(len(retired) - keep, 0)]
        gone += [one for one in listed if one.state == "rolled back"]
        if unfinished and (begun := find_build(live)):
            gone.append(begun)
        for one in gone:
            live.drop(one.number)
        return gone

"""Generations of an index of a cluster: the indexes NAME-000001 and on; one has the alias."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

import regex

from slice_os.errors import (
    BlockedError,
    ClusterError,
    GoneError,
    IndexLockedError,
    LocationError,
    MovedError,
    RefusedError,
)
from slice_os.host import is_gone, this_process
from slice_os.storage.cluster.cluster_errors import WRITE_RETRY_TIMEOUT
from slice_os.storage.cluster.mapping import GENERATION, read_meta, render_template
from slice_os.storage.cluster.requests import FREE, Cluster
from slice_os.storage.cluster.responses import Count, IndexDescription, decoded
from slice_os.storage.cluster.settings import Layout
from slice_os.storage.contract import BEGUN, Generation, IndexMeta


def list_generations(cluster: Cluster) -> list[Generation]:
    """Return the generations of a cluster's index, in order; others of such names are left out."""
    name = cluster.address.name
    indexes = cluster.client.request(
        "GET", f"/{name}-0*", kind=dict[str, IndexDescription], ignore_unavailable="true"
    )
    pattern = regex.compile(regex.escape(name) + r"-(\d{6})")
    generations = []
    for index, description in sorted(indexes.items()):
        if not (numbered := pattern.fullmatch(index)):
            continue
        try:
            meta, layout = read_meta(index, description, cluster.dialect)
        except LocationError:
            continue
        build = description["mappings"]["_meta"]["slice_os"].get("build") or {}
        is_live = name in description["aliases"]
        seconds = int(description["settings"]["index"].get("creation_date", 0)) / 1000
        documents, size = _size(Cluster(cluster.client, cluster.dialect, index))
        generations.append(
            Generation(
                int(numbered[1]),
                "live" if is_live else str(build.get("state", "retired")),
                meta,
                asdict(layout),
                documents,
                size,
                datetime.fromtimestamp(seconds, tz=timezone.utc).isoformat(timespec="seconds"),
                build,
            )
        )
    return generations


def _size(cluster: Cluster) -> tuple[int, int]:
    """Return the documents and the bytes of a generation."""
    complete = {"complete": {"value_count": {"field": "document_hash"}}}
    try:
        (documents,) = cluster.aggregate(complete, "complete/value")
        size = cluster.statistic("store/size_in_bytes")
    except GoneError:  # deleted meanwhile, or closed
        return 0, 0
    return documents, size


def full_beside(cluster: Cluster) -> str | None:
    """Return a generation that holds documents, if this one holds none; _rollover does that."""
    if cluster.count():
        return None
    try:
        generations = list_generations(cluster)
    except ClusterError:  # it may not be ours to know
        return None
    full = (each.number for each in generations if each.documents)
    return next((GENERATION.format(cluster.address.name, number) for number in full), None)


def make_generation(cluster: Cluster, number: int, meta: IndexMeta, layout: Layout) -> Cluster:
    """Make an empty generation, without the alias."""
    name = cluster.address.name
    index = GENERATION.format(name, number)
    body = render_template(name, meta, layout, cluster.dialect)["template"]
    body["mappings"]["_meta"]["slice_os"]["build"] = BEGUN
    body["aliases"] = {FREE.format(name): {}}
    try:
        cluster.client.request("PUT", f"/{index}", body)
    except RefusedError as exc:
        if exc.kind != "resource_already_exists_exception":
            raise
        raise IndexLockedError(
            f"Somebody else has just begun the next generation of {cluster.address}: wait for it."
        ) from exc
    return Cluster(cluster.client, cluster.dialect, index)


def note_build(cluster: Cluster, build: Mapping[str, Any] | None, token: object) -> bool:
    """Note in a generation who builds it, None: nobody; see `Backend.note_build`."""
    with cluster.alone():
        noted = cluster.notes().get("build") or {}
        if token is not ... and noted.get("token") != token:
            return False
        cluster.note(build=None if build is None else dict(build))
    return True


def note_hold(cluster: Cluster, *, held: bool) -> None:
    """Note in a generation that writers are held off for a moment, or no longer."""
    with cluster.alone():
        cluster.note(held=this_process() if held else None)


def block(cluster: Cluster) -> None:
    """Have a generation take nothing more; what is under way is in it, or refused, afterwards."""
    # To set index.blocks.write would not wait for what is under way.
    cluster.ask("PUT", "_block/write", retry_timeout=WRITE_RETRY_TIMEOUT)


def lift_block(cluster: Cluster) -> None:
    """Let a generation be written to."""
    cluster.put_settings({"blocks.write": None})


def is_blocked(cluster: Cluster) -> bool:
    """Tell whether a generation takes nothing more."""
    blocks = cluster.describe()["settings"]["index"].get("blocks", {})
    return blocks.get("write") not in (None, "false")


def refused_by_block(cluster: Cluster, refused: BlockedError) -> Exception:
    """Return what to raise where a generation has refused a write: why it is blocked."""
    if "index write (api)" not in str(refused):  # it is another block
        return refused
    held, is_lifted = cluster.notes().get("held"), not is_blocked(cluster)
    check_live(cluster)  # after the note was read, which is taken back when the name has moved
    if held and not is_lifted and is_gone(held):
        return BlockedError(
            f"{cluster.address} is blocked by process {held['process']} of this machine, which was "
            "killed while it moved the name",
            hint="run that again (slice-os reindex, swap or rollback), then this.",
        )
    if held or is_lifted:
        return MovedError(
            f"{cluster.address} is moving to another generation: run this again in a moment; what "
            "is done is kept."
        )
    return refused


def check_live(cluster: Cluster) -> None:
    """Raise unless the alias names a generation.

    Raises:
        MovedError: it names a newer one, which holds all that this one has acknowledged.
        GoneError: it names another, or nothing.
    """
    now = list(cluster.generations())
    if now == [cluster.index]:
        return
    if len(now) == 1 and now[0].startswith(f"{cluster.address.name}-0") and now[0] > cluster.index:
        with suppress(GoneError):
            # Else somebody else has moved it, who may not have taken over what was written.
            if is_blocked(cluster):
                number = int(now[0].rpartition("-")[2])
                raise MovedError(
                    f"{cluster.address} moved to generation {number}: run this again; what is done "
                    "is kept."
                )
    raise GoneError(
        f"{cluster.address} no longer names the index {cluster.index} that was opened, but "
        f"{', '.join(now) or 'nothing'}: run this again, or open it anew. If an index has come "
        "about that nobody made, delete it first."
    )


def move_alias(cluster: Cluster, number: int) -> None:
    """Let the alias name another generation instead of this one, in one request.

    Raises:
        LocationError: it does not name this one.
    """
    name, index = cluster.address.name, GENERATION.format(cluster.address.name, number)
    actions: list[dict[str, Any]] = [
        {"remove": {"index": cluster.index, "alias": name, "must_exist": True}},
        {"add": {"index": index, "alias": name}},
    ]
    try:
        cluster.client.request("POST", "/_aliases", {"actions": actions})
    except (GoneError, RefusedError) as exc:
        if list(cluster.generations()) != [index]:  # else an answer was lost, and it asked again
            raise LocationError(
                f"Another generation of {cluster.address} was made live meanwhile: run this again."
            ) from exc


def changes(cluster: Cluster) -> object:
    """Return how much has been written to a generation and deleted from it."""
    path = "_all/primaries/indexing"
    written = cluster.ask("GET", "_stats/indexing", None, dict[str, Any], path)
    totals = [decoded(written, Count, cluster.url, f"{kind}_total") for kind in ("index", "delete")]
    return cluster.generations(), *totals

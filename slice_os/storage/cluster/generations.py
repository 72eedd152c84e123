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
    GoneError,
    IndexLockedError,
    LocationError,
    MovedError,
    RefusedError,
)
from slice_os.host import is_gone, this_process
from slice_os.storage.cluster.cluster_errors import WRITE_RETRY_TIMEOUT
from slice_os.storage.cluster.requests import FREE, Cluster
from slice_os.storage.cluster.response_checks import reads_answers, typed, whole
from slice_os.storage.cluster.settings import Layout
from slice_os.storage.cluster.template import GENERATION, read_meta, render_template
from slice_os.storage.contract import BEGUN, Generation, IndexMeta


@reads_answers
def list_generations(cluster: Cluster) -> list[Generation]:
    """Return the generations of a cluster's index, in order; others of such names are left out."""
    name = cluster.address.name
    found = cluster.client.request("GET", f"/{name}-0*", ignore_unavailable="true")
    pattern = regex.compile(regex.escape(name) + r"-(\d{6})")
    generations = []
    for index, said in sorted(found.items()):
        if not (numbered := pattern.fullmatch(index)):
            continue
        mappings, settings, aliases = typed(said, mappings=dict, settings=dict, aliases=dict)
        try:
            meta, layout = read_meta(index, mappings, settings, cluster.dialect)
        except LocationError:
            continue
        build = mappings["_meta"]["slice_os"].get("build", {})
        is_live = name in aliases
        state = "live" if is_live else typed({"state": "retired", **build}, state=str)[0]
        made = int(settings["index"]["creation_date"]) / 1000
        documents, size = _size(Cluster(cluster.client, cluster.dialect, index))
        generations.append(
            Generation(
                int(numbered[1]),
                state,
                meta,
                asdict(layout),
                documents,
                size,
                datetime.fromtimestamp(made, tz=timezone.utc).isoformat(timespec="seconds"),
                build,
            )
        )
    return generations


@reads_answers
def _size(cluster: Cluster) -> tuple[int, int]:
    """Return the documents and the bytes of a generation."""
    body = {"size": 0, "aggs": {"complete": {"value_count": {"field": "document_hash"}}}}
    try:
        counted = cluster.search(body)["aggregations"]["complete"]["value"]
        stats = cluster.ask("GET", "_stats/store")["_all"]["primaries"]
    except GoneError:  # deleted meanwhile, or closed
        return 0, 0
    return whole(counted), whole(stats["store"]["size_in_bytes"])


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


@reads_answers
def note_build(cluster: Cluster, build: Mapping[str, Any] | None, token: object) -> bool:
    """Note in a generation who builds it, None: nobody; see `Backend.note_build`."""
    with cluster.alone():
        noted = cluster.notes()["slice_os"].get("build") or {}
        if token is not ... and typed({"build": noted}, build=dict)[0].get("token") != token:
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
    cluster.ask("PUT", "_block/write", None, WRITE_RETRY_TIMEOUT)


def lift_block(cluster: Cluster) -> None:
    """Let a generation be written to."""
    cluster.put_settings({"blocks.write": None})


@reads_answers
def is_held(cluster: Cluster, refused: BlockedError) -> bool:
    """Tell whether a generation that has refused a write is to take it in a moment.

    Raises:
        MovedError, GoneError: as `check_live`.
        BlockedError: who held it was killed.
    """
    if "index write (api)" not in str(refused):  # it is another block
        return False
    check_live(cluster)
    # The note outlasts the block: where it is gone, so is the block, but of one who was killed.
    held = cluster.notes()["slice_os"].get("held")
    lifted = "write" not in cluster.describe()[1]["index"].get("blocks", {})
    check_live(cluster)  # the name may have been moved meanwhile, and the note taken back
    if held and not lifted and is_gone(typed({"by": held}, by=dict)[0]):
        raise BlockedError(
            f"{cluster.address} is blocked by process {held['process']} of this machine, which was "
            "killed while it moved the name: run that again (slice-os reindex, swap or rollback), "
            "then this."
        )
    return lifted or bool(held)


@reads_answers
def check_live(cluster: Cluster) -> None:
    """Raise unless the alias names a generation.

    Raises:
        MovedError: it names a newer one, which holds all that this one has acknowledged.
        GoneError: it names another, or nothing.
    """
    now = list(cluster.generations())
    if now == [cluster.index]:
        return
    said = (
        f"{cluster.address} no longer names the index {cluster.index} that was opened, but "
        f"{', '.join(now) or 'nothing'}: run this again, or open it anew."
    )
    if len(now) == 1 and now[0].startswith(f"{cluster.address.name}-0") and now[0] > cluster.index:
        with suppress(GoneError):
            # Else somebody else has moved it, who may not have taken over what was written.
            if "write" in cluster.describe()[1]["index"].get("blocks", {}):
                raise MovedError(said)
    raise GoneError(f"{said} If an index has come about that nobody made, delete it first.")


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


@reads_answers
def changes(cluster: Cluster) -> object:
    """Return how much has been written to a generation and deleted from it."""
    stats = cluster.ask("GET", "_stats/indexing")["_all"]["primaries"]["indexing"]
    return cluster.generations(), whole(stats["index_total"]), whole(stats["delete_total"])

"""Generations of an index of a cluster: the indexes NAME-000001 and on; one has the alias."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

import regex

from slice_os.errors import (
    ClusterError,
    GoneError,
    IndexLockedError,
    LocationError,
    RefusedError,
)
from slice_os.storage.cluster.client import Client
from slice_os.storage.cluster.dialect import JSON, Dialect
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
        size = cluster.bytes()
    except GoneError:  # deleted meanwhile, or closed
        return 0, 0
    return documents, size


def check_named(client: Client, dialect: Dialect) -> None:
    """Raise LocationError if the alias names nothing, and generations of it are there."""
    name = client.address.name
    left = list_generations(Cluster(client, dialect, GENERATION.format(name, 1)))
    if not left:
        return
    best = max(left, key=lambda each: (each.state != "building", bool(each.documents), each.number))
    index = GENERATION.format(name, best.number)
    raise LocationError(
        f"The alias {name} names nothing, as it was removed or the live generation was deleted; "
        f"{index} ({best.state}) holds {best.documents:,} documents",
        hint=f"let it name that: {naming(client, index)}",
    )


def naming(client: Client, index: str, former: str | None = None) -> str:
    """Return the curl command that lets the alias name an index, instead of a former one."""
    name = client.address.name
    actions = [{"remove": {"index": former, "alias": name}}] if former else []
    body = json.dumps({"actions": [*actions, {"add": {"index": index, "alias": name}}]})
    return f"{client.curl('/_aliases', 'POST')} {JSON} '{body}'"


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


def move_alias(cluster: Cluster, number: int, held: str | None) -> None:
    """Let the alias name another generation instead of this one, in one request.

    `held` is the alias by which this process holds writers off, if it does: it goes with the name.

    Raises:
        LocationError: the alias does not name this one, or this process holds it no longer.
    """
    name, index = cluster.address.name, GENERATION.format(cluster.address.name, number)
    gone = [alias for alias in (held, name) if alias is not None]
    actions: list[dict[str, Any]] = [
        {"remove": {"index": cluster.index, "alias": alias, "must_exist": True}} for alias in gone
    ]
    actions.append({"add": {"index": index, "alias": name}})
    try:
        cluster.client.request("POST", "/_aliases", {"actions": actions})
    except (GoneError, RefusedError) as exc:
        now = list(cluster.generations())
        if now == [cluster.index]:
            raise LocationError(
                f"This process was taken for dead while it held writers off {cluster.address}: "
                "they went on, and the name was not moved. Run this again."
            ) from exc
        if now != [index]:  # else an answer was lost, and it asked again
            raise LocationError(
                f"Another generation of {cluster.address} was made live meanwhile: run this again."
            ) from exc


def changes(cluster: Cluster) -> object:
    """Return how much has been written to a generation and deleted from it."""
    path = "_all/primaries/indexing"
    written = cluster.ask("GET", "_stats/indexing", None, dict[str, Any], path)
    totals = [decoded(written, Count, cluster.url, f"{kind}_total") for kind in ("index", "delete")]
    return cluster.generations(), *totals

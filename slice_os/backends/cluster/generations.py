"""Generations of an index of a cluster: the indexes NAME-000001 and on; one has the alias."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

import regex

from slice_os.backends.base import Generation, IndexMeta
from slice_os.backends.cluster.requests import Cluster
from slice_os.backends.cluster.settings import Layout
from slice_os.backends.cluster.template import GENERATION, read_meta, render_template
from slice_os.errors import GoneError, IndexLockedError, LocationError, RefusedError


def list_generations(cluster: Cluster) -> list[Generation]:
    """Return the generations of a cluster's index, in order; others of such names are left out."""
    name = cluster.address.name
    found = cluster.client.request("GET", f"/{name}-0*", ignore_unavailable="true")
    pattern = regex.compile(regex.escape(name) + r"-(\d{6})")
    generations = []
    for index, said in sorted(found.items()):
        if not (numbered := pattern.fullmatch(index)):
            continue
        try:
            meta, layout = read_meta(index, said["mappings"], said["settings"], cluster.dialect)
        except LocationError:
            continue
        build = said["mappings"]["_meta"]["slice_os"].get("build", {})
        is_live = name in said["aliases"]
        state = "live" if is_live else build.get("state", "retired")
        made = int(said["settings"]["index"]["creation_date"]) / 1000
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


def _size(cluster: Cluster) -> tuple[int, int]:
    """Return the documents and the bytes of a generation."""
    body = {"size": 0, "aggs": {"complete": {"value_count": {"field": "document_hash"}}}}
    try:
        counted = cluster.search(body)["aggregations"]["complete"]["value"]
        stats = cluster.ask("GET", "_stats/store")["_all"]["primaries"]
    except GoneError:  # deleted meanwhile, or closed
        return 0, 0
    return int(counted), stats["store"]["size_in_bytes"]


def make_generation(cluster: Cluster, number: int, meta: IndexMeta, layout: Layout) -> Cluster:
    """Make an empty generation, without the alias."""
    name = cluster.address.name
    index = GENERATION.format(name, number)
    body = render_template(name, meta, layout, cluster.dialect)["template"]
    try:
        cluster.client.request("PUT", f"/{index}", body)
    except RefusedError as exc:
        if exc.kind != "resource_already_exists_exception":
            raise
        raise IndexLockedError(
            f"Somebody else has just begun the next generation of {cluster.address}: wait for it."
        ) from exc
    return Cluster(cluster.client, cluster.dialect, index)


def note_build(cluster: Cluster, build: Mapping[str, Any] | None) -> None:
    """Note in a generation who builds it; None: nobody."""
    meta = cluster.describe()[0]["_meta"]
    ours = {name: value for name, value in meta["slice_os"].items() if name != "build"}
    if build is not None:
        ours["build"] = dict(build)
    cluster.put_mapping({"_meta": {**meta, "slice_os": ours}})


def move_alias(cluster: Cluster, number: int) -> None:
    """Let the alias name another generation, in one request."""
    name = cluster.address.name
    actions: list[dict[str, Any]] = [
        {"remove": {"index": index, "alias": name}} for index in cluster.generations()
    ]
    actions.append({"add": {"index": GENERATION.format(name, number), "alias": name}})
    cluster.client.request("POST", "/_aliases", {"actions": actions})


def changes(cluster: Cluster) -> object:
    """Return how much has been written to a generation and deleted from it."""
    stats = cluster.ask("GET", "_stats/indexing")["_all"]["primaries"]["indexing"]
    return cluster.generations(), stats["index_total"], stats["delete_total"]

"""What a cluster is and how it fares, from what it answers; only read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from slice_os.backends.cluster.address import Address, parse_location
from slice_os.backends.cluster.client import Client
from slice_os.backends.cluster.damaged import reading
from slice_os.backends.cluster.dialect import dialect_of
from slice_os.diagnosis.asking import Asker
from slice_os.diagnosis.findings import Diagnosis, Notes
from slice_os.diagnosis.index import examine_index
from slice_os.diagnosis.nodes import examine_nodes
from slice_os.diagnosis.spans import repair_spans
from slice_os.errors import ClusterError

if TYPE_CHECKING:
    from slice_os.encoder.info import EncoderInfo


def examine_cluster(
    location: str,
    info: EncoderInfo,
    deep: bool = False,
    repair: bool = False,
    options: Mapping[str, Any] | None = None,
) -> Diagnosis:
    """Examine a cluster, and the index that the location names if it names one."""
    named = bool(location.partition("://")[2].partition("/")[2].strip("/"))
    address = parse_location(location, named=named)
    notes = Notes(facts={"cluster": address.url})
    if repair:
        repair_spans(location, notes, deep, options or {})
    with Client(address, **(options or {})) as client, reading(address.url):
        asker = Asker(client, notes)
        said = asker.get("/") or {}
        try:
            dialect = dialect_of(client)
        except ClusterError as exc:  # it answers, but is not for us
            notes.find_error(exc)
            return notes.done()
        if dialect.version:
            number = said["version"]["number"]
            notes.facts |= {"name": said.get("cluster_name", ""), "version": number}
        _transport(address, notes)
        dialect.examine(asker, notes)
        nodes = examine_nodes(asker, notes)
        _health(asker, notes, named)
        if named:
            notes.facts["index"] = location
            examine_index(asker, notes, info, nodes, deep)
    return notes.done()


def _transport(address: Address, notes: Notes) -> None:
    near = ("localhost", "127.0.0.1", "::1")
    if address.scheme == "http" and any(host not in near for host, _ in address.hosts):
        notes.find(
            "warning",
            f"Texts and credentials go to {address.url} unencrypted",
            "give the cluster TLS and write https://.",
        )


def _health(asker: Asker, notes: Notes, named: bool) -> None:
    health = asker.get("/_cluster/health")
    if health is None:
        return
    notes.facts["health"] = health["status"]
    notes.facts["data_nodes"] = health["number_of_data_nodes"]
    if named:
        return  # that of the index is examined with it
    unassigned = health["unassigned_shards"]
    if health["status"] == "red":
        notes.find(
            "error",
            f"The cluster is red: part of an index has no copy (unassigned shards: {unassigned})",
            asker.why,
        )
    elif health["status"] == "yellow":
        notes.find(
            "warning",
            f"The cluster is yellow: replica shards on no node: {unassigned}",
            asker.why,
        )
    else:
        notes.find("ok", "The cluster is green.")

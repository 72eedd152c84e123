"""An index of a cluster: what it says of itself, its settings, its shards."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import regex

from slice_os.encoders.info import EncoderInfo
from slice_os.errors import ClusterError, LocationError
from slice_os.operate.cluster_documents import check_spans, repair_spans
from slice_os.operate.cluster_health import check_shards, examine_nodes
from slice_os.operate.findings import Asker, Diagnosis, Notes, complete, fit
from slice_os.storage.cluster.client import Client
from slice_os.storage.cluster.dialect import dialect_of
from slice_os.storage.cluster.query.hits import missing_shards
from slice_os.storage.cluster.requests import Cluster
from slice_os.storage.cluster.response_checks import reading, whole
from slice_os.storage.cluster.settings import Address, parse_location
from slice_os.storage.cluster.template import read_meta, whole_index


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


WAITED = 5.0
"""Seconds for an index to answer whose shards may be away."""
_JSON = "-H 'content-type: application/json'"
_DURATION = regex.compile(r"(-?\d+(?:\.\d+)?)(nanos|micros|ms|s|m|h|d)?")
_SECONDS = {"nanos": 1e-9, "micros": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def examine_index(
    asker: Asker, notes: Notes, info: EncoderInfo, nodes: Sequence[dict[str, Any]], deep: bool
) -> None:
    """Note what an index is and what is wrong with it."""
    name = asker.address.name
    found = asker.get(f"/{name}", ignore_unavailable="true")
    if not found:
        location = str(asker.address)
        notes.find(
            "error",
            f"There is no index {name} that these credentials see",
            f"make one with 'slice-os index PATHS --index {location}'.",
        )
        return
    if name in found:
        notes.find_error(LocationError(whole_index(name, found[name])))
        return
    if len(found) > 1:
        notes.find(
            "error",
            f"{name} is an alias of several indexes: {', '.join(sorted(found))}",
            "let it name one.",
        )
        return
    ((index, said),) = found.items()
    notes.facts["generation"] = index
    try:
        cluster = Cluster(asker.client, dialect_of(asker.client), index)
        meta, layout = read_meta(index, said["mappings"], said["settings"], cluster.dialect)
    except LocationError as exc:
        notes.find_error(exc)
        return
    fit(notes, meta, info)
    notes.facts |= {
        "tolerance": layout.tolerance,
        "vectors": f"{layout.vector_type}, {layout.dimensions or meta.dimension} dimensions",
        "engine": layout.engine,
        "analyzer": layout.analyzer,
        "shards": layout.shards,
        "replicas": layout.replicas,
    }
    loading = said["mappings"]["_meta"]["slice_os"].get("loading")
    put = f"{asker.curl(f'/{index}/_settings', 'PUT')} {_JSON} -d"
    data_nodes = notes.facts.get("data_nodes", 1)
    check_settings(notes, said["settings"]["index"], loading, put, data_nodes)
    if said["settings"]["index"].get("verified_before_close") == "true":
        notes.find(
            "error", "The index is closed", f"open it: {asker.curl(f'/{index}/_open', 'POST')}"
        )
        return
    _index_health(asker, notes, index, put, layout.replicas)
    if count_documents(asker, notes, cluster):
        check_spans(cluster, notes, layout, deep)
    stats = asker.get(f"/{index}/_stats/docs,store,segments", level="shards")
    if stats and index in stats.get("indices", {}):
        shards = stats["indices"][index]["shards"]
        check_shards(notes, shards, lambda path: asker.curl(f"/{index}/{path}", "POST"), nodes)


def check_settings(
    notes: Notes, index: dict[str, Any], loading: Any, put: str, data_nodes: int
) -> None:
    """Say which settings hurt, and what puts them right."""
    refresh, replicas = index.get("refresh_interval"), int(index.get("number_of_replicas", 1))
    notes.facts["refresh_interval"] = refresh or "1s (default)"
    if loading:
        notes.find(
            "warning",
            "The index is set for loading (no refresh, no replicas): a run is under way, or one "
            "was killed",
            "if none runs, run the same 'slice-os index' again: it puts the settings back.",
        )
    else:
        back = f"""{put} '{{"index":{{"refresh_interval":null}}}}'"""
        if (every := seconds(refresh)) is not None and every < 0:
            notes.find(
                "warning",
                f"refresh_interval is {refresh}: what is written is not seen",
                f"put it back: {back}",
            )
        elif every is not None and every < 1:
            notes.find(
                "warning",
                f"refresh_interval is {refresh}: many small segments, slow indexing and searches",
                f"put it back to 1s: {back}",
            )
        if replicas == 0 and data_nodes > 1:
            notes.find(
                "warning",
                f"There are no replicas on {data_nodes} nodes: a node that is lost takes its part "
                "of the index with it",
                f"""add one: {put} '{{"index":{{"number_of_replicas":1}}}}'""",
            )
    for block, value in (index.get("blocks") or {}).items():
        if str(value) == "true":
            full = block == "read_only_allow_delete"
            notes.find(
                "error" if full or block == "read" else "warning",
                f"The index is blocked (index.blocks.{block}): "
                + ("a disk was too full" if full else "somebody has set it so"),
                ("free disk; if it stays, " if full else "")
                + f"""lift it: {put} '{{"index":{{"blocks.{block}":null}}}}'""",
            )


def seconds(duration: str | None) -> float | None:
    """Return a duration of OpenSearch in seconds; None where there is none."""
    if duration is None or not (found := _DURATION.fullmatch(duration.strip().lower())):
        return None
    return float(found[1]) * _SECONDS[found[2] or "ms"]


def _index_health(asker: Asker, notes: Notes, index: str, put: str, replicas: int) -> None:
    health = asker.get(f"/_cluster/health/{index}")
    if health is None:
        return
    notes.facts["index_health"] = health["status"]
    unassigned, data_nodes = health["unassigned_shards"], health["number_of_data_nodes"]
    if health["status"] == "green":
        notes.find("ok", "Every shard of the index, and every replica, is on a node.")
    elif health["status"] == "yellow" and replicas >= data_nodes:
        fewer = f"""{put} '{{"index":{{"number_of_replicas":{max(data_nodes - 1, 0)}}}}}'"""
        notes.find(
            "warning",
            f"Replica shards on no node: {unassigned} (number_of_replicas is {replicas}, which "
            f"takes {replicas + 1} data nodes; there are {data_nodes})",
            f"add nodes, or ask for fewer: {fewer}",
        )
    else:
        red = health["status"] == "red"
        notes.find(
            "error" if red else "warning",
            f"Shards of the index on no node: {unassigned}"
            + ("; part of it cannot be searched" if red else ""),
            asker.why,
        )


def count_documents(asker: Asker, notes: Notes, cluster: Cluster) -> bool:
    """Note how much there is, and whether documents are whole; False if the index cannot say."""
    body = {
        "size": 0,
        "track_total_hits": True,
        "aggs": {
            "words": {"sum": {"field": "word_count"}},
            "complete": {
                "filter": {"exists": {"field": "document_hash"}},
                "aggs": {"before": {"sum": {"field": "passage"}}},
            },
            # Every document has a first passage: counted exactly, where a cardinality is not.
            "begun": {"filter": {"term": {"passage": 0}}},
        },
    }
    found = asker.get(f"/{cluster.index}/_search", body, retry_timeout=WAITED)
    if not found or missing_shards(found):
        return False
    counts = found["aggregations"]
    documents, begun = whole(counts["complete"]["doc_count"]), whole(counts["begun"]["doc_count"])
    passages = whole(found["hits"]["total"]["value"])
    notes.facts |= {
        "documents": documents,
        "passages": passages,
        "words": whole(counts["words"]["value"]),
    }
    complete(notes, documents, abs(begun - documents))
    # The last passage of each says how many there are.
    expected = documents + whole(counts["complete"]["before"]["value"])
    if begun == documents and expected != passages:
        notes.find(
            "error",
            f"The documents should have {expected:,} passages, and there are {passages:,}",
            "run the same 'slice-os index' again: it finds the documents that are not whole.",
        )
    if not passages:
        _emptied(asker, notes, cluster)
    return True


def _emptied(asker: Asker, notes: Notes, cluster: Cluster) -> None:
    """Say so if the alias names an empty generation, as _rollover leaves it, beside a full one."""
    name = asker.address.name
    if full := cluster.fuller():
        actions = [
            {"remove": {"index": cluster.index, "alias": name}},
            {"add": {"index": full, "alias": name}},
        ]
        back = json.dumps({"actions": actions})
        notes.find(
            "error",
            f"{name} names the empty {cluster.index}, while {full} holds documents "
            "(_rollover does that)",
            f"let it name that again: {asker.curl('/_aliases', 'POST')} {_JSON} -d '{back}'",
        )

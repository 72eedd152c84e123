"""What a cluster is and how it fares, from what it answers; only read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slice_os.backends.cluster.address import Address, parse_location
from slice_os.backends.cluster.client import Client
from slice_os.diagnosis.asking import Asker
from slice_os.diagnosis.findings import Diagnosis, Notes
from slice_os.diagnosis.index import examine_index
from slice_os.diagnosis.nodes import examine_nodes
from slice_os.diagnosis.spans import repair_spans

if TYPE_CHECKING:
    from slice_os.encoder.info import EncoderInfo

LEAST = (2, 19)
"""Searches ask for `expand_nested_docs` and `pagination_depth`."""
PAGED = (3, 3)
"""Pages of everything are sorted by `_shard_doc`."""
TESTED = (3, 6)
KNN, NEURAL = "opensearch-knn", "opensearch-neural-search"


def examine_cluster(
    location: str, info: EncoderInfo, deep: bool = False, repair: bool = False
) -> Diagnosis:
    """Examine a cluster, and the index that the location names if it names one."""
    named = bool(location.partition("://")[2].partition("/")[2].strip("/"))
    address = parse_location(location, named=named)
    notes = Notes(facts={"cluster": address.url})
    if repair:
        repair_spans(location, notes, deep)
    with Client(address) as client:
        asker = Asker(client, notes)
        if not _is_opensearch(asker, notes):
            return notes.done()
        _transport(address, notes)
        has = _plugins(asker, notes)
        nodes = examine_nodes(asker, notes)
        _graphs(asker.get("/_plugins/_knn/stats") if KNN in has else None, notes)
        _health(asker, notes, named)
        if named:
            notes.facts["index"] = location
            examine_index(asker, notes, info, nodes, deep)
    return notes.done()


def _is_opensearch(asker: Asker, notes: Notes) -> bool:
    said = asker.get("/")
    if said is None:
        return True  # it may not say; the rest will tell
    version = said.get("version") if isinstance(said, dict) else None
    if not isinstance(version, dict) or version.get("distribution") != "opensearch":
        what = "is Elasticsearch" if isinstance(version, dict) else "is not OpenSearch"
        notes.find(
            "error",
            f"What answers at {asker.url} {what}",
            f"give the address of an OpenSearch cluster of {_dotted(LEAST)} or newer.",
        )
        return False
    number = str(version.get("number", ""))
    notes.facts |= {"name": said.get("cluster_name", ""), "version": number}
    check_version(notes, number)
    return True


def check_version(notes: Notes, number: str) -> None:
    """Say what a version of OpenSearch can do for us."""
    parts = tuple(int(part) for part in number.split(".")[:2] if part.isdecimal())
    if parts < LEAST:
        notes.find(
            "error",
            f"OpenSearch {number} cannot search spans: it lacks expand_nested_docs",
            f"upgrade to {_dotted(TESTED)} or newer.",
        )
    elif parts < PAGED:
        notes.find(
            "warning",
            f"OpenSearch {number} cannot sort by _shard_doc: mining that reads every word ("
            "low thresholds, --exact), '--from-index' and lexical pages past 10,000 hits fail",
            f"upgrade to {_dotted(TESTED)} or newer.",
        )
    elif parts < TESTED:
        notes.find(
            "notice",
            f"OpenSearch {number} is older than {_dotted(TESTED)}, which slice-os is tested with",
            "try your filters, or upgrade.",
        )
    else:
        notes.find("ok", f"OpenSearch {number} can do all that slice-os asks for.")


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _transport(address: Address, notes: Notes) -> None:
    near = ("localhost", "127.0.0.1", "::1")
    if address.scheme == "http" and any(host not in near for host, _ in address.hosts):
        notes.find(
            "warning",
            f"Texts and credentials go to {address.url} unencrypted",
            "give the cluster TLS and write https://.",
        )


def _plugins(asker: Asker, notes: Notes) -> set[str]:
    """Return the plugins that some node has, and say what follows from them."""
    answer = asker.get("/_nodes/plugins")
    if answer is None:
        return {KNN}
    nodes = answer["nodes"].values()
    by_node = {node["name"]: {one["name"] for one in node["plugins"]} for node in nodes}
    notes.facts["plugins"] = sorted(set().union(*by_node.values()))
    versions = sorted({node["version"] for node in nodes})
    if len(versions) > 1:
        notes.find(
            "warning",
            f"The nodes have different versions: {', '.join(versions)}",
            "finish the upgrade before you index.",
        )
    lacking = {
        plugin: [name for name, has in by_node.items() if plugin not in has]
        for plugin in (KNN, NEURAL)
    }
    if lacking[KNN]:
        notes.find(
            "error",
            f"The k-NN plugin is missing on {', '.join(lacking[KNN])}",
            f"install {KNN} there ('bin/opensearch-plugin install {KNN}') and restart the node.",
        )
    _fusions(notes, lacking[NEURAL], len(by_node))
    return set(notes.facts["plugins"])


def _fusions(notes: Notes, lacking: list[str], nodes: int) -> None:
    """Say which fusions are one request and which two, fused by the client."""
    if not lacking:
        notes.facts["fusions"] = "saturation, rrf, min_max: one request each"
        return
    notes.facts["fusions"] = "saturation: one request; rrf, min_max: two searches fused by slice-os"
    if len(lacking) < nodes:
        notes.find(
            "warning",
            f"neural-search is on some nodes and not on {', '.join(lacking)}: it is not used",
            f"install {NEURAL} there too.",
        )


def _graphs(stats: Any, notes: Notes) -> None:
    """Say how full k-NN's cache of native graphs is, and whether its breaker has tripped."""
    if not isinstance(stats, dict):
        return
    nodes = stats.get("nodes", {}).values()
    used = sum(node.get("graph_memory_usage", 0) for node in nodes)
    notes.facts["knn_cache_kb"] = used
    notes.facts["knn_breaker"] = "triggered" if stats.get("circuit_breaker_triggered") else "ok"
    full = any(node.get("cache_capacity_reached") for node in nodes)
    if stats.get("circuit_breaker_triggered") or full:
        notes.find(
            "warning",
            "k-NN's memory for Faiss graphs is full"
            + (", and its circuit breaker has tripped" if not full else "")
            + "; the Lucene engine does not use it",
            "if an index here has the engine faiss, add memory or nodes, use the engine lucene, or "
            "raise knn.memory.circuit_breaker.limit.",
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

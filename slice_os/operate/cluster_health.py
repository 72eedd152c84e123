"""The shards of an index: their size, their segments, what of them is deleted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from slice_os.operate.findings import DELETED_SHARE, Asker, Notes, size_of

if TYPE_CHECKING:
    pass


FULL_HEAP = 85
SMALL_HEAP = 1_000_000_000


def examine_nodes(asker: Asker, notes: Notes) -> list[dict[str, Any]]:
    """Note the nodes and what presses them; return them."""
    stats = asker.get("/_nodes/stats/jvm,fs,os")
    if not stats:
        return []
    nodes = [_node(node) for node in stats["nodes"].values()]
    notes.facts["nodes"] = nodes
    before = len(notes.findings)
    for node in nodes:
        check_heap(notes, node)
    if len(notes.findings) == before:
        notes.find("ok", "The heap of the nodes has room.")
    return nodes


def _node(said: dict[str, Any]) -> dict[str, Any]:
    memory, disk = said["jvm"]["mem"], said["fs"]["total"]
    total, available = disk.get("total_in_bytes", 0), disk.get("available_in_bytes", 0)
    return {
        "name": said["name"],
        "data": any(role.startswith("data") for role in said.get("roles", ())),
        "heap_bytes": memory["heap_max_in_bytes"],
        "heap_used_percent": memory["heap_used_percent"],
        "memory_bytes": said.get("os", {}).get("mem", {}).get("total_in_bytes", 0),
        "disk_bytes": total,
        "disk_available_bytes": available,
        "disk_used_percent": round(100 * (1 - available / total)) if total else 0,
    }


def check_heap(notes: Notes, node: dict[str, Any]) -> None:
    """Say whether a node's heap is full or small."""
    if node["heap_used_percent"] >= FULL_HEAP:
        notes.find(
            "warning",
            f"The node {node['name']} uses {node['heap_used_percent']} % of its heap of "
            f"{size_of(node['heap_bytes'])}",
            "look again in a minute; if it stays so, give it more (-Xmx, at most half of the "
            "machine's memory).",
        )
    elif node["heap_bytes"] < SMALL_HEAP:
        notes.find(
            "notice",
            f"The node {node['name']} has a heap of {size_of(node['heap_bytes'])}",
            "enough to try things out; for more than some 100,000 passages give it 4 GB.",
        )


MOST_DOCUMENTS = 2_147_483_519
"""Of a Lucene index, which a shard is; nested ones counted."""
LARGE_SHARD, SMALL_SHARD = 50 * 10**9, 10**9
SEGMENTS = 10
MERGED_A_MINUTE = 90_000
"""Spans of 384 dimensions that a node merges: 2.1 million took two cores 24 minutes."""


def check_shards(
    notes: Notes,
    shards: dict[str, list[dict[str, Any]]],
    post: Callable[[str], str],
    nodes: Sequence[dict[str, Any]],
) -> None:
    """Say whether the shards are too large, too small, too scattered or too full.

    `post` returns the command that posts to a path of the index.
    """
    copies = [copy for some in shards.values() for copy in some]
    first = [copy for copy in copies if copy["routing"]["primary"]]
    if not first:
        return
    stored = [copy["store"]["size_in_bytes"] for copy in first]
    notes.facts |= {"bytes": sum(stored), "segments": sum(c["segments"]["count"] for c in first)}
    before = len([one for one in notes.findings if one.severity != "ok"])
    _full(notes, max(c["docs"]["count"] + c["docs"]["deleted"] for c in first))
    if max(stored) > LARGE_SHARD:
        number = -(-sum(stored) * 2 // LARGE_SHARD)
        notes.find(
            "warning",
            f"A shard holds {size_of(max(stored))}: searches wait for it, and it is slow to move",
            f"index to a new location with --shards {number}.",
        )
    elif len(first) > 1 and 0 < sum(stored) / len(first) < SMALL_SHARD:
        notes.find(
            "notice",
            f"{len(first)} shards hold {size_of(sum(stored))} together: each search asks them all",
            "one shard would do: for a next index leave out --shards.",
        )
    most = max(copy["segments"]["count"] for copy in first)
    deleted, live = (sum(c["docs"][kind] for c in first) for kind in ("deleted", "count"))
    if deleted > DELETED_SHARE * (deleted + live):
        notes.find(
            "warning",
            f"{deleted:,} of {deleted + live:,} documents (spans counted) are deleted ones",
            f"let them go: {post('_forcemerge?only_expunge_deletes=true')}",
        )
    elif most > SEGMENTS:
        notes.find(
            "notice",
            f"A shard has {most} segments, each with a graph of its own that a search goes through "
            "(25 instead of one take a search three to five times as long)",
            f"if little is written to it now, merge them, which takes some {_minutes(live)}: "
            f"{post('_forcemerge?max_num_segments=1&wait_for_completion=false')}",
        )
    _memory(notes, sum(copy["store"]["size_in_bytes"] for copy in copies), nodes)
    if before == len([one for one in notes.findings if one.severity != "ok"]):
        notes.find("ok", "Shards and segments have good sizes.")


def _minutes(documents: int) -> str:
    """Return how long it takes to merge the graphs of so many spans, roughly."""
    minutes = -(-documents // MERGED_A_MINUTE)
    return f"{minutes:,} minute{'s' * (minutes != 1)}"


def _full(notes: Notes, documents: int) -> None:
    share = documents / MOST_DOCUMENTS
    if share > 0.75:
        notes.find(
            "error" if share > 0.95 else "warning",
            f"A shard holds {documents:,} documents, spans counted, of the {MOST_DOCUMENTS:,} "
            "that Lucene can hold",
            "index to a new location with more --shards, or a lower --tolerance.",
        )


def _memory(notes: Notes, stored: int, nodes: Sequence[dict[str, Any]]) -> None:
    """Say whether the index is larger than the memory that is left to the system's cache."""
    room = sum(max(n["memory_bytes"] - n["heap_bytes"], 0) for n in nodes if n["data"])
    if room and stored > room:
        notes.find(
            "notice",
            f"The index takes {size_of(stored)}, replicas included, and the data nodes have "
            f"{size_of(room)} of memory beside their heaps: searches will read from the disk",
            "add memory or nodes, or index to a new location with --vector-type byte, fewer "
            "--dimensions or a lower --tolerance.",
        )

"""The nodes of a cluster: their heap and their disks."""

from __future__ import annotations

from typing import Any

from slice_os.backends.cluster.disks import passes
from slice_os.diagnosis.asking import Asker
from slice_os.diagnosis.findings import Notes, size_of

FULL_HEAP = 85
SMALL_HEAP = 1_000_000_000
_DISK = "cluster.routing.allocation.disk."


def examine_nodes(asker: Asker, notes: Notes) -> list[dict[str, Any]]:
    """Note the nodes and what presses them; return them."""
    stats = asker.get("/_nodes/stats/jvm,fs,os")
    settings = asker.get("/_cluster/settings", include_defaults="true", flat_settings="true")
    if not stats:
        return []
    nodes = [_node(node) for node in stats["nodes"].values()]
    notes.facts["nodes"] = nodes
    marks: dict[str, str] = {}
    for kind in ("defaults", "persistent", "transient"):  # the last holds
        marks |= (settings or {}).get(kind, {})
    before = len(notes.findings)
    for node in nodes:
        check_heap(notes, node)
        if node["data"]:
            check_disk(notes, node, marks)
    if len(notes.findings) == before:
        notes.find("ok", "Heap and disks of the nodes have room.")
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


def check_disk(notes: Notes, node: dict[str, Any], marks: dict[str, str]) -> None:
    """Say which of the cluster's marks a node's disk has passed."""
    if str(marks.get(_DISK + "threshold_enabled", "true")) == "false" or not node["disk_bytes"]:
        return
    levels = (
        ("flood_stage", "95%", "error", "indexes on it are made read-only"),
        ("high", "90%", "warning", "shards are moved away from it"),
        ("low", "85%", "notice", "no new shards are put there"),
    )
    for level, default, severity, effect in levels:
        mark = str(marks.get(f"{_DISK}watermark.{level}", default))
        headroom = str(marks.get(f"{_DISK}watermark.{level}.max_headroom", ""))
        if passes(mark, node["disk_bytes"], node["disk_available_bytes"], headroom):
            notes.find(
                severity,  # type: ignore[arg-type]
                f"The node {node['name']} has {size_of(node['disk_available_bytes'])} of disk "
                f"left, past the mark {level} ({mark}): {effect}",
                "free disk on it, or add a node.",
            )
            return

"""The disks of a cluster: what its watermarks mean, and a look at them before one is full.

A disk past the mark flood_stage makes every index on it read-only, for everybody: a run ends
before.
"""

from __future__ import annotations

from math import inf
from threading import Lock
from time import monotonic
from typing import Any

from slice_os.errors import BlockedError, ClusterError, GoneError, RefusedError, UnauthorizedError
from slice_os.storage.cluster.requests import Cluster
from slice_os.storage.cluster.response_checks import reads_answers

LOOK_EVERY = 5.0
"""Seconds between two looks."""
MARGIN = 1_000_000_000
"""Bytes above the flood stage at which a run ends: what was sent is still to be written and
merged."""
_DISK = "cluster.routing.allocation.disk"
_UNITS = {"b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}


def bytes_left_at(mark: str, total: int, headroom: str = "") -> float | None:
    """Return how many bytes of a disk are left when it reaches a watermark.

    That is a share that is used (85%, 0.85) or bytes that are left (500mb); None if it is neither.
    `headroom` is Elasticsearch's: of a large disk no more than that need be left beside a share.
    """
    text = mark.strip().lower()
    try:
        if text.endswith("%") or text[-1:].isdecimal():
            used = float(text[:-1]) / 100 if text.endswith("%") else float(text)
            most = bytes_left_at(headroom, 0) or inf  # -1 is none
            return min((1 - used) * total, most)
        unit = next(one for one in text if one.isalpha())
        return float(text[: text.index(unit)]) * _UNITS[unit]
    except (ValueError, KeyError, StopIteration):
        return None


def passes(mark: str, total: int, available: int, headroom: str = "") -> bool:
    """Tell whether a disk is past a watermark."""
    left = bytes_left_at(mark, total, headroom)
    return left is not None and available <= left


class DiskWatch:
    """Looks now and then at the disks that an index is on; several threads may share it.

    Who may not ask is not bothered, nor where such questions are not answered.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._next = -inf
        self._one = Lock()

    def check(self) -> None:
        """Look, unless that was done just now.

        Raises:
            BlockedError: a disk is so full that the index would soon be read-only.
        """
        with self._one:
            if monotonic() < self._next:
                return
            self._next = monotonic() + LOOK_EVERY
            try:
                full = self._full()
            except (UnauthorizedError, GoneError, RefusedError):
                self._next = inf
                return
            except ClusterError:  # too busy to say: what is sent next waits for it
                return
        if full is not None:
            raise BlockedError(full)

    @reads_answers
    def _full(self) -> str | None:
        """Return what to say of the first disk that is too full."""
        marks = self._marks()
        if str(marks.get("threshold_enabled", "true")) == "false":
            return None
        watermarks = marks.get("watermark") or {}
        flood = str(watermarks.get("flood_stage", "95%"))
        headroom = str(watermarks.get("flood_stage.max_headroom", ""))
        for node in self._nodes():
            total, available = node["total_in_bytes"], node["available_in_bytes"]
            left = bytes_left_at(flood, total, headroom)
            if left is None:
                return None
            if available <= left + MARGIN:
                return (
                    f"The node {node['name']} of {self._cluster.url} has {available / 1e9:.1f} GB "
                    f"of disk left, and with {left / 1e9:.1f} GB its indexes become read-only "
                    f"(flood_stage {flood}): what is complete is in the index; free disk or add a "
                    "node, then run this again."
                )
        return None

    def _get(self, path: str, **params: Any) -> Any:
        return self._cluster.client.request("GET", path, retry_timeout=0, **params)

    def _marks(self) -> dict[str, Any]:
        said = self._get("/_cluster/settings", include_defaults="true", filter_path=f"*.{_DISK}")
        marks: dict[str, Any] = {"watermark": {}}
        for kind in ("defaults", "persistent", "transient"):  # the last holds
            found = said.get(kind, {})
            for name in _DISK.split("."):
                found = found.get(name, {})
            watermarks = {**marks["watermark"], **found.get("watermark", {})}
            marks = {**marks, **found, "watermark": watermarks}
        return marks

    def _nodes(self) -> list[dict[str, Any]]:
        """Return the name and the disk of every node that the index is on."""
        # Not _search_shards: who may write and merge may ask this (docker/role-index.json).
        said = self._cluster.ask(
            "GET",
            "_stats/store",
            level="shards",
            filter_path="indices.*.shards.*.routing.node",
            retry_timeout=0,
        )
        ids = ",".join(
            {
                copy["routing"]["node"]: None
                for index in said.get("indices", {}).values()
                for copies in index["shards"].values()
                for copy in copies
            }
        )
        if not ids:
            return []
        path = f"/_nodes/{ids}/stats/fs"
        said = self._get(path, filter_path="nodes.*.name,nodes.*.fs.total")
        nodes = [
            {"name": node.get("name", id_), **node.get("fs", {}).get("total", {})}
            for id_, node in said.get("nodes", {}).items()
        ]
        return [node for node in nodes if {"total_in_bytes", "available_in_bytes"} <= node.keys()]

"""The settings of an index while much is written to it: no refresh, no replicas; merged afterwards.

What they were stands in the mapping's _meta meanwhile, so that a run that was killed leaves
nothing behind that the next one does not put back. Of runs side by side, each a partition, those
that are through stand there too, and the last one puts them back.
"""

from __future__ import annotations

import logging
from typing import Any

from slice_os.errors import ClusterError
from slice_os.storage.cluster.cluster_errors import RETRY_TIMEOUT, WRITE_RETRY_TIMEOUT
from slice_os.storage.cluster.requests import Cluster

_log = logging.getLogger(__name__)
LOADING = {"refresh_interval": "-1", "number_of_replicas": 0}


def put_replicas(cluster: Cluster, replicas: int) -> None:
    """Give an index so many replicas: now, or when the load that has taken them away is over."""
    with cluster.alone():
        before = cluster.notes().get("loading")
        if before is not None:
            cluster.note(loading={**before, "number_of_replicas": replicas})
        else:
            cluster.put_settings({"number_of_replicas": replicas})


class Loading:
    """Changes the settings of an index that is empty, or that a killed run has left so.

    Args:
        cluster: The index.
        partition: The number and the count of runs that load it side by side; None for one alone.
    """

    def __init__(self, cluster: Cluster, partition: tuple[int, int] | None = None) -> None:
        self._cluster, self._partition = cluster, partition
        self._before: dict[str, Any] | None = None

    def begin(self) -> None:
        """Note the settings, then change them."""
        if "loading" not in self._cluster.notes() and self._cluster.count(WRITE_RETRY_TIMEOUT):
            return
        with self._cluster.alone():
            index = self._cluster.describe()["settings"]["index"]
            self._before = self._cluster.notes().get("loading") or {
                "refresh_interval": index.get("refresh_interval"),
                "number_of_replicas": int(index.get("number_of_replicas", 1)),
            }
            self._cluster.note(loading=self._before, partitions=self._through(is_done=False))
            self._cluster.put_settings(LOADING)

    def _through(self, *, is_done: bool) -> dict[str, Any] | None:
        """Return which partitions are through, with or without this one; None of a run alone."""
        if self._partition is None:
            return None
        number, count = self._partition
        noted = self._cluster.notes().get("partitions") or {}
        through = set(noted.get("through", ())) if noted.get("count") == count else set()
        through = through | {number} if is_done else through - {number}
        return {"count": count, "through": sorted(through)}

    def _waits(self, *, is_done: bool) -> bool:
        """Note whether this partition is through; tell whether others are not."""
        through = self._through(is_done=is_done)
        if through is None or len(through["through"]) == through["count"]:
            return False
        self._cluster.note(partitions=through)
        if not is_done and self._partition is not None:
            _log.warning(
                "%s keeps its settings for loading until all partitions are through: run "
                "--partition %d/%d again.",
                self._cluster.index,
                *self._partition,
            )
        return True

    def end(self, *, merge: bool) -> None:
        """Put the settings back, and show what was written; have what was loaded merged."""
        try:
            if self._before is not None:
                with self._cluster.alone():
                    noted = self._cluster.notes().get("loading")
                    if (self._partition and noted is None) or self._waits(is_done=merge):
                        self._before = None  # put back already, or by the last one
                    else:
                        self._cluster.put_settings(noted or self._before, RETRY_TIMEOUT)
                        self._cluster.note(loading=None, partitions=None)
            self._cluster.refresh()
        except ClusterError as exc:
            _log.warning(
                "The settings of %s could not be put back (%s) The next run does it.",
                self._cluster.index,
                exc,
            )
            return
        if self._before is not None and merge:
            try:
                self._cluster.merge()
            except ClusterError as exc:
                _log.warning(
                    "The segments of %s were not merged (%s) 'slice-os doctor' says how.",
                    self._cluster.index,
                    exc,
                )

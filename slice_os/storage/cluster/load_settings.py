"""The settings of an index while much is written to it: no refresh, no replicas; merged afterwards.

What they were stands in the mapping's _meta meanwhile, so that a run that was killed leaves
nothing behind that the next one does not put back.
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
    """Changes the settings of an index that is empty, or that a killed run has left so."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
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
            self._cluster.note(loading=self._before)
            self._cluster.put_settings(LOADING)

    def end(self, *, merge: bool) -> None:
        """Put the settings back, and show what was written; have what was loaded merged."""
        try:
            if self._before is not None:
                with self._cluster.alone():
                    noted = self._cluster.notes().get("loading")
                    self._cluster.put_settings(noted or self._before, RETRY_TIMEOUT)
                    self._cluster.note(loading=None)
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

"""Asking a cluster what it may not want to say."""

from __future__ import annotations

from typing import Any

from slice_os.backends.cluster.client import Client
from slice_os.diagnosis.findings import Notes
from slice_os.errors import (
    BlockedError,
    BusyError,
    ClusterTimeoutError,
    GoneError,
    RefusedError,
    UnauthorizedError,
)


class Asker:
    """Asks a cluster; what it may not or cannot answer is None, and noted."""

    def __init__(self, client: Client, notes: Notes) -> None:
        self.client, self._notes = client, notes
        self.address, self.url = client.address, client.url

    def curl(self, path: str, method: str = "GET") -> str:
        """Return the beginning of a curl command; see `Client.curl`."""
        return self.client.curl(path, method)

    @property
    def why(self) -> str:
        """What to do about shards that are on no node."""
        return f"ask why with: {self.curl('/_cluster/allocation/explain?pretty')}"

    def get(self, path: str, body: dict[str, Any] | None = None, **params: Any) -> Any:
        """Return what a path answers."""
        try:
            return self.client.request("POST" if body else "GET", path, body, **params)
        except UnauthorizedError as exc:
            if exc.status != 403:
                raise
            self._notes.find(
                "notice",
                f"{path} is not allowed to these credentials",
                "for the whole picture, run this with those of an administrator.",
            )
        except (BlockedError, BusyError, ClusterTimeoutError) as exc:
            self._notes.find("warning", f"{path} is not answered now: {str(exc).rstrip('.')}")
        except (GoneError, RefusedError) as exc:
            if exc.status not in (400, 404, 405):  # no such plugin, or not on such a service
                raise
        return None

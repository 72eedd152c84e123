"""The backends: one row each, found by how the location of the index is written."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from slice_os.errors import LocationError
from slice_os.storage.contract import Backend, IndexMeta

__all__ = ["BACKENDS", "Backend", "IndexMeta", "backend_for", "connection"]

BACKENDS = {
    "": "slice_os.storage.local:LocalBackend",
    "http": "slice_os.storage.cluster.read:ClusterBackend",
    "https": "slice_os.storage.cluster.read:ClusterBackend",
    "cloud": "slice_os.storage.cluster.read:ClusterBackend",
}
"""URL scheme -> module and class, loaded when used; a location without a scheme is a folder."""


def backend_for(location: str) -> type[Backend]:
    """Return the backend that keeps indexes at such a location, or raise LocationError."""
    scheme = urlsplit(location).scheme if "://" in location else ""
    if scheme not in BACKENDS:
        raise LocationError(
            f"An index at {scheme}:// is not known to this version of slice-os: name a folder, or "
            "https://host:9200/name."
        )
    module, name = BACKENDS[scheme].split(":")
    found: type[Backend] = getattr(import_module(module), name)
    return found


def connection(credentials: Mapping[str, str] | None, client: Any) -> dict[str, Any]:
    """Return the options of `Backend.open` that are given."""
    said = {"credentials": credentials, "client": client}
    return {name: value for name, value in said.items() if value is not None}

"""The backends: one row each, found by how the location of the index is written."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from slice_os.errors import LocationError
from slice_os.storage.contract import Backend, IndexMeta

__all__ = ["BACKENDS", "Backend", "IndexMeta", "backend_for", "connection", "module_for"]

BACKENDS = {
    "": "slice_os.storage.local:LocalBackend",
    "http": "slice_os.storage.cluster.backend:ClusterBackend",
    "https": "slice_os.storage.cluster.backend:ClusterBackend",
    "cloud": "slice_os.storage.cluster.backend:ClusterBackend",
}
"""URL scheme -> module and class, loaded when used; a location without a scheme is a folder.

In its package are `doctor`, with the functions `diagnose` and `check`, `backup` where slice-os
copies indexes itself, and `search_request` where an index takes requests of other programs.
"""


def backend_for(location: str) -> type[Backend]:
    """Return the backend that keeps indexes at such a location, or raise LocationError."""
    module, name = _row(location).split(":")
    backend: type[Backend] = getattr(import_module(module), name)
    return backend


def module_for(location: str, name: str) -> Any:
    """Return a module of the backend of such a location, None if it has no such module."""
    package = _row(location).partition(":")[0].split(".")[:3]
    module = ".".join([*package, name])
    return import_module(module) if find_spec(module) else None


def _row(location: str) -> str:
    scheme = urlsplit(location).scheme if "://" in location else ""
    if scheme not in BACKENDS:
        raise LocationError(
            f"An index at {scheme}:// is not known to this version of slice-os: name a folder, or "
            "https://host:9200/name."
        )
    return BACKENDS[scheme]


def connection(credentials: Mapping[str, str] | None, client: Any) -> dict[str, Any]:
    """Return the options of `Backend.open` that are given."""
    options = {"credentials": credentials, "client": client}
    return {name: value for name, value in options.items() if value is not None}

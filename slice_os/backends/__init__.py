"""The backends: one row each, found by how the place of the index is written."""

from __future__ import annotations

from urllib.parse import urlsplit

from slice_os.backends.base import Backend, IndexMeta
from slice_os.backends.local import LocalBackend
from slice_os.errors import PlaceError

__all__ = ["Backend", "IndexMeta", "backend_for"]

BACKENDS: dict[str, type[Backend]] = {"": LocalBackend}
"""URL scheme -> backend; a place without a scheme is a folder."""


def backend_for(place: str) -> type[Backend]:
    """Return the backend that keeps indexes at such a place, or raise PlaceError."""
    scheme = urlsplit(place).scheme if "://" in place else ""
    if scheme not in BACKENDS:
        raise PlaceError(
            f"An index at {scheme}:// is not known to this version of slice-os: name a folder."
        )
    return BACKENDS[scheme]

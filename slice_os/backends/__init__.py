"""The backends: one row each, found by how the place of the index is written."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from slice_os.backends.base import Backend, IndexMeta
from slice_os.backends.local import LocalBackend
from slice_os.errors import PlaceError

__all__ = ["Backend", "IndexMeta", "LocalBackend", "create_backend", "open_backend"]

BACKENDS: dict[str, type[LocalBackend]] = {"": LocalBackend, "file": LocalBackend}
"""URL scheme -> backend; a place without a scheme is a folder."""


def _row(place: str) -> tuple[type[LocalBackend], Path]:
    parts = urlsplit(place)
    scheme = parts.scheme if "://" in place else ""
    if scheme not in BACKENDS:
        raise PlaceError(
            f"An index at {scheme}:// is not known to this version of slice-os: name a folder."
        )
    return BACKENDS[scheme], Path(parts.path if scheme else place).expanduser()


def open_backend(place: str) -> Backend | None:
    """Open the index at a place; None if there is none yet.

    Raises:
        PlaceError: something else is there, or the place is not understood.
    """
    kind, folder = _row(place)
    return kind(folder) if kind.exists(folder) else None


def create_backend(place: str, meta: IndexMeta) -> Backend:
    """Make an empty index at a place."""
    kind, folder = _row(place)
    return kind.create(folder, meta)

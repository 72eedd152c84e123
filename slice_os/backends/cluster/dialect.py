"""What differs between the kinds of servers that a cluster may be made of.

A dialect is a module beside this one and a row of `DIALECTS`; the server says which it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, ClassVar

from slice_os.backends.cluster.answers import foreign_error
from slice_os.backends.cluster.client import Client
from slice_os.backends.cluster.settings import Layout
from slice_os.errors import GoneError, RefusedError, UnauthorizedError

DIALECTS = {"opensearch": "slice_os.backends.cluster.opensearch:OpenSearch"}
"""Name -> module and class, loaded when used, asked in this order."""


class Dialect(ABC):
    """A kind of server.

    Attributes:
        name: What `status` calls the backend.
        template: The file of index_templates/ that its indexes are made from.
        pit_path: Where points in time are opened and closed.
        pit_field: The field of the answer that holds the id of a new one.
        merge_options: What has _forcemerge answer at once.
        lexical_query: As in `slice_os.query`, and so `span_query`, `hybrid_query` (fused by
            saturation) and `mining_query`.
    """

    name: ClassVar[str]
    template: ClassVar[str]
    pit_path: ClassVar[str]
    pit_field: ClassVar[str]
    merge_options: ClassVar[Mapping[str, Any]]
    lexical_query: ClassVar[Callable[..., dict[str, Any]]]
    span_query: ClassVar[Callable[..., dict[str, Any]]]
    hybrid_query: ClassVar[Callable[..., dict[str, Any]]]
    mining_query: ClassVar[Callable[..., dict[str, Any]]]

    @classmethod
    @abstractmethod
    def matches(cls, version: Mapping[str, Any]) -> bool:
        """Tell whether a server is of this kind, by the `version` that ``GET /`` answers."""

    @abstractmethod
    def closing(self, pit: str) -> dict[str, Any]:
        """Return the body that closes a point in time."""

    @abstractmethod
    def check(self, layout: Layout) -> None:
        """Raise LocationError if the server cannot have an index of such a layout."""

    @abstractmethod
    def put_vector(self, field: dict[str, Any], dimension: int, layout: Layout) -> None:
        """Write the layout into the mapping of the template's vector field."""

    @abstractmethod
    def read_vector(self, field: Mapping[str, Any]) -> tuple[int, str, str]:
        """Return the dimension, the type and the engine of a mapped vector field."""

    @abstractmethod
    def has_hybrid(self, client: Client) -> bool:
        """Tell whether every node can fuse two queries itself."""


def dialect_of(client: Client) -> Dialect:
    """Return the dialect of the server that a client speaks to.

    A server that does not say what it is (not every account may ask) is taken for the first.

    Raises:
        UnreachableError: it is none of `DIALECTS`.
    """
    kinds = [_load(row) for row in DIALECTS.values()]
    try:
        said = client.request("GET", "/")
    except (GoneError, RefusedError, UnauthorizedError):
        return kinds[0]()
    version = said.get("version") if isinstance(said, Mapping) else None
    if not isinstance(version, Mapping):
        raise foreign_error(client.url, "it does not say its version")
    for kind in kinds:
        if kind.matches(version):
            return kind()
    raise foreign_error(client.url, f"but version {version.get('number')} of something else")


def _load(row: str) -> type[Dialect]:
    module, name = row.split(":")
    found: type[Dialect] = getattr(import_module(module), name)
    return found

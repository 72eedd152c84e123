"""What differs between the kinds of servers that a cluster may be made of.

A dialect is a module beside this one and a row of `DIALECTS`; the server says which it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, ClassVar, Literal, Protocol

from slice_os.errors import ClusterError, GoneError, LocationError, RefusedError, UnauthorizedError
from slice_os.storage.cluster.client import Client
from slice_os.storage.cluster.cluster_errors import foreign_error
from slice_os.storage.cluster.settings import DIALECTS, Address, Engine, Layout

Version = tuple[int, ...]


class Notes(Protocol):
    """Takes what `Dialect.examine` finds; see `slice_os.operate`."""

    facts: dict[str, Any]

    def find(
        self, severity: Literal["ok", "notice", "warning", "error"], what: str, advice: str = ""
    ) -> None:
        """Note a finding."""


class Asker(Protocol):
    """Asks a cluster; None is the answer to what it may not or cannot say."""

    address: Address

    def get(self, path: str, body: dict[str, Any] | None = None, **params: Any) -> Any:
        """Return what a path answers."""

    def curl(self, path: str, method: str = "GET") -> str:
        """Return the beginning of a curl command."""


class Dialect(ABC):
    """A kind of server, of the version that it has.

    Attributes:
        name: What `status` calls the backend.
        title: What people call it.
        oldest: The first version that can search spans.
        tested: The oldest version that slice-os is tested with.
        denial: What stands in its refusals of what an account may not do.
        template: The file of index_templates/ that its indexes are made from.
        engines: What may search the span vectors; the first, unless a layout says another.
        pit_path: Where points in time are opened and closed.
        pit_field: The field of the answer that holds the id of a new one.
        whole_source: The part of a body that asks for all that is stored, vectors included.
        windows: How many passages of a shard a search for all near ones names at most, and how many
            it is asked for when that was too few.
        lexical_query: As in `slice_os.storage.cluster.query`, and so `span_query`, `mining_query`,
            `hybrid_queries`, `exact_query`.
        hybrid_query: Likewise, fused by saturation; None where that takes two searches.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    oldest: ClassVar[Version]
    tested: ClassVar[Version]
    denial: ClassVar[str]
    template: ClassVar[str]
    engines: ClassVar[tuple[Engine, ...]]
    pit_path: ClassVar[str]
    pit_field: ClassVar[str]
    windows: ClassVar[tuple[int, ...]]
    lexical_query: ClassVar[Callable[..., dict[str, Any]]]
    span_query: ClassVar[Callable[..., dict[str, Any]]]
    hybrid_query: ClassVar[Callable[..., dict[str, Any]] | None]
    hybrid_queries: ClassVar[Callable[..., list[dict[str, Any]]]]
    mining_query: ClassVar[Callable[..., dict[str, Any]]]
    exact_query: ClassVar[Callable[..., dict[str, Any]]]

    def __init__(self, version: Version | None = None) -> None:
        """Take the version that the server has; None if it does not say."""
        self.version = version
        self.whole_source: Mapping[str, Any] = {}

    @classmethod
    @abstractmethod
    def matches(cls, version: Mapping[str, Any]) -> bool:
        """Tell whether a server is of this kind, by the `version` that ``GET /`` answers."""

    @abstractmethod
    def closing(self, pit: str) -> dict[str, Any]:
        """Return the body that closes a point in time."""

    def check(self, layout: Layout) -> None:
        """Raise LocationError if the server cannot have an index of such a layout."""
        if layout.engine and layout.engine not in self.engines:
            raise LocationError(
                f"{self.title} has no engine {layout.engine}: choose {', '.join(self.engines)}."
            )

    @abstractmethod
    def put_vector(self, field: dict[str, Any], dimension: int, layout: Layout) -> None:
        """Write the layout into the mapping of the template's vector field."""

    def settings(self) -> dict[str, Any]:
        """Return the settings of an index that this version needs besides the template's."""
        return {}

    @abstractmethod
    def read_vector(self, field: Mapping[str, Any]) -> tuple[int, str, Engine]:
        """Return the dimension, the type and the engine of a mapped vector field."""

    @abstractmethod
    def has_hybrid(self, client: Client) -> bool:
        """Tell whether every node can fuse two queries itself, as `hybrid_query` says."""

    def keeps_degrees(self, layout: Layout) -> bool:
        """Tell whether a search compares the stored vectors, not shorter codes of them."""
        return True

    def adapt(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the body of a search as this version takes it."""
        return body

    @abstractmethod
    def examine(self, asker: Asker, notes: Notes) -> None:
        """Note what there is to say of the server, and of what only this kind has."""

    def check_version(self, notes: Notes) -> None:
        """Note what the version can do for us."""
        if self.version is None:
            return
        said = f"{self.title} {dotted(self.version)}"
        if self.version < self.tested:
            notes.find(
                "notice",
                f"{said} is older than {dotted(self.tested)}, which slice-os is tested with",
                "try your searches, or upgrade.",
            )
        else:
            notes.find("ok", f"{said} can do all that slice-os asks for.")


def check_nodes(nodes: Iterable[Mapping[str, Any]], notes: Notes) -> None:
    """Note if nodes have different versions."""
    versions = sorted({node["version"] for node in nodes})
    if len(versions) > 1:
        notes.find(
            "warning",
            f"The nodes have different versions: {', '.join(versions)}",
            "finish the upgrade before you index.",
        )


def dialect_of(client: Client) -> Dialect:
    """Return the dialect of the server that a client speaks to.

    A server that does not say what it is (not every account may ask) is known by how it refuses,
    else taken for the first.

    Raises:
        UnreachableError: it is none of `DIALECTS`.
        ClusterError: its version is too old.
    """
    kinds = [load_dialect(name) for name in DIALECTS]
    try:
        said = client.request("GET", "/")
    except (GoneError, RefusedError, UnauthorizedError) as exc:
        return next((kind for kind in kinds if kind.denial in str(exc)), kinds[0])()
    version = said.get("version") if isinstance(said, Mapping) else None
    if not isinstance(version, Mapping):
        raise foreign_error(client.url, "it does not say its version")
    number = str(version.get("number", ""))
    kind = next((kind for kind in kinds if kind.matches(version)), None)
    if kind is None:
        raise foreign_error(client.url, f"but version {number} of something else")
    parts = tuple(int(part) for part in number.split(".")[:2] if part.isdecimal())
    if parts < kind.oldest:
        raise ClusterError(
            f"{kind.title} {number} at {client.url} cannot search spans: upgrade it to "
            f"{dotted(kind.oldest)} or newer."
        )
    return kind(parts)


def dotted(version: Version) -> str:
    """Return a version as people write it."""
    return ".".join(map(str, version))


def rewritten(part: Any, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Any:
    """Return a body in which every object is what `change` makes of it, the outer ones first."""
    if isinstance(part, list):
        return [rewritten(one, change) for one in part]
    if not isinstance(part, Mapping):
        return part
    return {name: rewritten(one, change) for name, one in change(part).items()}


def load_dialect(name: str) -> type[Dialect]:
    """Return the class of a row of `DIALECTS`."""
    module, _, kind = DIALECTS[name].partition(":")
    found: type[Dialect] = getattr(import_module(module), kind)
    return found

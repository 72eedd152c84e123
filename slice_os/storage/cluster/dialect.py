"""What differs between the kinds of servers that a cluster may be made of.

A dialect is a module beside this one and a row of `DIALECTS`; the server says which it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
import numpy.typing as npt
import pybase64

from slice_os.errors import (
    BlockedError,
    BusyError,
    ClusterError,
    ClusterTimeoutError,
    GoneError,
    LocationError,
    RefusedError,
    UnauthorizedError,
)
from slice_os.storage.cluster import queries
from slice_os.storage.cluster.client import Client
from slice_os.storage.cluster.cluster_errors import foreign_error
from slice_os.storage.cluster.settings import DIALECTS, Engine, Layout
from slice_os.storage.findings import Diagnosis

Version = tuple[int, ...]
T = TypeVar("T")
JSON = "-H 'content-type: application/json' -d"


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
        bodies: The dialect of the bodies that it takes (`slice_os.query`).
        is_saturating: Whether one search can fuse by saturation (`hybrid_query`); else it takes two
            (`hybrid_queries`).
        pit_path: Where points in time are opened and closed.
        pit_field: The field of the answer that holds the id of a new one.
        whole_source: The part of a body that asks for all that is stored, vectors included.
        float_order: The order of a float's bytes in a vector that is sent as base64, as numpy says
            it; empty if this version takes arrays only.
        windows: How many passages of a shard a search for all near ones names at most, and how many
            it is asked for when that was too few.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    oldest: ClassVar[Version]
    tested: ClassVar[Version]
    denial: ClassVar[str]
    template: ClassVar[str]
    engines: ClassVar[tuple[Engine, ...]]
    bodies: ClassVar[queries.Dialect]
    is_saturating: ClassVar[bool]
    pit_path: ClassVar[str]
    pit_field: ClassVar[str]
    windows: ClassVar[tuple[int, ...]]

    def __init__(self, version: Version | None = None) -> None:
        """Take the version that the server has; None if it does not say."""
        self.version = version
        self.whole_source: Mapping[str, Any] = {}
        self.float_order: Literal["", "<", ">"] = ""

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
        """Tell whether every node can fuse two rankings itself, as `hybrid_query` says."""

    def packed_vectors(self, vectors: npt.NDArray[Any]) -> Sequence[Any]:
        """Return vectors ``[K, d]`` as this version reads them quickest: arrays or base64."""
        if not self.float_order:
            return list(vectors)
        kind = "i1" if vectors.dtype == np.int8 else f"{self.float_order}f4"
        return [pybase64.b64encode_as_string(vector.tobytes()) for vector in vectors.astype(kind)]

    def unpacked_vectors(
        self, stored: Sequence[Any], layout: Layout
    ) -> npt.NDArray[np.int8] | npt.NDArray[np.float32]:
        """Return vectors ``[K, d]``, int8 or float32, from what `_source` has: either of the two.

        Raises:
            ValueError: it is something else.
            OverflowError: a number is too large for its type.
        """
        kind = np.dtype(np.int8 if layout.vector_type == "byte" else np.float32)
        sent = kind.newbyteorder(self.float_order or "=")
        rows = [
            np.frombuffer(pybase64.b64decode(row, validate=True), sent)
            if isinstance(row, str)
            else row
            for row in stored
        ]
        return np.array(rows, kind)

    def keeps_degrees(self, layout: Layout) -> bool:
        """Tell whether a search compares the stored vectors, not shorter codes of them."""
        return True

    def adapt(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the body of a search as this version takes it."""
        return body

    @abstractmethod
    def examine(self, asker: Asker, diagnosis: Diagnosis) -> None:
        """Add what there is to say of the server's version and of how it searches vectors."""

    def check_version(self, diagnosis: Diagnosis) -> None:
        """Add what the version can do."""
        if self.version is None:
            return
        server = f"{self.title} {dotted(self.version)}"
        if self.version < self.tested:
            diagnosis.add(
                "notice",
                f"{server} is older than {dotted(self.tested)}, which slice-os is tested with",
                "try your searches, or upgrade.",
            )
        else:
            diagnosis.add("ok", f"{server} can do all that slice-os asks for.")


class Asker:
    """Asks a cluster; what it may not or cannot answer is None, and noted."""

    def __init__(self, client: Client, diagnosis: Diagnosis) -> None:
        self.client, self.address, self._diagnosis = client, client.address, diagnosis

    def get(
        self, path: str, kind: type[T], body: dict[str, Any] | None = None, **params: Any
    ) -> T | None:
        """Return what a path answers, as a type of `responses`."""
        try:
            return self.client.request("POST" if body else "GET", path, body, kind, **params)
        except UnauthorizedError as exc:
            if exc.status != 403:
                raise
            self._diagnosis.add(
                "notice",
                f"{path} is not allowed to these credentials",
                "for the whole picture, run this with those of an administrator.",
            )
        except (BlockedError, BusyError, ClusterTimeoutError) as exc:
            self._diagnosis.add("warning", f"{path} is not answered now: {str(exc).rstrip('.')}")
        except (GoneError, RefusedError) as exc:
            if exc.status not in (400, 404, 405):  # no such plugin, or not on such a service
                raise
        return None

    def put_settings(self, index: str) -> str:
        """Return the curl command that changes settings, without their JSON."""
        return f"{self.client.curl(f'/{index}/_settings', 'PUT')} {JSON}"


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
        answer: Any = client.request("GET", "/")
    except (GoneError, RefusedError, UnauthorizedError) as exc:
        return next((kind for kind in kinds if kind.denial in str(exc)), kinds[0])()
    version = answer.get("version") if isinstance(answer, Mapping) else None
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


def load_dialect(name: str) -> type[Dialect]:
    """Return the class of a row of `DIALECTS`."""
    module, _, kind = DIALECTS[name].partition(":")
    dialect: type[Dialect] = getattr(import_module(module), kind)
    return dialect


def dotted(version: Version) -> str:
    """Return a version as people write it."""
    return ".".join(map(str, version))


def rewritten(part: Any, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Any:
    """Return a body in which every object is what `change` makes of it, the outer ones first."""
    if isinstance(part, list):
        return [rewritten(member, change) for member in part]
    if not isinstance(part, Mapping):
        return part
    return {name: rewritten(value, change) for name, value in change(part).items()}

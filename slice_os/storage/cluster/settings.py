"""Where an index of a cluster is."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypedDict
from urllib.parse import urlsplit

import regex

from slice_os.errors import LocationError

_NAME = regex.compile(r"[^\p{Lu}\s\\/*?\"<>|,#:+_-][^\p{Lu}\s\\/*?\"<>|,#:]*")


@dataclass(frozen=True, slots=True)
class Address:
    """Where an index of a cluster is: its hosts (one or more) and the alias that names it."""

    scheme: str
    hosts: tuple[tuple[str, int], ...]
    prefix: str
    name: str

    @property
    def url(self) -> str:
        """The cluster's address, without the index."""
        hosts = ",".join(f"{f'[{h}]' if ':' in h else h}:{port}" for h, port in self.hosts)
        return f"{self.scheme}://{hosts}{self.prefix}"

    def __str__(self) -> str:
        return f"{self.url}/{self.name}"


def _from_cloud(rest: str, named: bool) -> str:
    """Return what follows https:// for ``CLOUD_ID/name``: an id is NAME:BASE64, which has slashes.

    The text within is HOST[:PORT]$CLUSTER$KIBANA.
    """
    cloud_id, name = (rest.rstrip("/").rpartition("/")[::2]) if named else (rest.rstrip("/"), "")
    try:
        text = base64.b64decode(cloud_id.rpartition(":")[2], validate=True).decode("ascii")
    except ValueError:
        text = ""
    host, cluster, *_ = [*text.split("$"), ""]
    if not host:
        raise LocationError(
            "The address holds no cloud id: write cloud://CLOUD_ID/name, with the id that the "
            "console shows."
        )
    host, _, port = host.partition(":")
    return f"{f'{cluster}.' if cluster else ''}{host}:{port or 443}/{name}"


def parse_location(location: str, *, named: bool = True) -> Address:
    """Return the parts of ``https://host:9200/name``; hosts may be joined by commas.

    Of Elastic Cloud the id may stand instead: ``cloud://CLOUD_ID/name``.

    Raises:
        LocationError: it is no such address, or it holds a user's name or password.
    """
    scheme, separator, rest = location.partition("://")
    if not separator:
        raise LocationError(f"{location} is no address of a cluster: write https://host:9200/name.")
    scheme = scheme.lower()  # HTTPS:// is to be encrypted too
    if scheme == "cloud":
        scheme, rest = "https", _from_cloud(rest, named)
    hosts, _, path = rest.partition("/")
    if "@" in rest:  # and not only in the hosts: a password may hold a slash
        raise LocationError(
            "Leave the user and the password out of the address: set SLICE_OS_USER and "
            "SLICE_OS_PASSWORD instead."
        )
    *prefix, name = path.strip("/").split("/") if named else (*path.strip("/").split("/"), "")
    if named and (not _NAME.fullmatch(name) or len(name.encode()) > 200):
        raise LocationError(
            f"{location} names no index: write {scheme}://{hosts or 'host:9200'}/name, the name in "
            "small letters."
        )
    try:
        parsed = [urlsplit(f"{scheme}://{host}") for host in hosts.split(",")]
        # Without a port, OpenSearch's own: 443 must be written.
        pairs = tuple((url.hostname or "", url.port or 9200) for url in parsed)
    except ValueError as exc:
        raise LocationError(f"{location} is no address: {exc}.") from exc
    if not all(host for host, _ in pairs):
        raise LocationError(f"{location} names no host: write {scheme}://host:9200/name.")
    return Address(scheme, pairs, "".join(f"/{part}" for part in prefix if part), name)


DIALECTS = {
    "opensearch": "slice_os.storage.cluster.opensearch:OpenSearch",
    "elasticsearch": "slice_os.storage.cluster.elasticsearch:Elasticsearch",
}
"""Kinds of servers (`dialect.Dialect`): name -> module and class, loaded when used, asked in this
order."""
VectorType = Literal["byte", "float"]
Engine = Literal["", "lucene", "faiss", "hnsw", "int8_hnsw", "bbq_hnsw", "bbq_disk"]


class ClusterSettings(TypedDict, total=False):
    """The settings of an index in a cluster, fixed when it is made, but for the replicas.

    What is left out is as `Layout` has it; an index that exists keeps its own. `fields` names
    metadata that is mapped with a type of its own too, name -> type: ``fields.year``.
    """

    tolerance: float
    vector_type: VectorType
    dimensions: int | None
    engine: Engine
    codec: str
    analyzer: str
    shards: int
    replicas: int
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Layout:
    """How an index in a cluster is made: `ClusterSettings`, with the defaults.

    Attributes:
        tolerance: The least cosine of a span with the stored span that stands for it
            (`spans.cover`).
        engine: What searches the span vectors; empty for what the kind of server usually has
            (`dialect.Dialect.engines`).
        codec: How the server compresses what it stores of a passage besides the span vectors
            (``index.codec``).
        dimensions: Of the stored span vectors, the first of the encoder's; None for all.
    """

    tolerance: float = 0.8
    vector_type: VectorType = "byte"
    dimensions: int | None = None
    engine: Engine = ""
    codec: str = "default"
    analyzer: str = "english"
    shards: int = 1
    replicas: int = 1
    fields: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Layout:
        """Return the layout that some settings ask for, the others at their defaults.

        Raises:
            LocationError: there is no such setting.
        """
        names = [setting.name for setting in fields(cls)]
        if unknown := settings.keys() - {*names}:
            raise LocationError(
                f"There is no setting {min(unknown)!r}: choose from {', '.join(names)}."
            )
        return cls(**settings)

"""Where an index of a cluster is."""

from __future__ import annotations

import base64
from dataclasses import dataclass
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
        pairs = tuple((one.hostname or "", one.port or 9200) for one in parsed)
    except ValueError as exc:
        raise LocationError(f"{location} is no address: {exc}.") from exc
    if not all(host for host, _ in pairs):
        raise LocationError(f"{location} names no host: write {scheme}://host:9200/name.")
    return Address(scheme, pairs, "".join(f"/{part}" for part in prefix if part), name)

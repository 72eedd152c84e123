"""Reaching a cluster: its location, and a client for it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import regex

from slice_os.backends.opensearch.answers import (
    BUSY,
    PATIENCE,
    SEARCH_PATIENCE,
    as_error,
    patiently,
    reason_of,
)
from slice_os.backends.opensearch.credentials import (
    authorization_of,
    curl_options,
    signer,
    trust,
)
from slice_os.errors import ClusterError, LocationError

if TYPE_CHECKING:
    from opensearchpy import OpenSearch

__all__ = [
    "BUSY", "PATIENCE", "SEARCH_PATIENCE", "Address", "as_error", "connect", "curl",
    "parse_location",
    "patiently", "reason_of",
]  # fmt: skip

TIMEOUT = 60.0
CONNECT_TIMEOUT = 5.0
"""Seconds for a connection to come about; for an answer there is more."""
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


def parse_location(location: str, *, named: bool = True) -> Address:
    """Return the parts of ``https://host:9200/name``; hosts may be joined by commas.

    Raises:
        LocationError: it is no such address, or it holds a user's name or password.
    """
    scheme, separator, rest = location.partition("://")
    if not separator:
        raise LocationError(f"{location} is no address of a cluster: write https://host:9200/name.")
    scheme = scheme.lower()  # HTTPS:// is to be encrypted too
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


def connect(address: Address, environment: Mapping[str, str] = os.environ) -> OpenSearch:
    """Return a client for a cluster, its credentials from the environment (docs/cluster.md).

    Raises:
        ClusterError: the credentials, or the files that hold them, cannot be used.
        MissingExtraError: AWS is asked for without boto3.
    """
    from opensearchpy import OpenSearch
    from urllib3 import Timeout

    from slice_os.backends.opensearch.encoding import Serializer

    get = environment.get
    seconds = _seconds(get("SLICE_OS_TIMEOUT"))
    several = len(address.hosts) > 1
    options: dict[str, Any] = {
        "hosts": [{"host": host, "port": port} for host, port in address.hosts],
        "use_ssl": address.scheme == "https",
        "timeout": Timeout(connect=min(seconds, CONNECT_TIMEOUT), read=seconds),
        "serializer": Serializer(),
        # Every answer is to be JSON: one of plain text is none of OpenSearch's.
        "serializers": {"text/plain": Serializer()},
        "http_compress": get("SLICE_OS_COMPRESS", "0").lower() not in ("", "0", "false", "no"),
        "max_retries": len(address.hosts) - 1,
        "retry_on_timeout": False,
        "retry_on_status": (502, 503, 504) if several else (),
        "pool_maxsize": 8,
        "url_prefix": address.prefix.strip("/"),
    }
    if address.scheme == "https":
        options["ssl_context"] = trust(environment)
    if region := get("SLICE_OS_AWS_REGION"):
        options["http_auth"] = signer(region, get("SLICE_OS_AWS_SERVICE") or "es")
    elif authorization := authorization_of(environment, address.url):
        options["headers"] = {"authorization": authorization}
    return OpenSearch(**options)


def curl(address: Address, path: str, method: str = "GET") -> str:
    """Return the beginning of a curl command for a POSIX shell: to the first host, as `connect`."""
    url = replace(address, hosts=address.hosts[:1]).url
    how = "" if method == "GET" else f" -X {method}"
    return f"curl -sS{curl_options(os.environ)}{how} {shlex.quote(url + path)}"


def _seconds(text: str | None) -> float:
    try:
        seconds = float(text) if text else TIMEOUT
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86_400:  # NaN is neither
        raise ClusterError(f"SLICE_OS_TIMEOUT is {text!r}: it must be seconds, above 0.")
    return seconds

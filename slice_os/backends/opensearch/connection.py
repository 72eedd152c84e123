"""Reaching a cluster: the place, the credentials, and what its errors mean.

Secrets come from the environment or a prompt; they are in no argument, message or repr.
"""

from __future__ import annotations

import getpass
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import regex

from slice_os.errors import ClusterError, MissingExtraError, PlaceError

if TYPE_CHECKING:
    from opensearchpy import OpenSearch

T = TypeVar("T")
TIMEOUT = 60.0
PATIENCE = 300.0
"""Seconds for which a write that the cluster cannot take now is tried again."""
SEARCH_PATIENCE = 20.0
BUSY = (429, 502, 503, 504)
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


def parse_place(place: str, *, named: bool = True) -> Address:
    """Return the parts of ``https://host:9200/name``; hosts may be joined by commas.

    Raises:
        PlaceError: it is no such address, or it holds a user's name or password.
    """
    scheme, _, rest = place.partition("://")
    hosts, _, path = rest.partition("/")
    if "@" in hosts:
        raise PlaceError(
            "Leave the user and the password out of the address: set SLICE_OS_USER and "
            "SLICE_OS_PASSWORD instead."
        )
    *prefix, name = path.strip("/").split("/") if named else (*path.strip("/").split("/"), "")
    if named and (not _NAME.fullmatch(name) or len(name.encode()) > 200):
        raise PlaceError(
            f"{place} names no index: write {scheme}://{hosts or 'host:9200'}/name, the name in "
            "small letters."
        )
    try:
        parsed = [urlsplit(f"{scheme}://{host}") for host in hosts.split(",")]
        # Without a port, OpenSearch's own: 443 must be written.
        pairs = tuple((one.hostname or "", one.port or 9200) for one in parsed)
    except ValueError as exc:
        raise PlaceError(f"{place} is no address: {exc}.") from exc
    if not all(host for host, _ in pairs):
        raise PlaceError(f"{place} names no host: write {scheme}://host:9200/name.")
    return Address(scheme, pairs, "".join(f"/{part}" for part in prefix if part), name)


def connect(address: Address, environment: Mapping[str, str] = os.environ) -> OpenSearch:
    """Return a client for a cluster, its credentials from the environment (docs/cluster.md)."""
    from opensearchpy import OpenSearch

    from slice_os.backends.opensearch.encoding import Serializer

    get = environment.get
    options: dict[str, Any] = {
        "hosts": [{"host": host, "port": port} for host, port in address.hosts],
        "use_ssl": address.scheme == "https",
        "timeout": _number(get("SLICE_OS_TIMEOUT"), TIMEOUT),
        "serializer": Serializer(),
        "http_compress": len(get("SLICE_OS_COMPRESS", "")) > 0,
        "max_retries": len(address.hosts) - 1,
        "retry_on_timeout": False,
        "retry_on_status": (502, 503, 504) if len(address.hosts) > 1 else (),
        "pool_maxsize": 8,
        "url_prefix": address.prefix.strip("/"),
    }
    if address.scheme == "https":
        verify = get("SLICE_OS_VERIFY_CERTS", "true").lower() not in ("0", "false", "no")
        options |= {"verify_certs": verify, "ssl_show_warn": verify}
        if verify:
            options["ssl_context"] = _trust(get("SLICE_OS_CA_CERTS"), environment)
    if region := get("SLICE_OS_AWS_REGION"):
        options["http_auth"] = _signer(region, get("SLICE_OS_AWS_SERVICE", "es"))
    elif key := get("SLICE_OS_API_KEY"):
        options["headers"] = {"authorization": f"ApiKey {key}"}
    elif user := get("SLICE_OS_USER"):
        options["http_auth"] = (user, _password(user, environment, address.url))
    return OpenSearch(**options)


def _trust(authorities: str | None, environment: Mapping[str, str]) -> Any:
    """Return a TLS context that trusts the system's authorities, or those of a file."""
    import ssl

    try:
        context = ssl.create_default_context(cafile=authorities)
        if certificate := environment.get("SLICE_OS_CLIENT_CERT"):
            context.load_cert_chain(certificate, environment.get("SLICE_OS_CLIENT_KEY"))
    except (OSError, ssl.SSLError) as exc:
        raise ClusterError(
            "A certificate cannot be read: check the files that SLICE_OS_CA_CERTS, "
            f"SLICE_OS_CLIENT_CERT and SLICE_OS_CLIENT_KEY name ({exc.strerror or exc})."
        ) from exc
    return context


def _password(user: str, environment: Mapping[str, str], url: str) -> str:
    if "SLICE_OS_PASSWORD" in environment:
        return environment["SLICE_OS_PASSWORD"]
    if not sys.stdin.isatty():
        raise ClusterError(f"SLICE_OS_USER is {user}: set SLICE_OS_PASSWORD too.")
    return getpass.getpass(f"Password of {user} at {url}: ")


def _signer(region: str, service: str) -> Any:
    try:
        import boto3
    except ImportError:
        raise MissingExtraError("Signing requests for AWS", "aws") from None
    from opensearchpy import Urllib3AWSV4SignerAuth

    credentials = boto3.Session().get_credentials()
    if credentials is None:
        raise ClusterError(
            "SLICE_OS_AWS_REGION is set and AWS credentials are nowhere to be found: set "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE."
        )
    return Urllib3AWSV4SignerAuth(credentials, region, service)


def _number(text: str | None, default: float) -> float:
    try:
        return float(text) if text else default
    except ValueError:
        raise ClusterError(f"SLICE_OS_TIMEOUT is {text!r}: it must be seconds.") from None


def as_error(url: str, exc: Exception) -> ClusterError:
    """Return what an error of opensearch-py means, in one sentence that names the fix."""
    from opensearchpy import ConnectionError as NoConnection
    from opensearchpy import ConnectionTimeout, SSLError, TransportError

    if isinstance(exc, SSLError):
        return ClusterError(
            f"The certificate of {url} cannot be verified: set SLICE_OS_CA_CERTS to the file of "
            "its authority."
        )
    if isinstance(exc, ConnectionTimeout):
        return ClusterError(
            f"{url} did not answer in time: look at its load, or set SLICE_OS_TIMEOUT to more "
            "seconds."
        )
    if isinstance(exc, NoConnection):
        return ClusterError(
            f"No cluster answers at {url}: check the address, https or http, and that it runs."
        )
    if not isinstance(exc, TransportError):
        return ClusterError(f"{url} gave an answer that is not OpenSearch's: {type(exc).__name__}.")
    if exc.status_code == 401:
        return ClusterError(
            f"{url} asks who you are: set SLICE_OS_USER and SLICE_OS_PASSWORD, or "
            "SLICE_OS_API_KEY, to credentials that it accepts."
        )
    if exc.status_code == 403:
        return ClusterError(f"{url} does not allow this: {reason_of(exc.info)}.")
    if exc.status_code in BUSY:
        return ClusterError(f"{url} is too busy or not ready: {reason_of(exc.info)}. Try again.")
    return ClusterError(f"{url} refused a request ({exc.status_code}): {reason_of(exc.info)}.")


def reason_of(info: object) -> str:
    """Return the innermost reason of an error that OpenSearch answered, in short."""
    error = info.get("error", info) if isinstance(info, Mapping) else info
    while isinstance(error, Mapping):
        inner = error.get("caused_by") or next(iter(error.get("root_cause") or ()), None)
        if inner is None or inner == error:
            error = error.get("reason") or error.get("type") or "no reason given"
        else:
            error = inner
    return " ".join(str(error).split()).rstrip(".")[:300]


def patiently(work: Callable[[], T], url: str, seconds: float = SEARCH_PATIENCE) -> T:
    """Run a request; again, after growing random waits, while the cluster is busy or away."""
    from opensearchpy import ConnectionError as NoConnection
    from opensearchpy import OpenSearchException, SSLError, TransportError
    from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random_exponential

    def passes(exc: BaseException) -> bool:
        if isinstance(exc, NoConnection):
            return not isinstance(exc, SSLError)
        return isinstance(exc, TransportError) and exc.status_code in BUSY

    try:
        return Retrying(
            retry=retry_if_exception(passes),
            wait=wait_random_exponential(multiplier=0.2, max=15),
            stop=stop_after_delay(seconds),
            reraise=True,
        )(work)
    except OpenSearchException as exc:
        raise as_error(url, exc) from exc

"""A client for a cluster: requests, retried while it is busy, and the credentials they carry."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from threading import Event
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote
from weakref import finalize

import orjson
from opensearchpy.exceptions import SerializationError
from opensearchpy.serializer import JSONSerializer

from slice_os.errors import ClusterError
from slice_os.run_stats import Effort
from slice_os.storage.cluster.cluster_errors import (
    READ_TIMEOUT,
    RETRY_TIMEOUT,
    UnreadableError,
    foreign_error,
    with_retries,
)
from slice_os.storage.cluster.credentials import (
    CONNECT_TIMEOUT,
    authorization_of,
    curl_options,
    environment_of,
    signer,
    trust,
)
from slice_os.storage.cluster.responses import decoded
from slice_os.storage.cluster.settings import Address

if TYPE_CHECKING:
    from opensearchpy import OpenSearch

T = TypeVar("T")
TIMEOUT = 60.0


class Client:
    """Sends requests to a cluster; what goes wrong is a `ClusterError`.

    Args:
        address: Where the cluster is.
        credentials: Instead of the environment's (docs/cluster.md), by the names of its
            variables without SLICE_OS_, in small letters: user, password, api_key, ca_certs …
        client: An opensearch-py client to use instead of one of our own; its owner closes it.

    Raises:
        ClusterError: the credentials, or the files that hold them, cannot be used.
        MissingExtraError: AWS is asked for without boto3.

    Attributes:
        connection: The credentials and the client that were given.
        effort: What the requests have taken so far.
    """

    def __init__(
        self,
        address: Address,
        credentials: Mapping[str, str] | None = None,
        client: OpenSearch | None = None,
    ) -> None:
        self.address, self.url = address, address.url
        self._credentials, self._given = credentials, client
        options = {"credentials": credentials, "client": client}
        self.connection = {name: value for name, value in options.items() if value is not None}
        self.effort = Effort()
        self._own: OpenSearch | None = None
        self._process = 0
        self._opensearch()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _opensearch(self) -> OpenSearch:
        """Return the client that asks.

        A forked process makes its own: two that read from one connection would mix up answers.
        """
        if self._given is not None:
            return self._given
        if self._own is None or self._process != os.getpid():
            environment = environment_of(self._credentials)
            self._is_usual = not environment.get("SLICE_OS_TIMEOUT")
            self._own, self._process = _connect(self.address, environment), os.getpid()
            finalize(self, self._own.close).atexit = False
        return self._own

    def close(self) -> None:
        """Close the connections, unless they are another's."""
        if self._own is not None:
            self._own.close()

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | Iterable[Any] | None = None,
        kind: type[T] = Any,  # type: ignore[assignment]
        at: str = "",
        *,
        retry_timeout: float = RETRY_TIMEOUT,
        given_up: Event | None = None,
        soon: bool = False,
        check: Callable[[Any], object] = lambda answer: None,
        **params: Any,
    ) -> T:
        """Return the answer to a request; a body that is no mapping is sent as lines of JSON.

        The answer, or what it holds at a path, is decoded as a type (`responses.decoded`); by
        default it is whatever JSON it is. The request is retried while the cluster is busy or away,
        or `check` says so of the answer, for `retry_timeout` seconds or until `given_up` is set. An
        answer that is due `soon` is waited for `READ_TIMEOUT` seconds, unless the client, or
        SLICE_OS_TIMEOUT, is the caller's.

        Raises:
            ClusterError: by its class, what went wrong (`slice_os.errors`).
        """
        data = body if body is None or isinstance(body, Mapping) else _lines(body)
        where = quote(path, safe="/,*")

        def work() -> Any:
            transport = self._opensearch().transport
            if soon and self._given is None and self._is_usual:
                params["request_timeout"] = READ_TIMEOUT
            try:
                with self.effort.spent("sending_seconds"):
                    answer = transport.perform_request(
                        method, where, params=dict(params), body=data
                    )
            except (LookupError, TypeError, AttributeError, ValueError) as exc:
                # Which opensearch-py takes apart.
                raise UnreadableError(self.url, "an error of an odd form") from exc
            if not isinstance(answer, Mapping | list):  # headers without a body
                raise foreign_error(self.url, "no JSON")
            check(answer)
            return answer

        answer = with_retries(work, self.url, retry_timeout, given_up, self.effort)
        return decoded(answer, kind, self.url, at)

    def curl(self, path: str, method: str = "GET") -> str:
        """Return the beginning of a curl command for a POSIX shell, to a host that answers."""
        pool = self._opensearch().transport.connection_pool
        known = ((each.hostname, each.port) for each in pool.connections)  # without dead ones
        hosts = [host for host in known if host in self.address.hosts]
        return curl(replace(self.address, hosts=(*hosts, *self.address.hosts)), path, method)


def curl(address: Address, path: str, method: str = "GET") -> str:
    """Return the beginning of a curl command for a POSIX shell: to the first host of an address."""
    url = replace(address, hosts=address.hosts[:1]).url
    how = "" if method == "GET" else f" -X {method}"
    return f"curl -sS{curl_options(os.environ)}{how} {shlex.quote(url + path)}"


class _Serializer(JSONSerializer):
    """opensearch-py's JSON, by orjson."""

    def dumps(self, data: Any) -> Any:
        """Return JSON text; text stays as it is."""
        return data if isinstance(data, str | bytes) else orjson.dumps(data).decode()

    def loads(self, data: Any) -> Any:
        """Return the value of a JSON text."""
        try:
            return orjson.loads(data)
        except ValueError as exc:
            raise SerializationError(data, exc) from exc


def _lines(body: Iterable[Any]) -> bytes:
    """Return bytes as they are, and other values as lines of JSON."""
    if isinstance(body, bytes):
        return body
    return b"".join(orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE) for value in body)


def _connect(address: Address, environment: Mapping[str, str]) -> OpenSearch:
    from opensearchpy import OpenSearch
    from urllib3 import Timeout

    from slice_os.storage.cluster.connection import LimitedConnection

    get = environment.get
    seconds = _seconds(get("SLICE_OS_TIMEOUT"))
    several = len(address.hosts) > 1
    options: dict[str, Any] = {
        "hosts": [{"host": host, "port": port} for host, port in address.hosts],
        "connection_class": LimitedConnection,
        "use_ssl": address.scheme == "https",
        "timeout": Timeout(connect=min(seconds, CONNECT_TIMEOUT), read=seconds),
        "serializer": _Serializer(),
        # Every answer is to be JSON: one of plain text is of something else.
        "serializers": {"text/plain": _Serializer()},
        "http_compress": get("SLICE_OS_COMPRESS", "0").lower() not in ("", "0", "false", "no"),
        "max_retries": len(address.hosts) - 1,
        "retry_on_timeout": False,
        "retry_on_status": (502, 503, 504) if several else (),
        "pool_maxsize": 8,
        "url_prefix": address.prefix.strip("/"),
    }
    if address.scheme == "https":
        options["ssl_context"] = trust(environment, address)
    if region := get("SLICE_OS_AWS_REGION"):
        options["http_auth"] = signer(region, get("SLICE_OS_AWS_SERVICE") or "es")
    elif authorization := authorization_of(environment, address.url):
        options["headers"] = {"authorization": authorization}
    return OpenSearch(**options)


def _seconds(text: str | None) -> float:
    try:
        seconds = float(text) if text else TIMEOUT
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86_400:  # NaN is neither
        raise ClusterError(f"SLICE_OS_TIMEOUT is {text!r}: it must be seconds, above 0.")
    return seconds

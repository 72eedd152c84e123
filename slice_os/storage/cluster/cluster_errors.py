"""What the errors of a cluster mean, each in one sentence that names the fix; and retrying."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Event
from typing import TYPE_CHECKING, Any, TypeVar

from slice_os.errors import (
    BlockedError,
    BusyError,
    ClusterError,
    ClusterTimeoutError,
    GoneError,
    RefusedError,
    UnauthorizedError,
    UnreachableError,
)
from slice_os.run_stats import Effort
from slice_os.storage.cluster.credentials import forget_secrets

if TYPE_CHECKING:
    from tenacity import RetryCallState

T = TypeVar("T")
WRITE_RETRY_TIMEOUT = 300.0
"""Seconds for which a write that the cluster cannot take now is retried."""
RETRY_TIMEOUT = 20.0
READ_TIMEOUT = 20.0
"""Seconds that a search may take, unless SLICE_OS_TIMEOUT says."""
FIRST_RETRY_TIMEOUT = 2.0
"""Seconds for an address where nothing has answered yet: it is wrong more often than busy."""
BUSY = (429, 502, 503, 504)
TOO_LARGE = 413
_GATEWAY = (502, 504)
"""From something in front of a cluster that does not find it."""
_CUT = "UNEXPECTED_EOF"
"""From TLS: the connection ended in the middle of the handshake."""
_TLS = (
    (("Hostname mismatch", "IP address mismatch"),
     "The certificate of {url} is for another host: write the name that it is for."),
    (("certificate has expired", "not yet valid"),
     "The certificate of {url} is not valid today: have it renewed, or set this clock."),
    (("CERTIFICATE_VERIFY_FAILED",),
     "The certificate of {url} cannot be verified: set SLICE_OS_CA_CERTS to the file of its "
     "authority."),
    (("ALERT_CERTIFICATE", "ALERT_BAD_CERTIFICATE", "ALERT_UNKNOWN_CA", "HANDSHAKE_FAILURE"),
     "{url} asks for a client certificate: set SLICE_OS_CLIENT_CERT and SLICE_OS_CLIENT_KEY to "
     "the files of one that it accepts."),
    (("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH", _CUT),
     "What answers at {url} does not speak TLS: write http:// if the cluster does without."),
    (("",), "No TLS connection to {url} comes about: check its address and its certificate."),
)  # fmt: skip
"""What stands in an error of TLS -> what it means; the first that fits."""
_AWAY = (
    (("Failed to resolve", "Name or service not known", "Failed to parse"),
     "The host of {url} is not known: check its name."),
    (("reset by peer", "Connection aborted", "closed connection", "Broken pipe", _CUT),
     "{url} cuts the connection off: check https or http, and whether it asks for a client "
     "certificate (SLICE_OS_CLIENT_CERT)."),
    (("",), "No cluster answers at {url}: check the address, https or http, and that it runs."),
)  # fmt: skip
_STATES = (
    ("index_closed_exception",
     "{url} says that the index is closed: open it ('slice-os doctor' says how)."),
    ("index_not_found_exception",
     "The index at {url} is gone ({reason}): if its alias names another one now, run this again, "
     "and open what was opened again."),
    ("unknown setting [index.knn]",
     "{url} has no k-NN plugin, or is no OpenSearch: 'slice-os doctor' says what it is."),
)  # fmt: skip
"""What stands in a refusal -> what it means."""
_PARSING = ("mapper_parsing_exception", "document_parsing_exception")
_BREAKERS = ("circuit_breaking_exception", "knn_circuit_breaker_exception")
_answered: set[str] = set()
"""The addresses that have answered this process."""


def as_error(url: str, exc: Exception) -> ClusterError:
    """Return what an error of opensearch-py means, in one sentence that names the fix."""
    from opensearchpy import ConnectionError as NoConnection
    from opensearchpy import ConnectionTimeout, SSLError, TransportError

    if isinstance(exc, ConnectionTimeout):
        return ClusterTimeoutError(
            f"{url} did not answer in time: look at its load, or set SLICE_OS_TIMEOUT to more "
            "seconds."
        )
    if isinstance(exc, NoConnection):
        if type(exc.info).__module__.startswith("botocore"):
            return UnauthorizedError(f"A request to {url} cannot be signed: {reason_of(exc.info)}.")
        text = str(exc.info)
        cut = url in _answered and _CUT in text  # it spoke TLS before
        meanings = _TLS if isinstance(exc, SSLError) and not cut else _AWAY
        meaning = next(say for marks, say in meanings if any(mark in text for mark in marks))
        return UnreachableError(meaning.format(url=url))
    if not isinstance(exc, TransportError):
        return foreign_error(url, type(exc).__name__)
    status, reason = int(exc.status_code), reason_of(exc.info)
    if status == 401:
        forget_secrets()
        return UnauthorizedError(
            f"{url} asks who you are: set SLICE_OS_USER and SLICE_OS_PASSWORD, or "
            "SLICE_OS_API_KEY, to credentials that it accepts.",
            status,
        )
    if blocked := blocked_error(url, reason):
        return blocked
    if status == 403:
        denied = f"{url} does not allow this to these credentials: {reason}."
        return UnauthorizedError(denied, status)
    if status in BUSY:
        return BusyError(f"{url} is too busy or not ready: {reason}. Try again.", status)
    if not isinstance(exc.info, Mapping) and status != TOO_LARGE:
        return foreign_error(url, f"status {status}", status)
    error = GoneError if status == 404 else RefusedError
    said = state_of(url, exc.info) or f"{url} refused a request ({status}): {reason}."
    return error(said, status, str(exc.error))


def state_of(url: str, info: object) -> str | None:
    """Return what to say of a refusal that an index's state explains."""
    for mark, meaning in _STATES:
        if mark in str(info):
            return meaning.format(url=url, reason=reason_of(info))
    return None


def foreign_error(url: str, what: str, status: int | None = None) -> ClusterError:
    """Return the error of an address where something else answers."""
    said = f"What answers at {url} is neither OpenSearch nor Elasticsearch ({what}): check it."
    return UnreachableError(said, status)


def blocked_error(url: str, reason: str) -> BlockedError | None:
    """Return what to raise if `reason` is that of a block on an index, which no waiting lifts."""
    if "read-only-allow-delete" in reason:
        return BlockedError(
            f"{url} takes no documents, as a disk is or was too full ({reason}): free disk; if the "
            "block stays, 'slice-os doctor' says how to lift it."
        )
    if "blocked by: [FORBIDDEN/" in reason:
        return BlockedError(f"{url}: {reason}: 'slice-os doctor' says how to lift it.")
    return None


def reason_of(info: object) -> str:
    """Return the innermost reason of an error that OpenSearch answered, in short."""
    error = info.get("error", info) if isinstance(info, Mapping) else info
    field = ""
    while isinstance(error, Mapping):
        if error.get("type") in _PARSING:  # which the inner ones do not name
            field = str(error.get("reason")).partition(" in document")[0] + ": "
        inner = (
            error.get("caused_by")
            or error.get("cause")
            or next(iter(_several(error, "root_cause") or _several(error, "failures")), None)
        )
        if inner is None or inner == error:
            names = ("reason", "type", "message", "Message")
            error = next(filter(None, map(error.get, names)), None)
        else:
            error = inner
    said = str(error or "no reason given")
    return " ".join((said if said in field else field + said).split()).rstrip(".;:")[:300]


def _several(error: Mapping[str, Any], name: str) -> list[Any]:
    causes = error.get(name)
    return causes if isinstance(causes, list) else []


def is_breaker(error: object) -> bool:
    """Tell whether an error is that of a circuit breaker, which closes again when memory is free.

    That of k-NN (``knn.circuit_breaker.triggered``) comes as an error of the document.
    """
    while isinstance(error, Mapping):
        if error.get("type") in _BREAKERS:
            return True
        error = error.get("caused_by")
    return False


def counting(effort: Effort) -> Callable[[RetryCallState], None]:
    """Return what tenacity is to call before it waits: it counts the retry and the wait."""

    def count(state: RetryCallState) -> None:
        seconds = state.next_action.sleep if state.next_action else 0.0
        effort.add(retries=1, waiting_seconds=seconds)

    return count


def with_retries(
    work: Callable[[], T],
    url: str,
    timeout: float = RETRY_TIMEOUT,
    given_up: Event | None = None,
    effort: Effort | None = None,
) -> T:
    """Run a request; retry it, with backoff and jitter, while the cluster is busy or away.

    Where nothing has answered yet, a cluster that is away is soon given up; any, once `given_up`
    is set. `effort` counts the retries.

    Raises:
        ClusterError: after `timeout` seconds it is still busy or away, or it refuses.
    """
    import orjson
    from opensearchpy import ConnectionError as NoConnection
    from opensearchpy import OpenSearchException, SSLError, TransportError
    from tenacity import (
        Retrying,
        retry_if_exception,
        sleep_using_event,
        wait_random_exponential,
    )
    from tenacity.nap import sleep

    def away(exc: BaseException | None) -> bool:
        if isinstance(exc, NoConnection):
            return True
        return isinstance(exc, TransportError) and exc.status_code in _GATEWAY

    def passes(exc: BaseException) -> bool:
        if isinstance(exc, NoConnection):
            return not isinstance(exc, SSLError) or (url in _answered and _CUT in str(exc.info))
        if not isinstance(exc, TransportError) or exc.status_code not in BUSY:
            return False
        return blocked_error(url, reason_of(exc.info)) is None

    backoff = wait_random_exponential(multiplier=0.2, max=15)

    def left(state: RetryCallState) -> float:
        exc = state.outcome.exception() if state.outcome else None
        soon = away(exc) and url not in _answered
        limit = min(timeout, FIRST_RETRY_TIMEOUT) if soon else timeout
        return limit - (state.seconds_since_start or 0)

    try:
        result = Retrying(
            retry=retry_if_exception(passes),
            wait=lambda state: min(backoff(state), left(state)),
            stop=lambda state: left(state) <= 0 or (given_up is not None and given_up.is_set()),
            sleep=sleep_using_event(given_up) if given_up else sleep,
            before_sleep=counting(effort) if effort else None,
            reraise=True,
        )(work)
    except OpenSearchException as exc:
        if not away(exc):
            _answered.add(url)
        raise as_error(url, exc) from exc
    except orjson.JSONDecodeError as exc:
        raise foreign_error(url, "no JSON") from exc
    _answered.add(url)
    return result

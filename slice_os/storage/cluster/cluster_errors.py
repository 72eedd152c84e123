"""What the errors of a cluster mean, each in one sentence that names the fix; and retrying."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Event
from typing import TYPE_CHECKING, TypeVar

import regex

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
from slice_os.storage.cluster.credentials import forget_secrets, without_secrets

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
AWAY = (502, 504)
"""From something in front of a cluster that does not find it."""
TOO_LARGE = 413
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
    ("search_context_missing_exception",
     "{url} has given up the state of the index that was being read: run this again."),
    ("unknown setting [index.knn]",
     "{url} has no k-NN plugin, or is no OpenSearch: 'slice-os doctor' says what it is."),
)  # fmt: skip
"""What stands in a refusal -> what it means."""
_PARSING = ("mapper_parsing_exception", "document_parsing_exception")
_BREAKERS = ("circuit_breaking_exception", "knn_circuit_breaker_exception")
_CONTROL = regex.compile(r"[\p{Cc}\p{Bidi_Control}]")
"""What a terminal obeys instead of showing it."""
_answered: set[str] = set()
"""The addresses that have answered this process."""


class AwayError(UnreachableError):
    """Nothing answers just now; later something may."""


class CutError(AwayError):
    """An answer was broken off on its way."""


class UnreadableError(UnreachableError):
    """An answer is not of the form that a cluster's has: a part is missing, or is another."""

    def __init__(self, url: str, what: str) -> None:
        super().__init__(
            f"{url} gave an answer that cannot be read ({what}): look at what stands between, a "
            "proxy say, and try again."
        )


class IncompleteError(BusyError):
    """Some shards are away, so that an answer is not the whole."""


class OversizedError(ClusterError):
    """An answer is larger than any that is asked for."""


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
        if isinstance(exc.info, OversizedError):
            return foreign_error(url, str(exc.info))
        if type(exc.info).__module__.startswith("botocore"):
            return UnauthorizedError(f"A request to {url} cannot be signed: {reason_of(exc.info)}.")
        text = str(exc.info)
        cut = url in _answered and _CUT in text  # it spoke TLS before
        is_tls = isinstance(exc, SSLError) and not cut
        meanings = _TLS if is_tls else _AWAY
        meaning = next(say for marks, say in meanings if any(mark in text for mark in marks))
        return (UnreachableError if is_tls else AwayError)(meaning.format(url=url))
    if not isinstance(exc, TransportError):
        text = exc.args[0] if exc.args else ""
        return cut_error(url) if _is_json(text) else foreign_error(url, type(exc).__name__)
    return status_error(url, int(exc.status_code), exc.info, str(exc.error))


def status_error(url: str, status: int, info: object, kind: str = "") -> ClusterError:
    """Return what an HTTP status and the body beside it mean."""
    reason = reason_of(info)
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
    if not isinstance(info, Mapping) and status != TOO_LARGE:
        return cut_error(url) if _is_json(kind) else foreign_error(url, f"status {status}", status)
    meaning = next((say for mark, say in _STATES if mark in str(info)), None)
    meaning = meaning or "{url} refused a request ({status}): {reason}."
    error = GoneError if status == 404 else RefusedError
    return error(meaning.format(url=url, status=status, reason=reason), status, kind)


def cut_error(url: str) -> ClusterError:
    """Return the error of an answer of which a part has come."""
    return CutError(
        f"{url} broke its answer off: look at what stands between, a proxy say, and try again."
    )


def _is_json(text: object) -> bool:
    """Tell whether a text that is no JSON begins as such."""
    return str(text).lstrip()[:1] in ("{", "[")


def foreign_error(url: str, what: str, status: int | None = None) -> ClusterError:
    """Return the error of an address where something else answers."""
    message = f"What answers at {url} is neither OpenSearch nor Elasticsearch ({what}): check it."
    return UnreachableError(message, status)


def blocked_error(url: str, reason: str) -> BlockedError | None:
    """Return what to raise if `reason` is that of a block on an index, which no waiting lifts."""
    if "read-only-allow-delete" in reason:
        return BlockedError(
            f"{url} takes no documents, as a disk is or was too full ({reason})",
            hint="free disk; if the block stays, 'slice-os doctor' says how to lift it.",
        )
    if "create-index blocked" in reason:
        return BlockedError(
            f"{url} lets nobody make an index ({reason})",
            hint="free disk, if it is nearly full; 'slice-os doctor' says how to lift the block.",
        )
    if "blocked by: [FORBIDDEN/" in reason:
        return BlockedError(
            f"{url}: {reason}",
            hint="'slice-os doctor' says how to lift it.",
        )
    return None


def reason_of(info: object) -> str:
    """Return the innermost reason of an error that a server answered: short, safe to show."""
    error = info.get("error", info) if isinstance(info, Mapping) else info
    field = ""
    while isinstance(error, Mapping):
        if error.get("type") in _PARSING:  # which the inner ones do not name
            field = str(error.get("reason")).partition(" in document")[0] + ": "
        causes = [error.get("caused_by"), error.get("cause")]
        for name in ("root_cause", "failures"):
            several = error.get(name)
            causes += several[:1] if isinstance(several, list) else []
        inner = next(filter(None, causes), None)
        if inner is None or inner == error:
            names = ("reason", "type", "message", "Message")
            inner = next(filter(None, map(error.get, names)), None)
        error = inner
    reason = str(error or "no reason given")
    reason = reason if reason in field else field + reason
    reason = without_secrets(" ".join(reason.split()))
    reason = _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), reason)
    return reason.rstrip(".;:")[:300]


def is_breaker(error: object) -> bool:
    """Tell whether an error is that of a circuit breaker, which closes again when memory is free.

    That of k-NN (``knn.circuit_breaker.triggered``) comes as an error of the document.
    """
    while isinstance(error, Mapping):
        if error.get("type") in _BREAKERS:
            return True
        error = error.get("caused_by")
    return False


def with_retries(
    work: Callable[[], T],
    url: str,
    timeout: float = RETRY_TIMEOUT,
    given_up: Event | None = None,
    effort: Effort | None = None,
) -> T:
    """Do some work on a cluster, again and again, with backoff, while that is busy or away.

    Where nothing has answered yet, a cluster that is away is soon given up; any, once `given_up`
    is set. `effort` counts the retries.

    Raises:
        ClusterError: after `timeout` seconds it is still busy or away, or it refuses.
    """
    from opensearchpy import OpenSearchException
    from tenacity import (
        Retrying,
        retry_if_exception_type,
        sleep_using_event,
        wait_random_exponential,
    )
    from tenacity.nap import sleep

    def attempt() -> T:
        try:
            result = work()
        except OpenSearchException as exc:
            error = as_error(url, exc)
            if error.status not in (None, *AWAY):
                _answered.add(url)
            # An exception that quotes a secret is not shown, not even in a traceback.
            raise error from (exc if without_secrets(str(exc)) == str(exc) else None)
        _answered.add(url)
        return result

    def left(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        is_new = isinstance(error, ClusterError) and url not in _answered
        is_away = is_new and error.status in (None, *AWAY)  # type: ignore[union-attr]
        limit = min(timeout, FIRST_RETRY_TIMEOUT) if is_away else timeout
        return limit - (state.seconds_since_start or 0)

    def count(state: RetryCallState) -> None:
        if effort is not None:
            seconds = state.next_action.sleep if state.next_action else 0.0
            effort.add(retries=1, waiting_seconds=seconds)

    backoff = wait_random_exponential(multiplier=0.2, max=15)
    return Retrying(
        retry=retry_if_exception_type((AwayError, BusyError, ClusterTimeoutError)),
        wait=lambda state: min(backoff(state), left(state)),
        stop=lambda state: left(state) <= 0 or (given_up is not None and given_up.is_set()),
        sleep=sleep_using_event(given_up) if given_up else sleep,
        before_sleep=count,
        reraise=True,
    )(attempt)

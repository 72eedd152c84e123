"""Errors as the server says them: a status, one sentence, and what to do about it."""

from __future__ import annotations

import logging
import os
from http import HTTPStatus

from slice_os.errors import (
    BusyError,
    ClusterError,
    ClusterTimeoutError,
    EncoderMismatchError,
    GoneError,
    IndexDamagedError,
    LocationError,
    MissingDocumentError,
    MissingExtraError,
    RefusedError,
    SliceOSError,
    TeachingError,
)

DEBUG = "SLICE_OS_DEBUG"
_log = logging.getLogger("slice_os.server")


class RequestError(SliceOSError):
    """A request cannot be answered; `status` is the HTTP status that says why."""

    status = HTTPStatus.BAD_REQUEST

    def __init__(self, message: str, status: int | None = None, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = HTTPStatus(status or self.status)


class OverloadedError(RequestError):
    """More is asked for at once than can be answered in time."""

    status = HTTPStatus.TOO_MANY_REQUESTS


STATUSES: dict[type[SliceOSError], int] = {
    MissingDocumentError: 404,
    GoneError: 404,
    IndexDamagedError: 503,
    LocationError: 404,
    EncoderMismatchError: 409,
    MissingExtraError: 501,
    TeachingError: 422,
    BusyError: 503,
    ClusterTimeoutError: 504,
    RefusedError: 400,
    ClusterError: 502,
}
"""Of an error and those of its kind, the first that fits; of all others 400."""


def status_of(error: Exception) -> int:
    """Return the HTTP status of an error; 500 of what is none of ours."""
    if isinstance(error, RequestError):
        return error.status
    if not isinstance(error, SliceOSError):
        return 500
    return next((status for kind, status in STATUSES.items() if isinstance(error, kind)), 400)


def failure(error: Exception) -> dict[str, str]:
    """Return an error as plain JSON; what is none of ours is logged, without its text.

    Its text may quote a document or a query; with SLICE_OS_DEBUG in the environment all is logged.
    """
    if isinstance(error, SliceOSError):
        return {"error": str(error.args[0] if error.args else error), "hint": error.hint}
    trace, where = error.__traceback__, ""
    while trace is not None:
        where = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    debug = error if os.environ.get(DEBUG) else None
    _log.error("Unexpected %s in %s.", type(error).__name__, where, exc_info=debug)
    return {
        "error": f"Unexpected {type(error).__name__}: this is a bug.",
        "hint": f"Start the server with {DEBUG}=1, ask again and report what it logs.",
    }

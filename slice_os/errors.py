"""The one exception tree of slice-os.

Every error a user can cause or meet is a `SliceOSError` whose message is one sentence that names
the fix. Errors of other libraries are mapped at the border with ``raise ... from exc``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager


class SliceOSError(Exception):
    """Base of every error that slice-os raises on purpose.

    Args:
        message: What is wrong.
        hint: What to do about it, where that is put in terms of the command line; ``str()`` gives
            both.
    """

    def __init__(self, message: str = "", *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.args[0]}: {self.hint}" if self.hint else str(self.args[0])


class CorpusError(SliceOSError):
    """A path, file or row of the corpus cannot be read."""


class EncoderError(SliceOSError):
    """An encoder folder is missing, incomplete or unusable here."""


class EncoderMismatchError(EncoderError):
    """The index was written by an encoder of other weights."""


class ExportError(SliceOSError):
    """A checkpoint cannot be exported, or its export differs from the original."""


class TrainingError(SliceOSError):
    """A recipe, its data or a training run is not usable."""


class EvaluationError(SliceOSError):
    """A set to evaluate on, or what is compared on it, is not usable."""


class TeachingError(SliceOSError):
    """The labels, or the file, of a taught phrase are not usable."""


class MissingExtraError(SliceOSError):
    """An optional package is needed; the message holds the pip line that brings it."""

    def __init__(self, what: str, extra: str, package: str = "") -> None:
        line = f"pip install 'slice-os[{extra}]' {package}".rstrip()
        super().__init__(f"{what} needs an optional package", hint=f"{line}.")
        self.extra = extra


class LocationError(SliceOSError):
    """There is no index at the location, or something else."""


class IndexLockedError(LocationError):
    """Another process is writing to the index."""


class MovedError(LocationError):
    """The location names a newer generation, or soon will; it holds all that was acknowledged."""


class WritesLostError(LocationError):
    """Going back would lose `documents`, ids of those that were written or deleted since."""

    def __init__(self, message: str, documents: Sequence[str], *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.documents = documents


class IndexDamagedError(LocationError):
    """The index misses files or holds files that are not what they should be."""


class QueryError(SliceOSError):
    """A query, phrase, filter or setting of a search is not usable."""


class MissingDocumentError(QueryError):
    """The index holds no document of this id."""


class ClusterError(SliceOSError):
    """A cluster cannot be reached, refuses, or answers with an error.

    `status` is the HTTP status of its answer, None if there was none; `kind` what it calls the
    error, such as ``resource_already_exists_exception``.
    """

    def __init__(
        self, message: str, status: int | None = None, kind: str = "", *, hint: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.status, self.kind = status, kind


class UnreachableError(ClusterError):
    """Nothing answers at the address, or not what should."""


class UnauthorizedError(ClusterError):
    """The cluster does not know these credentials, or does not allow them this."""


class ClusterTimeoutError(ClusterError):
    """The cluster did not answer in time."""


class BusyError(ClusterError):
    """The cluster cannot do this now: it is overloaded, or shards are away."""


class BlockedError(ClusterError):
    """An index takes no documents: a block is on it, or soon would be, as its disk is full."""


class GoneError(ClusterError):
    """The index, or what else was asked for, is not there."""


class RefusedError(ClusterError):
    """The cluster refuses the request, whoever makes it and whenever."""


@contextmanager
def needs(what: str, extra: str) -> Iterator[None]:
    """Raise MissingExtraError, "WHAT needs ... EXTRA", where an import in the block fails."""
    try:
        yield
    except ImportError as exc:
        raise MissingExtraError(what, extra) from exc

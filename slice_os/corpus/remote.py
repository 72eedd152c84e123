"""Files behind URLs (s3://, gs://, az://, https:// and others), by fsspec of the extra `remote`.

Credentials are those of the environment.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from pathlib import PurePosixPath
from typing import Any, BinaryIO, TypeVar, cast

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from slice_os.corpus.read_at import ReadAt
from slice_os.corpus.urls import public, scheme_of, without_secrets
from slice_os.errors import CorpusError, MissingExtraError

ATTEMPTS = 3
"""How often a request is made that may succeed when it is made again,"""
WAIT = 0.5
"""and seconds before the second time."""
_SMALL = 1 << 22
"""Bytes of a file that is read by one request, and of what is read at once of others."""
_PACKAGES = {
    **dict.fromkeys(["s3", "s3a"], "s3fs"),
    **dict.fromkeys(["gs", "gcs"], "gcsfs"),
    **dict.fromkeys(["az", "abfs", "abfss"], "adlfs"),
    **dict.fromkeys(["sftp", "ssh"], "paramiko"),
    "hf": "huggingface_hub",
}
_CREDENTIALS = {
    "s3fs": "give those of the environment that the AWS command line takes, such as AWS_PROFILE "
    "or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; for a public bucket set FSSPEC_S3_ANON=true, "
    "for another server AWS_ENDPOINT_URL.",
    "gcsfs": "set GOOGLE_APPLICATION_CREDENTIALS.",
    "adlfs": "set AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT_NAME and "
    "AZURE_STORAGE_ACCOUNT_KEY.",
}
_CHANGED = "has changed while it was read: run this again"
_FINAL = (FileNotFoundError, PermissionError, IsADirectoryError, ImportError, ValueError, TypeError)
_FINAL_NAMES = ("NoCredentialsError", "PartialCredentialsError", "ProfileNotFound", "FileExpired")
_TOLD = ("size", "ETag", "etag", "generation", "Last-Modified", "last_modified", "mtime")
_MODIFIED = ("LastModified", "last_modified", "Last-Modified", "mtime", "updated")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file by its public URL, or a folder; `path` is what its file system calls it."""

    url: str
    system: Any = field(compare=False, repr=False)
    path: str = field(compare=False, repr=False)
    size: int | None = field(default=None, compare=False)
    modified: float | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return self.url

    @property
    def name(self) -> str:
        """The last part of its URL."""
        return self.url.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """The ending of its name."""
        return PurePosixPath(self.name).suffix

    @contextmanager
    def open(self, _mode: str = "rb") -> Iterator[BinaryIO]:
        """Give a stream of its bytes, which may be read at any place.

        Raises:
            OSError: it cannot be read, or has changed since reading began.
        """
        about: Mapping[str, Any] = {}
        size = self.size
        if size is None or (size > _SMALL and "s3" not in self.system.protocol):  # see `_Ranges`
            about = _tried(self._ask)
            size = about.get("size")
        if size is not None and size <= _SMALL:
            data = _tried(lambda: cast(bytes, self.system.cat_file(self.path)))
            yield io.BytesIO(data)
            return
        with io.BufferedReader(_Ranges(self), _SMALL) as stream:
            yield stream
        if about and _version(about) != _version(_tried(self._ask)):
            raise OSError(_CHANGED)

    def _ask(self) -> Mapping[str, Any]:
        self.system.invalidate_cache(self.path)
        return cast(Mapping[str, Any], self.system.info(self.path))

    def is_folder(self) -> bool:
        """Tell whether it is a folder.

        Raises:
            CorpusError: it cannot be reached.
            FileNotFoundError: there is no such file or folder.
        """
        with _reaching(self.url):
            if "http" in scheme_of(self.url) and self.path.endswith("/"):
                return True
            return bool(self._ask()["type"] == "directory")

    def about(self) -> RemoteFile:
        """Return the file with what is known of it."""
        with _reaching(self.url):
            return self._with(self.url, self.path, self._ask())

    def files(self, depth: int | None = None) -> Iterator[RemoteFile]:
        """Yield the files of this folder, sorted, at most so many folders deep.

        Raises:
            CorpusError: it cannot be listed.
        """
        with _reaching(self.url):
            listed = self.system.find(self.path, maxdepth=depth, detail=True)
            self.system.invalidate_cache()  # which holds as much again
        start, is_web = f"{self.path.rstrip('/')}/", "http" in scheme_of(self.url)
        for path, about in sorted(listed.items()):
            # The pages that list a folder link to themselves, sorted otherwise.
            is_other = path.endswith("/") or (is_web and "?" in path)
            if about["type"] == "file" and path.startswith(start) and not is_other:
                yield self._with(f"{self.url}/{path.removeprefix(start)}", path, about)

    def _with(self, url: str, path: str, about: Mapping[str, Any]) -> RemoteFile:
        return RemoteFile(url, self.system, path, about.get("size"), _modified(about))


def at(url: str) -> RemoteFile:
    """Return what is, or may be, at a URL.

    Raises:
        MissingExtraError: the package for such URLs is not there.
        CorpusError: there are no such URLs.
    """
    package = _PACKAGES.get(scheme_of(url), "")
    try:
        from fsspec.core import url_to_fs

        system, path = url_to_fs(url)
    except ImportError as exc:
        raise MissingExtraError(
            f"Reading {scheme_of(url)}:// addresses", "remote", package
        ) from exc
    except Exception as exc:  # each file system has its own
        hint = _CREDENTIALS.get(package, "")
        raise CorpusError(f"{public(url)} cannot be read, {_reason(exc)}", hint=hint) from exc
    system.invalidate_cache()
    return RemoteFile(public(url), system, path)


@contextmanager
def _reaching(url: str) -> Iterator[None]:
    try:
        yield
    except Exception as exc:  # each file system has its own
        if isinstance(exc, FileNotFoundError):
            why = exc.__cause__ if "http" in scheme_of(url) else None
            if not isinstance(why, Exception) or getattr(why, "status", 0) in (404, 410):
                raise
            exc = why  # which need not be that there is no file
        hint = ""
        if _is_denied(exc) or "Credentials" in type(exc).__name__:
            hint = _CREDENTIALS.get(_PACKAGES.get(scheme_of(url), ""), "check the credentials.")
        raise CorpusError(f"{url} cannot be read, {_reason(exc)}", hint=hint) from exc


class _Ranges(ReadAt):
    """A file of which each read is a request, made again where it may succeed.

    That of S3 asks for the version of the first, others are compared when all is read. What a
    server gives from its beginning only is copied to a temporary file.
    """

    def __init__(self, file: RemoteFile) -> None:
        self._file = file
        self.name = file.url
        self._begun = False
        self._stream: Any = None
        self._open()

    def _open(self) -> None:
        opened = _tried(lambda: self._file.system.open(self._file.path, cache_type="none"))
        self._stream, self._size = (
            (opened, opened.size) if opened.size is not None else self._copy()
        )

    def _copy(self) -> tuple[Any, int]:
        stream = tempfile.TemporaryFile()  # noqa: SIM115

        def copy() -> None:
            stream.seek(0)
            self._file.system.get_file(self._file.path, stream)

        _tried(copy)
        return stream, stream.tell()

    def _read_at(self, at: int, size: int) -> bytes:
        def read() -> bytes:
            self._stream.seek(at)
            data = cast(bytes, self._stream.read(size))
            if len(data) < size:
                raise ConnectionError("the connection was cut")
            return data

        try:
            data = _tried(read)
        except OSError as exc:
            if isinstance(exc.__cause__, ValueError):  # the server does not give ranges
                self._stream, self._size = self._copy()
            elif _is_expired(exc.__cause__) and not self._begun:  # changed since it was listed
                self._file.system.invalidate_cache()
                self._open()
            else:
                raise
            data = _tried(read)
        self._begun = True
        return data

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


def _tried(request: Callable[[], T]) -> T:
    """Return what a request returns, made again where it may succeed; else raise an OSError."""
    waits = wait_exponential(WAIT)
    may_pass = retry_if_exception(_may_pass)
    try:
        for attempt in Retrying(
            stop=stop_after_attempt(ATTEMPTS), wait=waits, retry=may_pass, reraise=True
        ):
            with attempt:
                return request()
    except Exception as exc:  # each file system has its own
        raise OSError(_reason(exc)) from exc
    raise AssertionError


def _may_pass(exc: BaseException) -> bool:
    if status := _status(exc):
        return status in (408, 429) or status >= 500
    return (
        isinstance(exc, Exception)
        and not isinstance(exc, _FINAL)
        and type(exc).__name__ not in _FINAL_NAMES
    )


def _status(exc: BaseException) -> int | None:
    """Return the HTTP status that a file system's error names."""
    named = (getattr(exc, name, None) for name in ("status", "status_code", "code"))
    return next((status for status in named if isinstance(status, int)), None)


def _is_denied(exc: BaseException) -> bool:
    return isinstance(exc, PermissionError) or _status(exc) in (401, 403)


def _is_expired(exc: BaseException | None) -> bool:
    return type(exc).__name__ == "FileExpired"  # of whatever file system


def _reason(exc: Exception) -> str:
    if isinstance(exc, FileNotFoundError):
        return "there is no such file"
    if _is_expired(exc):
        return _CHANGED
    message = " ".join(without_secrets(str(exc)).split()).rstrip(".") or type(exc).__name__
    return f"access is denied ({message})" if _is_denied(exc) else message


def _version(about: Mapping[str, Any]) -> list[Any]:
    return [about.get(name) for name in _TOLD]


def _modified(about: Mapping[str, Any]) -> float | None:
    """Return when a file was modified, as its file system says it, in seconds; None if not."""
    modified = next((about[name] for name in _MODIFIED if about.get(name)), None)
    try:
        if isinstance(modified, str):
            modified = (
                parsedate_to_datetime(modified)
                if "," in modified
                else datetime.fromisoformat(modified.replace("Z", "+00:00"))
            )
    except ValueError:
        return None
    if isinstance(modified, datetime):
        return (modified if modified.tzinfo else modified.replace(tzinfo=timezone.utc)).timestamp()
    return float(modified) if isinstance(modified, int | float) else None

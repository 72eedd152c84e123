"""What files behind URLs are called: names that stay the same, and hold no credentials."""

from __future__ import annotations

import re
from itertools import takewhile

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_IN_CONTAINER = ("abfs", "abfss")
"""Schemes in which a container stands where others have a user."""
_SECRETS = re.compile(r"(://)(?:[^/\s@'\"]*@)?([^\s'\"?]*)(?:\?[^\s'\"]*)?")


def is_url(path: str) -> bool:
    """Tell whether a path is a URL."""
    return _URL.match(path) is not None


def scheme_of(url: str) -> str:
    """Return what a URL begins with, such as ``s3``."""
    return url.partition("://")[0].lower()


def public(url: str) -> str:
    """Return a URL without user, password and query, and without a slash at its end."""
    scheme, (host, slash, path) = scheme_of(url), url.partition("://")[2].partition("/")
    if scheme not in _IN_CONTAINER:
        host = host.rpartition("@")[2]
    if scheme in ("http", "https"):  # a key of an object may hold a question mark
        path = path.partition("?")[0].partition("#")[0]
    return f"{scheme}://{host}{slash}{path}".rstrip("/") if host else f"{scheme}://"


def without_secrets(text: str) -> str:
    """Return a message without the users, passwords and queries of the URLs in it."""
    return _SECRETS.sub(r"\1\2", text)


def parent(url: str) -> str:
    """Return the folder that a public URL lies in; of a bucket, its scheme."""
    scheme, rest = url.split("://", 1)
    return f"{scheme}://{rest.rpartition('/')[0]}"


def below(url: str, folder: str) -> str | None:
    """Return the path of a public URL below that of a folder, None if it does not lie there."""
    if url == folder:
        return ""
    start = folder if folder.endswith("://") else f"{folder}/"
    return url.removeprefix(start) if url.startswith(start) else None


def common(urls: list[str]) -> str:
    """Return the folder that public URLs have in common.

    Raises:
        ValueError: there is none.
    """
    schemes = {url.partition("://")[0] for url in urls}
    if len(schemes) > 1:
        raise ValueError("URLs of several schemes have no folder in common")
    paths = [url.partition("://")[2].split("/") for url in urls]
    shared = takewhile(lambda parts: len(set(parts)) == 1, zip(*paths, strict=False))
    return f"{schemes.pop()}://{'/'.join(parts[0] for parts in shared)}"

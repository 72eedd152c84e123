"""What a file's name and times say, as metadata of its document."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from slice_os.corpus.formats import is_compressed
from slice_os.corpus.remote import RemoteFile


def about_file(source: str, modified: float | None) -> dict[str, str]:
    """Return what a file's name and times say."""
    path = PurePosixPath(source)
    plain_name = path.name[:-3] if is_compressed(path.name) else path.name
    about = {
        "path": source,
        "folder": source[: -len(path.name)].rstrip("/"),
        "name": path.name,
        "extension": PurePosixPath(plain_name).suffix.lower().removeprefix("."),
    }
    if modified is not None:  # not every server says it
        when = datetime.fromtimestamp(int(modified), timezone.utc)
        about["modified"] = when.strftime("%Y-%m-%dT%H:%M:%SZ")
    return about


def modified_at(path: Path | RemoteFile, file: BinaryIO) -> float | None:
    """Return when an open file was modified, in seconds; None where its server does not say it."""
    return path.modified if isinstance(path, RemoteFile) else os.fstat(file.fileno()).st_mtime

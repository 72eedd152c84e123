"""Proof that an index holds what was written: everything against its hash; only read."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from slice_os.storage import connection, module_for
from slice_os.storage.findings import Diagnosis

SAMPLE = 100
"""Documents of an index in a cluster that are looked at."""


def check(
    location: str | Path,
    *,
    sample: int | None = SAMPLE,
    on_progress: Callable[[float], object] = lambda share: None,
    credentials: Mapping[str, str] | None = None,
    client: Any = None,
) -> Diagnosis:
    """Compare all that an index holds with its hashes, and name what is not what was written.

    Of a folder that is all that is read: segments, texts, offsets, metadata, postings. Of an index
    in a cluster it is a sample of documents: the words' vectors can be read and the spans are
    theirs, and texts, fields and counts fit their hashes.

    Args:
        location: A folder, or ``https://host:9200/name``.
        sample: So many documents of a cluster, drawn at random; None for all.
        on_progress: Is told now and then what share of the work is done.
        credentials: For a cluster, see `slice_os.Index`.
        client: Likewise.

    Raises:
        LocationError: there is no index at the location, or it cannot be used.
        ClusterError: the cluster cannot be reached, or does not let these credentials in.
    """
    location = os.fspath(location)
    diagnosis: Diagnosis = module_for(location, "doctor").check(
        location, sample=sample, on_progress=on_progress, **connection(credentials, client)
    )
    return diagnosis

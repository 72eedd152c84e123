"""The doctor, and proof that an index holds what was written."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from slice_os.storage import connection, module_for
from slice_os.storage.findings import Diagnosis
from slice_os.types import OnProgress

SAMPLE = 100
"""Documents of an index in a cluster that are checked."""


def doctor(
    location: str | Path,
    *,
    encoder: str | Path | None = None,
    deep: bool = False,
    repair: bool = False,
    credentials: Mapping[str, str] | None = None,
    client: Any = None,
) -> Diagnosis:
    """Examine an index; only `repair` changes anything.

    Args:
        location: A folder, ``https://host:9200/name``, or ``https://host:9200``: whether the
            cluster can hold an index.
        encoder: The folder of the encoder that the index is to fit; None: the one inside slice-os.
        deep: Compare all that is stored, a folder with its checksums, the spans of a cluster with
            its words; else what is free, and a sample.
        repair: Encode anew what damaged segments of a folder held; in a cluster, make spans anew
            from the stored words.
        credentials: For a cluster, see `slice_os.Index`.
        client: Likewise.

    Raises:
        LocationError: the location is no address, or a folder that holds something else.
        IndexLockedError: somebody is writing to the index that is to be repaired.
        ClusterError: the cluster cannot be reached, or does not let these credentials in.
        EncoderError: the encoder folder is not whole.
    """
    location = os.fspath(location)
    diagnosis: Diagnosis = module_for(location, "doctor").diagnose(
        location, encoder, deep=deep, repair=repair, **connection(credentials, client)
    )
    return diagnosis


def check(
    location: str | Path,
    *,
    sample: int | None = SAMPLE,
    on_progress: OnProgress = lambda share: None,
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

"""Proof that an index holds what was written: everything against its hash; only read."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from slice_os.errors import IndexDamagedError, LocationError
from slice_os.operate.findings import Diagnosis, Notes
from slice_os.storage import backend_for, connection
from slice_os.storage.local import check as integrity
from slice_os.storage.local.generations import live_folder

SAMPLE = 100
"""Documents of an index in a cluster that are looked at."""
ANEW = "restore a backup ('slice-os restore'), or index to a new location."


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
    location, notes = os.fspath(location), Notes(facts={"index": os.fspath(location)})
    if "://" in location:
        backend_for(location)  # or its error
        _verify_cluster(location, notes, sample, on_progress, connection(credentials, client))
        return notes.done()
    try:
        backend = backend_for(location).open(location, **connection(credentials, client))
        if backend is None:
            raise _nothing_at(location)
        with closing(backend):
            state = backend.status()
        notes.facts |= {"documents": state.documents, "passages": state.passages}
        folder = live_folder(Path(location).expanduser())
        condition = integrity.examine(folder, deep=True, on_progress=on_progress)
    except IndexDamagedError as exc:
        notes.find_error(exc)
    else:
        notes.facts["segments"] = condition.segments
        check_folder(notes, folder, condition, deep=True)
    return notes.done()


def _verify_cluster(
    location: str,
    notes: Notes,
    sample: int | None,
    on_progress: Callable[[float], object],
    options: Mapping[str, Any],
) -> None:
    from slice_os.operate.cluster_documents import inspect, report, report_spans
    from slice_os.operate.cluster_index import count_documents
    from slice_os.operate.findings import Asker
    from slice_os.storage.cluster.read import ClusterBackend
    from slice_os.storage.cluster.repair_spans import count_crowded
    from slice_os.storage.cluster.response_checks import reading

    opened = ClusterBackend.open(location, **options)
    if opened is None:
        raise _nothing_at(location)
    with closing(opened):
        cluster = opened.cluster
        cluster.refresh()
        notes.facts["generation"] = cluster.index
        with reading(cluster.url):
            count_documents(Asker(cluster.client, notes), notes, cluster)
        found = inspect(cluster, opened.layout, sample, on_progress)
        report(notes, found)
        report_spans(cluster, notes, count_crowded(cluster), found.complaints)


def _nothing_at(location: str) -> LocationError:
    return LocationError(
        f"There is no index at {location}: make one with 'slice-os index PATHS --index {location}'."
    )


def check_folder(notes: Notes, folder: Path, condition: integrity.Condition, deep: bool) -> None:
    """Say what of a folder's files is not what was written."""
    if condition.database:
        notes.find(
            "error",
            f"The database is damaged ({condition.database})",
            ANEW,
        )
    if condition.altered:
        some = ", ".join(map(str, condition.altered[:3]))
        notes.find(
            "error",
            "Texts, offsets or metadata are not what was indexed, of documents: "
            f"{len(condition.altered):,} ({some})",
            "delete these with 'slice-os delete' and index them again.",
        )
    if condition.damaged:
        number, why = next(iter(condition.damaged.items()))
        notes.find(
            "error",
            f"Damaged segments: {len(condition.damaged):,} of {condition.segments:,} "
            f"({number}: {why})",
            f"'slice-os doctor --repair --index {folder}' encodes what they held anew.",
        )
    if not condition.postings:
        notes.find(
            "error",
            "The postings of BM25 or of filters are not those of the documents",
            f"'slice-os doctor --repair --index {folder}' makes them anew.",
        )
    if condition.is_sound and condition.segments:
        read = "All files of the index are" if deep else "Sizes and identities of all files are"
        notes.find("ok", f"{read} what was written{'' if deep else ' (--deep reads the files)'}.")

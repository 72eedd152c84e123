"""The doctor: a folder or a cluster, looked at and left as it is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from slice_os.encoders import encoder_info, load_encoder
from slice_os.encoders.info import EncoderInfo
from slice_os.errors import IndexDamagedError
from slice_os.operate.check import check_folder
from slice_os.operate.findings import DELETED_SHARE, Diagnosis, Notes, complete, fit
from slice_os.storage import backend_for, connection
from slice_os.storage.local import check as integrity
from slice_os.storage.local.generations import live_folder
from slice_os.storage.local.repair import repair


def doctor(
    location: str | Path,
    *,
    encoder: str | Path | None = None,
    deep: bool = False,
    repair: bool = False,
    credentials: Mapping[str, str] | None = None,
    client: Any = None,
) -> Diagnosis:
    """Examine an index and, where it is in a cluster, the cluster; only `repair` changes anything.

    Args:
        location: A folder, ``https://host:9200/name``, or ``https://host:9200`` for
            the cluster alone.
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
    location, info = os.fspath(location), encoder_info(encoder)
    options = connection(credentials, client)
    if "://" in location:
        backend_for(location)
        from slice_os.operate.cluster_index import examine_cluster

        return examine_cluster(location, info, deep, repair, options)
    return _examine_folder(location, info, encoder, deep or repair, repair, options)


def _examine_folder(
    location: str,
    info: EncoderInfo,
    encoder: str | Path | None,
    deep: bool,
    mend: bool,
    options: Mapping[str, Any],
) -> Diagnosis:
    notes, folder = (
        Notes(facts={"index": location, "backend": "local"}),
        live_folder(Path(location).expanduser()),
    )
    try:
        backend = backend_for(location).open(location, **options)
        if backend is None:
            notes.find(
                "error",
                f"There is no index at {location}",
                f"make one with 'slice-os index PATHS --index {location}'.",
            )
            return notes.done()
        try:
            state = backend.status()
        finally:
            backend.close()
        condition = integrity.examine(folder, deep=deep)
    except IndexDamagedError as exc:
        notes.find_error(exc)
        return notes.done()
    incomplete, stored = state.details["incomplete_documents"], state.details["stored_words"]
    notes.facts |= {
        "documents": state.documents,
        "passages": state.passages,
        "words": state.words,
        "bytes": state.bytes,
        "segments": state.details["segments"],
    }
    fit(notes, state.meta, info)
    complete(notes, state.documents, incomplete)
    lost = condition.damaged if state.meta.weights_hash == info.weights_hash else {}
    postings = not condition.postings and not condition.database
    if mend and (lost or postings):
        with load_encoder(encoder) if lost else nullcontext() as loaded:
            encode = loaded.encode_words if loaded else lambda texts: iter(())
            head = loaded.head if loaded else None
            passages, words = repair(folder, lost, encode, head, postings=postings)
        if lost:
            said = f"Repaired: {passages:,} passages ({words:,} words) were encoded anew."
            notes.find("ok", said)
        if postings:
            notes.find("ok", "Repaired: the postings of BM25 and of filters were made anew.")
        condition = integrity.examine(folder, deep=True)
    check_folder(notes, folder, condition, deep)
    if stored and (stored - state.words) / stored > DELETED_SHARE:
        notes.find(
            "notice",
            f"{stored - state.words:,} of {stored:,} stored words are deleted",
            "the next 'slice-os index' merges them away when it ends.",
        )
    return notes.done()

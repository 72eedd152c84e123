"""A corpus -> packed passages in files -> any index, in steps that can each be done again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slice_os.corpus.addable import Addable, as_documents
from slice_os.encoders import EncoderInfo, EncoderLike, open_encoder
from slice_os.errors import EncoderMismatchError, LocationError
from slice_os.ingest import IndexReport, Partition, claim_roots, index_documents
from slice_os.operate.copying import Copier
from slice_os.operate.packed_files import PackedFolder
from slice_os.storage import Backend, backend_for, connection
from slice_os.storage.contract import IndexMeta
from slice_os.text.splitting import DEFAULT_MAX_WORDS
from slice_os.types import OnProgress, Plain, Reject


@dataclass(frozen=True, slots=True)
class LoadReport(Plain):
    """What a load did: of the `documents` of the files `loaded` were written, the rest was there.

    `rejected` were refused by the index.
    """

    location: str
    documents: int
    loaded: int
    rejected: int


def pack(
    corpus: Iterable[Addable],
    folder: str | os.PathLike[str],
    *,
    encoder: EncoderLike = None,
    device: str = "auto",
    threads: int | None = None,
    passage_words: int | None = None,
    partition: tuple[int, int] | str | None = None,
    max_rate: float | None = None,
    on_reject: Callable[[Reject], None] = lambda reject: None,
    on_progress: Callable[[IndexReport], object] = lambda report: None,
) -> IndexReport:
    """Encode a corpus to Parquet files in a folder, from which `load` takes it into an index.

    No index is needed, and any number of runs may write to one folder, each a `partition` (see
    `slice_os.Index.add`). Done again, it encodes what is not there or has changed.

    Raises:
        LocationError: the folder holds something else, or passages of other lengths.
        EncoderMismatchError: it was packed with another encoder.
    """
    documents = as_documents(corpus)
    part = None if partition is None else Partition.of(partition)
    with open_encoder(encoder, device, threads) as loaded:
        packed = folder_for(folder, loaded.info, passage_words)
        return index_documents(
            documents,
            packed,
            loaded,
            on_reject=on_reject,
            on_progress=on_progress,
            roots=claim_roots(documents, packed),
            max_rate=max_rate,
            partition=part,
        )


def load(
    folder: str | os.PathLike[str],
    location: str | os.PathLike[str],
    *,
    cluster: Mapping[str, Any] | None = None,
    max_rate: float | None = None,
    on_reject: Callable[[Reject], None] = lambda reject: None,
    on_progress: OnProgress = lambda share: None,
    credentials: Mapping[str, str] | None = None,
    client: Any = None,
) -> LoadReport:
    """Write what `pack` has made to an index; nothing is encoded, and what is there is left.

    The index is made if there is none; documents that the files do not have stay in it. Broken
    off, it is done again.

    Raises:
        LocationError: the folder holds no packed passages, or ids of other files.
        EncoderMismatchError: the index was made by another encoder.
    """
    packed, where = PackedFolder(Path(folder)), os.fspath(location)
    kind, options = backend_for(where), connection(credentials, client)
    settings: dict[str, Any] = {"settings": dict(cluster)} if cluster else {}
    target = kind.open(where, **options)
    if target is not None and cluster:
        target.check_settings(cluster)
    if target is None:
        target = kind.create(where, packed.meta, **options, **settings)
    with closing(target):
        _check(packed, target.meta, where)
        roots = _joined_roots(packed, target)
        documents = dict(packed.sources())
        rejected: set[str] = set()

        def reject(reject: Reject) -> None:
            rejected.add(reject.document)
            on_reject(reject)

        def tell(done: int) -> None:
            on_progress(min(done / max(len(documents), 1), 1.0))

        copier = Copier(packed, target, None, max_rate, tell, reject, roots=roots)
        loaded = copier.copy(documents)
        return LoadReport(where, len(documents), loaded, len(rejected))


def folder_for(
    folder: str | os.PathLike[str], info: EncoderInfo, passage_words: int | None
) -> PackedFolder:
    """Return a folder for what an encoder packs, made if there is none; see `pack`."""
    meta = IndexMeta(
        info.name,
        info.weights_hash,
        info.dimension,
        passage_words=passage_words or DEFAULT_MAX_WORDS,
        phrase_head=info.phrase_head,
    )
    packed = PackedFolder(Path(folder), meta)
    _check(packed, meta, str(folder))
    if passage_words not in (None, packed.meta.passage_words):
        raise LocationError(
            f"{folder} has passages of {packed.meta.passage_words} words: leave the option out, or "
            "pack to another folder."
        )
    return packed


def _check(packed: PackedFolder, meta: IndexMeta, where: str) -> None:
    """Raise unless an index, or an encoder, is of the encoder and its head that packed these."""
    ours = packed.meta
    if (ours.weights_hash, ours.max_words) != (meta.weights_hash, meta.max_words):
        raise EncoderMismatchError(
            f"{packed.location} was packed by the encoder {ours.encoder} (weights "
            f"{ours.weights_hash[:12]}), {where} has {meta.encoder} (weights "
            f"{meta.weights_hash[:12]})",
            hint="pack again with that encoder, or load to a new location.",
        )
    if ours.phrase_head != meta.phrase_head:
        raise EncoderMismatchError(
            f"{packed.location} was packed with another phrase head than {where} has",
            hint="load to a new location, then 'slice-os reindex' it.",
        )


def _joined_roots(packed: PackedFolder, target: Backend) -> dict[str, str]:
    """Return the roots of both; ids that begin alike have to be of the same folder."""
    ours, theirs = packed.roots(), target.roots()
    for prefix in ours.keys() & theirs.keys():
        if ours[prefix] != theirs[prefix]:
            raise LocationError(
                f"Ids that begin with {prefix!r} are of {theirs[prefix]} in {target.location}, of "
                f"{ours[prefix]} in {packed.location}",
                hint="pack with an --id-prefix of its own.",
            )
    return {**ours, **theirs}

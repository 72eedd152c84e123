"""Encoding on a Ray cluster, by the extra `ray`.

Reading, splitting and encoding are stages of Ray Data, with the encoder in actors; what they make
are packed passages in files, which `slice_os.load` writes to an index. A worker that is killed has
its batch done again, a run that is killed is run again: what is packed already is not encoded
twice, and what is in the index not written twice, by the hashes of documents.
"""

from __future__ import annotations

import json
import os
import pickle
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from slice_os.corpus import Corpus
from slice_os.corpus.rows import Fields, to_document
from slice_os.encoders import encoder_info, load_encoder
from slice_os.errors import CorpusError, needs
from slice_os.ingest import IndexReport, claim_roots, index_documents
from slice_os.operate.packed_files import PackedFolder
from slice_os.operate.packing import folder_for
from slice_os.types import Document, Reject, content_hash

if TYPE_CHECKING:
    from ray.data import Dataset

_COUNTS = ("documents", "replaced", "unchanged", "passages", "words", "encoded_words")
_NONE = {"place": "", "reason": "", "document": ""}
BATCH = 64
"""Documents that an actor is handed at once, and that are done again if it is killed."""
PARTS = 1000
"""Tasks that read, at most."""


def pack(
    corpus: Corpus | Dataset,
    folder: str | os.PathLike[str],
    *,
    address: str | None = None,
    workers: int = 2,
    cpus: int = 1,
    gpus: float = 0.0,
    encoder: str | os.PathLike[str] | None = None,
    passage_words: int | None = None,
    on_reject: Callable[[Reject], None] = lambda reject: None,
    on_progress: Callable[[IndexReport], object] = lambda report: None,
) -> IndexReport:
    """Encode a corpus as `slice_os.pack` does, on a Ray cluster.

    Of documents with the same id one is packed.

    Args:
        corpus: What `slice_os.read` returns, of paths or URLs that all machines reach; or a
            `ray.data.Dataset` whose rows have a ``text`` and perhaps ``id`` and ``title``.
        folder: Of the packed passages, which all machines reach.
        address: Of the Ray cluster; None: the one that this program is connected to, or is in, else
            one of this machine.
        workers: Actors that encode.
        cpus: Of each, which are its encoder's threads.
        gpus: Of each: 0.5 lets two share one.
        encoder: A folder that all machines reach; None for the encoder inside.
        passage_words: The most words of a passage.
        on_reject: Handed what cannot be packed.
        on_progress: Is told now and then what has been done.

    Raises:
        CorpusError: standard input, which other machines cannot read, is part of the corpus.
        LocationError: the folder holds something else, or passages of other lengths.
    """
    with needs("Encoding on Ray", "ray"):
        import ray
        import ray.data

    if not ray.is_initialized():
        ray.init(address=address, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    packed = folder_for(folder, encoder_info(encoder), passage_words)
    documents: Any = corpus
    if isinstance(corpus, Corpus):
        packed.remember(claim_roots(corpus, packed) or packed.roots())
        parts = [{"corpus": pickle.dumps(part)} for part in corpus.parts(PARTS)]
        # With the CPUs of a packer, Ray would make one stage of both, which is handed BATCH files.
        documents = ray.data.from_items(parts).map_batches(
            _read, batch_size=1, batch_format="pyarrow", num_cpus=0, concurrency=workers
        )
    encoded = documents.map_batches(
        _Packer,
        fn_constructor_args=(str(folder), None if encoder is None else str(encoder), cpus, gpus),
        batch_size=BATCH,
        batch_format="pyarrow",
        concurrency=workers,
        num_cpus=cpus,
        num_gpus=gpus,
    )
    report = IndexReport()
    began = time.monotonic()
    for row in encoded.iter_rows():
        if row["counts"]:
            for name, count in json.loads(row["counts"]).items():
                setattr(report, name, getattr(report, name) + count)
        else:
            on_reject(Reject(row["place"], row["reason"], row["document"]))
        report.seconds = time.monotonic() - began
        on_progress(report)
    return report


def _read(batch: Any) -> Iterator[Any]:
    """Yield the documents of some files, and what was rejected of them, as rows."""
    import pyarrow as pa

    for data in batch["corpus"].to_pylist():
        rejects: list[Reject] = []
        corpus: Corpus = pickle.loads(data)
        corpus.reject_to(rejects.append)
        documents = iter(corpus)
        while rows := [_row(document) for document in islice(documents, BATCH)]:
            yield pa.Table.from_pylist(rows)
        if rejects:
            yield pa.Table.from_pylist([_row(Document("", ""), reject) for reject in rejects])


def _row(document: Document, reject: Reject | None = None) -> dict[str, str]:
    return {
        "document": document.id,
        "text": document.text,
        "title": document.title,
        "metadata": json.dumps(dict(document.metadata), ensure_ascii=False, default=str),
        "source": document.source,
        "place": reject.place if reject else "",
        "reason": reject.reason if reject else "",
    }


class _Packer:
    """Encodes batches of documents to files of a folder; returns what was rejected."""

    def __init__(self, folder: str, encoder: str | None, cpus: int, gpus: float) -> None:
        self._encoder = load_encoder(encoder, "cuda" if gpus else "cpu", max(1, int(cpus)))
        self._folder = PackedFolder(Path(folder))
        self._folder.meta.check_encoder(folder, self._encoder.info)

    def __call__(self, batch: Any) -> Any:
        import pyarrow as pa

        rejects: list[Reject] = []
        report = index_documents(
            self._documents(batch.to_pylist(), rejects),
            self._folder,
            self._encoder,
            on_reject=rejects.append,
        )
        counts = {name: getattr(report, name) for name in _COUNTS} | {"rejected": len(rejects)}
        rows = [{**asdict(reject), "counts": ""} for reject in rejects]
        return pa.Table.from_pylist([*rows, {**_NONE, "counts": json.dumps(counts)}])

    def _documents(
        self, rows: Iterable[dict[str, Any]], rejects: list[Reject]
    ) -> Iterator[Document]:
        for row in rows:
            if row.keys() != _OURS:
                identity = f"text-{content_hash(row)}"
                try:
                    yield to_document(row, Fields(), identity)
                except CorpusError as exc:
                    rejects.append(Reject(str(row.get("id", identity)), str(exc)))
            elif row["reason"]:
                rejects.append(Reject(row["place"], row["reason"]))
            else:
                about = json.loads(row["metadata"])
                yield Document(row["document"], row["text"], row["title"], about, row["source"])


_OURS = _row(Document("", "")).keys()

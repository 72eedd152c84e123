"""Loading real nodes: the whole pipeline against encoding alone and the cluster's bulk alone.

Starts nodes of its own (tests/cluster: Maven and a JDK of 21 or newer). Node and client each have
half of the cores to themselves, as on two machines: on shared ones, "alone" would mean with twice
as many.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import slice_os
from benchmarks.text import documents
from benchmarks.timing import seconds
from slice_os.encoders import load_encoder
from slice_os.spans import PackedPassage
from slice_os.storage.cluster import passages as made
from slice_os.storage.cluster.backend import ClusterBackend
from slice_os.storage.cluster.bulk import BulkSender, Operation
from slice_os.storage.cluster.requests import WRITTEN
from slice_os.text import split
from tests.cluster.elasticsearch import ELASTICSEARCH
from tests.cluster.launcher import start_cluster
from tests.cluster.opensearch import OPENSEARCH
from tests.cluster.server import Server

TITLE = "OpenSearch: loading"
WORDS = 50_000
FEWER = (256, 192, 128)


def run(data: Path | None) -> list[str]:
    """Load real text into a node of each kind."""
    texts = list(documents(WORDS))
    with _apart(OPENSEARCH) as cluster, load_encoder() as encoder:
        location = f"{cluster.url}/bench"
        with slice_os.open(location, cluster=slice_os.ClusterSettings(replicas=0)) as index:
            index.add(texts[:5])
            backend = index._backend
            assert isinstance(backend, ClusterBackend)
            encoding = _encoding_alone(encoder, texts)
            _bulk_alone(cluster.url, backend, encoder, texts)  # its first minute is slower
            report = index.add(texts)
            bulk, _ = _bulk_alone(cluster.url, backend, encoder, texts)
            fewer = {
                kept: _bulk_alone(cluster.url, backend, encoder, texts, kept)[0] for kept in FEWER
            }
            status = index.status()
    with _apart(ELASTICSEARCH) as other, load_encoder() as encoder:
        _bulk_alone(other.url, backend, encoder, texts)
        arrays, array_bytes = _bulk_alone(other.url, backend, encoder, texts, packed=False)
        base64, base64_bytes = _bulk_alone(other.url, backend, encoder, texts)
    words, whole = report.words, report.seconds
    return [
        f"{words:,} words of examples/ in {status.passages:,} passages, "
        f"{status.details['spans'] / status.words:.2f} spans a word stored (tolerance "
        f"{backend.layout.tolerance}, {backend.layout.vector_type}s); client and node "
        "have half of the cores each.",
        "",
        "| what | words/s | |",
        "|---|---:|---|",
        f"| encoding alone | {words / encoding:,.0f} | |",
        f"| the cluster's bulk alone, vectors made beforehand | {words / bulk:,.0f} | |",
        f"| whole pipeline | {words / whole:,.0f} | {max(encoding, bulk) / whole:.2f} × "
        "the slower of the two |",
        *(
            f"| the cluster's bulk alone, {kept} dimensions | {words / taken:,.0f} | "
            f"{bulk / taken:.2f} × |"
            for kept, taken in fewer.items()
        ),
        f"| Elasticsearch's bulk alone, vectors as arrays | {words / arrays:,.0f} | |",
        f"| Elasticsearch's bulk alone, vectors as base64 | {words / base64:,.0f} | "
        f"{arrays / base64:.2f} ×, {base64_bytes / array_bytes:.0%} of the bytes |",
    ]


@contextmanager
def _apart(server: Server) -> Iterator[Any]:
    """Start a node on half of the cores and leave the other half to this process."""
    cores = sorted(os.sched_getaffinity(0))
    half = max(1, len(cores) // 2)
    try:
        os.sched_setaffinity(0, cores[:half])  # what is started inherits it
        with start_cluster(heap="1g", server=server, measured=True) as cluster:
            os.sched_setaffinity(0, cores[half:] or cores)
            yield cluster
    finally:
        os.sched_setaffinity(0, cores)


def _encoding_alone(encoder: Any, texts: list[slice_os.Document]) -> float:
    passages = [passage.text for document in texts for passage in split(document)]
    return seconds(lambda: list(encoder.encode_words(passages)))


def _bulk_alone(
    url: str,
    like: ClusterBackend,
    encoder: Any,
    texts: list[slice_os.Document],
    dimensions: int | None = None,
    *,
    packed: bool = True,
) -> tuple[float, int]:
    """Return the seconds in which a new index takes all passages, and how many bytes they are.

    Their vectors are made before. Unless `packed` they are sent as arrays.
    """
    layout = replace(like.layout, dimensions=dimensions, engine="")  # each server its usual one
    other = ClusterBackend.create(f"{url}/bulk", like.meta, settings=asdict(layout))
    passages = [passage for document in texts for passage in split(document)]
    dialect = other.cluster.dialect
    if not packed:
        dialect.float_order = ""
    operations = []
    encoded = encoder.encode_words(passage.text for passage in passages)
    for number, (passage, words) in enumerate(zip(passages, encoded, strict=True)):
        held = PackedPassage.pack(words, like.meta.max_words, passage)
        vectors = made.vector_fields(held, layout, dialect, passage)
        body = {**made.fields(passage, {}, "", {}), **vectors}
        operations.append(Operation("", "", made.index_operation(str(number), body)))
    ask = other.cluster
    ask.put_settings({"refresh_interval": "-1"})
    ask.change_alias("add", WRITTEN.format(ask.index))

    def send() -> None:
        sender = BulkSender(ask, lambda reject: None)
        for operation in operations:
            sender.send(operation)
        sender.close()
        ask.refresh()

    taken = seconds(send)
    ask.ask("DELETE")
    return taken, sum(len(operation.body) for operation in operations)

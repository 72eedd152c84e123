"""Loading a real node: the whole pipeline against encoding alone and the cluster's bulk alone.

Starts a node of its own (tests/cluster: Maven and a JDK of 21 or newer).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import slice_os
from benchmarks.text import documents
from benchmarks.timing import seconds
from slice_os.backends.opensearch import OpenSearchBackend
from slice_os.backends.opensearch import documents as made
from slice_os.backends.opensearch.bulk import BulkSender, Operation
from slice_os.corpus import split
from slice_os.encoder import load_encoder
from tests.cluster.launcher import start_cluster

TITLE = "OpenSearch: loading"
WORDS = 50_000


def run(data: Path | None) -> list[str]:
    """Load real text into a node."""
    texts = list(documents(WORDS))
    with start_cluster(heap="1g") as cluster, load_encoder() as encoder:
        place = f"{cluster.url}/bench"
        with slice_os.open(place, cluster=slice_os.ClusterSettings(replicas=0)) as index:
            index.add(texts[:5])
            encoding = _encoding_alone(encoder, texts)
            report = index.add(texts)
            backend = index._backend
            assert isinstance(backend, OpenSearchBackend)
            bulk = _bulk_alone(cluster.url, backend, encoder, texts)
            words = report.words
            whole = report.seconds
            status = index.status()
            return [
                f"{words:,} words of examples/ in {status.passages:,} passages, "
                f"{status.details['spans'] / status.words:.2f} spans a word stored (tolerance "
                f"{backend.settings.tolerance}, {backend.settings.vector_type}s); client and node "
                "share the same cores.",
                "",
                "| what | words/s | |",
                "|---|---:|---|",
                f"| encoding alone | {words / encoding:,.0f} | |",
                f"| the cluster's bulk alone, vectors made beforehand | {words / bulk:,.0f} | |",
                f"| whole pipeline | {words / whole:,.0f} | {max(encoding, bulk) / whole:.2f} × "
                "the slower of the two |",
            ]


def _encoding_alone(encoder: Any, texts: list[slice_os.Document]) -> float:
    passages = [passage.text for document in texts for passage in split(document)]
    return seconds(lambda: list(encoder.encode_words(passages)))


def _bulk_alone(
    url: str, like: OpenSearchBackend, encoder: Any, texts: list[slice_os.Document]
) -> float:
    """Return the seconds in which a new index takes all passages, their vectors made before."""
    other = OpenSearchBackend.create(f"{url}/bulk", like.meta, like.settings)
    passages = [passage for document in texts for passage in split(document)]
    operations = []
    encoded = encoder.encode_words(passage.text for passage in passages)
    for number, (passage, words) in enumerate(zip(passages, encoded, strict=True)):
        body = {
            **made.fields(passage, {}),
            **made.vector_fields(words, like.meta.max_words, like.settings),
        }
        operations.append(Operation("", made.index_operation(str(number), body)))
    ask = other._cluster
    ask.put_settings({"refresh_interval": "-1"})

    def send() -> None:
        sender = BulkSender(ask.client, ask.url, ask.index, lambda label, reason: None)
        for operation in operations:
            sender.send(operation)
        sender.close()
        ask.refresh()

    taken = seconds(send)
    ask.client.indices.delete(index=ask.index)
    return taken

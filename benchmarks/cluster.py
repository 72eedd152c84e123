"""A real node: hybrid search against plain BM25, recall, loading, bytes a word.

Starts a node of its own (tests/cluster: Maven and a JDK of 21 or newer).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import orjson

import slice_os
from benchmarks.scan import QUERIES
from benchmarks.text import documents
from benchmarks.timing import seconds
from slice_os.backends.base import Retrieval
from slice_os.backends.opensearch import OpenSearchBackend
from slice_os.backends.opensearch import documents as made
from slice_os.backends.opensearch.bulk import BulkSender, Operation
from slice_os.backends.opensearch.retrieve import STORED, exact_degree, stored_passage
from slice_os.corpus import split
from slice_os.encoder import load_encoder
from slice_os.fusion import get_fusion
from slice_os.query import lexical_query
from slice_os.retrieval import encode_queries, explain, query_lengths
from tests.cluster.launcher import start_cluster

TITLE = "OpenSearch: search and loading"
WORDS = 100_000
ROUNDS = 10
SIZE = 10


def run(data: Path | None) -> list[str]:
    """Load real text into a node, then search it."""
    texts = list(documents(WORDS))
    with start_cluster(heap="1g") as cluster, load_encoder() as encoder:
        encoding = _encoding_alone(encoder, texts)
        place = f"{cluster.url}/bench"
        with slice_os.open(place, cluster=slice_os.ClusterSettings(replicas=0)) as index:
            report = index.add(texts)
            backend = index._backend
            assert isinstance(backend, OpenSearchBackend)
            bulk = _bulk_alone(cluster.url, backend, encoder, texts)
            words = report.encoded_words
            whole = words / report.seconds
            ask = backend._cluster
            ask.client.indices.forcemerge(
                index=ask.index, params={"max_num_segments": 1, "request_timeout": 600}
            )
            status = index.status()
            rows = [
                f"{words:,} words of examples/ in {status.passages:,} passages, "
                f"{status.details['spans']:,} spans stored (tolerance "
                f"{backend.settings.tolerance}, {backend.settings.vector_type}s), one node, "
                "one segment, client and node on the same cores.",
                "",
                "| loading | words/s | ratio |",
                "|---|---:|---:|",
                f"| encoding alone | {words / encoding:,.0f} | |",
                f"| the cluster's bulk alone (vectors made beforehand) | {words / bulk:,.0f} | |",
                f"| whole pipeline | {whole:,.0f} | {whole * max(encoding, bulk) / words:.2f} × "
                "the slower of the two |",
                "",
                *_searches(backend, encoder),
            ]
            stored = status.bytes / status.words
            every = 20 * backend.meta.dimension * 4
            rows += [
                "",
                f"Stored: {stored:,.0f} bytes a word, text and words included: "
                f"1/{every / stored:.1f} of the {every:,} that 20 spans a word take as floats.",
            ]
    return rows


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


def _searches(backend: OpenSearchBackend, encoder: Any) -> list[str]:
    """Return the tables of latency and recall."""
    ask = backend._cluster
    plain, stages, sizes = [], _Stages(), []
    exact = _exact_rankings(backend, encoder)
    recall: dict[str, list[float]] = {"hybrid": [], "dense": []}
    took: dict[str, list[float]] = {"hybrid": [], "dense": []}
    for number in range(ROUNDS + 2):
        for query in QUERIES:
            body = lexical_query(query, size=SIZE, source=["text"])
            answer = ask.search(body)
            for mode in ("hybrid", "dense"):
                with _recorded(ask) as answers:
                    wanted, hits = _timed(backend, encoder, query, mode, stages, number > 1)
                if number > 1:
                    took[mode].append(sum(one["took"] for one in answers))
                    if mode == "hybrid":
                        plain.append(answer["took"])
                        sizes.append(sum(len(orjson.dumps(one)) for one in answers))
                        stages.add("scoring", _scoring(answers, wanted))
                if number == 2:
                    found = {(hit.document, hit.passage) for hit in hits}
                    recall[mode].append(len(found & exact[query][mode]) / len(exact[query][mode]))
    bm25 = statistics.median(plain)
    rows = [
        "| the cluster's own part (`took`) | p50 | of BM25's |",
        "|---|---:|---:|",
        f"| plain BM25, {SIZE} hits | {bm25:.0f} ms | |",
    ]
    rows += [
        f"| {mode}, candidates and their words | {statistics.median(times):.0f} ms | "
        f"{statistics.median(times) / max(bm25, 1):.1f} × |"
        for mode, times in took.items()
    ]
    rows += ["", "| the client's part, hybrid | p50 |", "|---|---:|"]
    rows += [f"| {name} | {1000 * value:.1f} ms |" for name, value in stages.medians()]
    rows += [f"| bytes that travel | {statistics.median(sizes):,.0f} |", ""]
    rows += [
        f"recall@{SIZE} against the exact ranking of all passages: "
        + ", ".join(f"{mode} {np.mean(values):.3f}" for mode, values in recall.items())
        + f" ({len(QUERIES)} queries)."
    ]
    return rows


class _Stages:
    def __init__(self) -> None:
        self._times: dict[str, list[float]] = {}

    def add(self, name: str, taken: float) -> None:
        self._times.setdefault(name, []).append(taken)

    def medians(self) -> Iterator[tuple[str, float]]:
        names = {
            "encode": "encoding the query",
            "retrieve": "request, answer, scoring over all spans",
            "scoring": "of that: reading the words and scoring over all spans",
            "verify": f"verifying 8 spans of each of {SIZE} hits, one encoder run",
        }
        for name, label in names.items():
            yield label, statistics.median(self._times[name])


def _timed(
    backend: OpenSearchBackend, encoder: Any, query: str, mode: str, stages: _Stages, keep: bool
) -> tuple[Retrieval, list[slice_os.Hit]]:
    times = [time.perf_counter()]
    vector = encode_queries(encoder, [query])[0]
    times.append(time.perf_counter())
    lengths = query_lengths(query, backend.meta.max_words, False)
    wanted = Retrieval(query, vector, lengths, mode, size=SIZE)  # type: ignore[arg-type]
    candidates = backend.retrieve(wanted)
    times.append(time.perf_counter())
    hits = explain(candidates, vector, lengths, encoder, 8)
    times.append(time.perf_counter())
    if keep and mode == "hybrid":
        for name, taken in zip(("encode", "retrieve", "verify"), np.diff(times), strict=True):
            stages.add(name, float(taken))
    return wanted, hits


def _scoring(answers: list[dict[str, Any]], wanted: Retrieval) -> float:
    hits = [hit for answer in answers for hit in answer["hits"]["hits"]]
    return seconds(lambda: [exact_degree(stored_passage(hit), wanted) for hit in hits])


@contextmanager
def _recorded(ask: Any) -> Iterator[list[dict[str, Any]]]:
    """Collect the answers of searches."""
    answers: list[dict[str, Any]] = []
    search: Callable[..., dict[str, Any]] = ask.search

    def recording(body: dict[str, Any], **params: Any) -> dict[str, Any]:
        answers.append(search(body, **params))
        return answers[-1]

    ask.search = recording
    try:
        yield answers
    finally:
        del ask.search


def _exact_rankings(
    backend: OpenSearchBackend, encoder: Any
) -> dict[str, dict[str, set[tuple[str, int]]]]:
    """Return the best passages of every query by the degrees of all passages."""
    vectors = encode_queries(encoder, QUERIES)
    wanted = [
        Retrieval(query, vector, query_lengths(query, backend.meta.max_words, False))
        for query, vector in zip(QUERIES, vectors, strict=True)
    ]
    degrees: list[dict[tuple[str, int], float]] = [{} for _ in QUERIES]
    for page in backend._cluster.pages({"query": {"match_all": {}}, "_source": STORED}, 100):
        for hit in page:
            stored = stored_passage(hit)
            key = stored.passage.document, stored.passage.number
            for one, found in zip(wanted, degrees, strict=True):
                found[key] = exact_degree(stored, one)
    rankings = {}
    for query, found in zip(QUERIES, degrees, strict=True):
        body = lexical_query(query, size=10_000, source=["document", "passage"])
        lexical = {
            (hit["_source"]["document"], hit["_source"]["passage"]): hit["_score"]
            for hit in backend._cluster.search(body)["hits"]["hits"]
        }
        fusion, weight = get_fusion("saturation", None)
        fused = fusion.fuse(found, lexical, weight)
        rankings[query] = {
            mode: set(sorted(scores, key=lambda key: -scores[key])[:SIZE])
            for mode, scores in (("hybrid", fused), ("dense", found))
        }
    return rankings

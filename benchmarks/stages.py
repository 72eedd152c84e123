"""What a search of a node costs, in the cluster and here, stage by stage."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import orjson

from benchmarks.timing import seconds
from slice_os.encoders import StandaloneVectors
from slice_os.engine import (
    encode_queries,
    encode_with_words,
    query_lengths,
    search_passages,
)
from slice_os.engine.rerank import RANKS, Ranked, dense_scores, ranked_passages
from slice_os.options import SearchOptions
from slice_os.query import hybrid_query, lexical_query, span_query
from slice_os.storage.cluster.backend import ClusterBackend
from slice_os.storage.cluster.candidates import NEAREST, STORED, stored_passage
from slice_os.storage.cluster.responses import decoded
from slice_os.storage.contract import SearchQuery
from slice_os.storage.fusion import LATE

SIZE = 10
WARM_UP = 60
CANDIDATES = RANKS["hybrid"]
"""That a hybrid search of a cluster reranks."""


def stages(backend: ClusterBackend, encoder: Any, texts: list[str]) -> list[str]:
    """Return what a search costs, in the cluster and here."""
    ask = backend.cluster
    took: dict[str, list[float]] = {}
    parts: dict[str, list[float]] = {}
    sizes = []
    for turn, query in enumerate([*texts[:WARM_UP], *texts]):
        alone = {
            name: ask.search(body, int, "took")
            for name, body in _parts(backend, encoder, query).items()
        }
        for mode in ("hybrid", "dense"):
            with _recorded(ask) as answers:
                wanted, times = _timed(backend, encoder, query, mode)
            if turn < WARM_UP:  # warms both sides
                continue
            alone[mode] = sum(answer["took"] for answer in answers)
            if mode == "hybrid":
                times["scoring"] = _scoring(answers, wanted)
                ranked = replace(wanted, fusion="rrf")
                times["rrf"] = seconds(lambda: ranked_passages(backend, [ranked], range(SIZE)))
                for name, taken in times.items():
                    parts.setdefault(name, []).append(taken)
                sizes.append(sum(len(orjson.dumps(answer)) for answer in answers))
        if turn >= WARM_UP:
            for name, value in alone.items():
                took.setdefault(name, []).append(value)
    # The cluster counts whole milliseconds: a mean says more than a median of them.
    means = {name: statistics.fmean(values) for name, values in took.items()}
    p50 = {name: statistics.median(values) for name, values in took.items()}
    labels = {
        "bm25": f"plain BM25, {SIZE} texts",
        "texts": f"hybrid, {SIZE} texts",
        "one": f"`hybrid_query` as it is by default: {SIZE} texts, the best span of each",
        "three": "that, with three spans of each",
        "hybrid": f"hybrid, with the words of {CANDIDATES} candidates",
        "ids": "that, without fetching anything of them",
        "dense": f"dense, with the words of {RANKS['dense']} candidates",
        "graph": f"the graph alone, {NEAREST} passages",
        "fetch": f"BM25, with the words of {CANDIDATES} passages",
    }
    names = {
        "encode": "encoding the query",
        "retrieve": "request, answer and scoring over all spans, the cluster's part included",
        "scoring": "of that, reading the words and scoring here",
        "rrf": "the same with the fusion rrf, of 1,000 ranks of each list",
        "rescore": f"rescoring a span of each of {SIZE} hits, one encoder run",
    }
    return [
        f"| the cluster's own part (`took`), {len(texts)} queries | p50 | mean | of BM25's |",
        "|---|---:|---:|---:|",
        *(
            f"| {label} | {p50[name]:.1f} ms | {means[name]:.1f} ms | "
            f"{means[name] / means['bm25']:.1f} × |"
            for name, label in labels.items()
        ),
        "",
        "| the client's part of a hybrid search | p50 |",
        "|---|---:|",
        *(
            f"| {label} | {1000 * statistics.median(parts[n]):.1f} ms |"
            for n, label in names.items()
        ),
        f"| bytes that travel | {statistics.median(sizes):,.0f} |",
    ]


def _parts(backend: ClusterBackend, encoder: Any, query: str) -> dict[str, dict[str, Any]]:
    """Return bodies that ask for a part of what a search asks for."""
    vector = encode_queries(encoder, [query])[0]
    kind: dict[str, Any] = {"vector_type": backend.layout.vector_type, "spans": 0, "source": ()}
    return {
        "bm25": lexical_query(query, size=SIZE, source=["text"]),
        "texts": hybrid_query(query, vector, size=SIZE, k=NEAREST, **{**kind, "source": ["text"]}),
        "one": hybrid_query(query, vector, size=SIZE),
        "three": hybrid_query(query, vector, size=SIZE, spans=3),
        "ids": hybrid_query(query, vector, size=CANDIDATES, k=NEAREST, **kind),
        "graph": span_query(vector, size=1, k=NEAREST, **kind),
        "fetch": lexical_query(query, size=CANDIDATES, source=STORED),
    }


def _timed(
    backend: ClusterBackend, encoder: Any, query: str, mode: Any
) -> tuple[SearchQuery, dict[str, float]]:
    times = [time.perf_counter()]
    ((vector, words),) = encode_with_words(encoder, [query])
    times.append(time.perf_counter())
    lengths = query_lengths(query, backend.meta.max_words, False)
    wanted = SearchQuery(query, vector, lengths, mode, words=words, late=LATE)
    ranked_passages(backend, [wanted], range(SIZE))
    times.append(time.perf_counter())
    taken = np.diff(times).tolist()
    plain, rescored = (_search(backend, encoder, query, mode, spans) for spans in (0, 1))
    named = dict(zip(("encode", "retrieve"), taken, strict=True))
    return wanted, {**named, "rescore": rescored - plain}


def _search(backend: ClusterBackend, encoder: Any, query: str, mode: Any, spans: int) -> float:
    """Return the seconds of a search that rescores so many spans a hit."""
    options = SearchOptions.of(mode=mode, rescore=spans)
    standalone = StandaloneVectors(encoder)
    return seconds(lambda: search_passages(backend, lambda: standalone, [query], options))


def _scoring(answers: list[dict[str, Any]], wanted: SearchQuery) -> float:
    hits = [hit for answer in answers for hit in answer["hits"]["hits"]]

    def score() -> None:
        found = [
            Ranked(0.0, stored_passage(hit), None, wanted.vector, wanted.lengths) for hit in hits
        ]
        dense_scores(wanted, found)

    return seconds(score)


@contextmanager
def _recorded(ask: Any) -> Iterator[list[dict[str, Any]]]:
    """Collect the answers of searches."""
    answers: list[dict[str, Any]] = []
    search: Callable[..., dict[str, Any]] = ask.search

    def recording(body: dict[str, Any], kind: Any, at: str = "hits/hits", **options: Any) -> Any:
        answers.append(search(body, dict[str, Any], "", **options))
        return decoded(answers[-1], kind, ask.url, at)

    ask.search = recording
    try:
        yield answers
    finally:
        del ask.search

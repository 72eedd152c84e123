"""Searching and mining a million words in a real node.

Needs `--data FOLDER` with retrieval/scifact. Loads it into a node of its own and merges its
segments (some twenty minutes), or uses the index that SLICE_OS_BENCH_INDEX names, which holds it
already.
"""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import orjson

import slice_os
from benchmarks.exact import best_cosines, said
from benchmarks.retrieval import ndcg
from benchmarks.timing import seconds
from slice_os.backends.base import Retrieval
from slice_os.backends.opensearch import OpenSearchBackend, scan
from slice_os.backends.opensearch.retrieve import NEAREST, STORED, stored_passage
from slice_os.backends.relevance import RANKS, relevance
from slice_os.encoder import load_encoder
from slice_os.evaluation.collections import read_collection
from slice_os.fusion import LATE, get_fusion
from slice_os.query import hybrid_query, lexical_query, span_query
from slice_os.retrieval import encode_queries, encode_query, explain, query_lengths
from slice_os.spans import degree
from tests.cluster.launcher import start_cluster

TITLE = "OpenSearch: searching and mining"
SIZE = 10
TIMED = 60
WARM_UP = 60
PHRASES = 200
DEGREES = (0.85, 0.9, 0.95)
CUT = (1, 2, 3, 5)
EACH = 100
LEAST_LETTERS = 4
Ranking = dict[tuple[str, int], float]


def run(data: Path | None) -> list[str]:
    """Measure searches stage by stage, what they find, and mining."""
    if data is None:
        return []
    collection = read_collection(data / "retrieval" / "scifact")
    queries = collection.queries
    with _index(collection.documents()) as index, load_encoder() as encoder:
        backend = index._backend
        assert isinstance(backend, OpenSearchBackend)
        status = index.status()
        texts = list(queries.values())
        stored = status.bytes / status.words
        every = 20 * backend.meta.dimension * 4
        return [
            f"SciFact: {status.words:,} words in {status.passages:,} passages, "
            f"{status.details['spans']:,} spans stored (tolerance {backend.settings.tolerance}, "
            f"{status.details['vectors']}), one node, one segment. {stored:,.0f} bytes a word "
            f"with text and words: 1/{every / stored:.1f} of the {every:,} that 20 spans a word "
            "take as floats.",
            "",
            *_latency(backend, encoder, texts[:TIMED]),
            "",
            *_found(index, backend, encoder, queries, collection.qrels.relevance),
            "",
            *_mining(index, texts[:PHRASES]),
        ]


@contextmanager
def _index(documents: Any) -> Iterator[slice_os.Index]:
    if place := os.environ.get("SLICE_OS_BENCH_INDEX"):
        with slice_os.open(place) as index:
            yield index
        return
    with start_cluster(heap="2g") as cluster:
        place = f"{cluster.url}/scifact"
        with slice_os.open(place, cluster=slice_os.ClusterSettings(replicas=0)) as index:
            index.add(documents)
            merge(index)
            yield index


def merge(index: slice_os.Index) -> None:
    """Make one segment of an index, as one that is mostly read should have few."""
    backend = index._backend
    assert isinstance(backend, OpenSearchBackend)
    ask = backend._cluster
    params = {"max_num_segments": 1, "request_timeout": 3600}
    ask.client.indices.forcemerge(index=ask.index, params=params)


def _latency(backend: OpenSearchBackend, encoder: Any, texts: list[str]) -> list[str]:
    """Return what a search costs, in the cluster and here."""
    ask = backend._cluster
    took: dict[str, list[float]] = {}
    stages: dict[str, list[float]] = {}
    sizes = []
    for turn, query in enumerate([*texts[:WARM_UP], *texts]):
        alone = {
            name: ask.search(body)["took"] for name, body in _parts(backend, encoder, query).items()
        }
        for mode in ("hybrid", "dense"):
            with _recorded(ask) as answers:
                wanted, times = _timed(backend, encoder, query, mode)
            if turn < WARM_UP:  # warms both sides
                continue
            alone[mode] = sum(answer["took"] for answer in answers)
            if mode == "hybrid":
                times["scoring"] = _scoring(answers, wanted)
                for name, taken in times.items():
                    stages.setdefault(name, []).append(taken)
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
        "hybrid": f"hybrid, with the words of {RANKS['hybrid']} candidates",
        "ids": "that, without fetching anything of them",
        "dense": f"dense, with the words of {RANKS['dense']} candidates",
        "graph": f"the graph alone, {NEAREST} passages",
        "fetch": f"BM25, with the words of {RANKS['hybrid']} passages",
    }
    names = {
        "encode": "encoding the query",
        "retrieve": "request, answer and scoring over all spans, the cluster's part included",
        "scoring": "of that, reading the words and scoring here",
        "verify": f"verifying 8 spans of each of {SIZE} hits, one encoder run",
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
            f"| {label} | {1000 * statistics.median(stages[n]):.1f} ms |"
            for n, label in names.items()
        ),
        f"| bytes that travel | {statistics.median(sizes):,.0f} |",
    ]


def _parts(backend: OpenSearchBackend, encoder: Any, query: str) -> dict[str, dict[str, Any]]:
    """Return bodies that ask for a part of what a search asks for."""
    vector = encode_queries(encoder, [query])[0]
    kind: dict[str, Any] = {"vector_type": backend.settings.vector_type, "spans": 0, "source": ()}
    return {
        "bm25": lexical_query(query, size=SIZE, source=["text"]),
        "texts": hybrid_query(query, vector, size=SIZE, k=NEAREST, **{**kind, "source": ["text"]}),
        "one": hybrid_query(query, vector, size=SIZE),
        "three": hybrid_query(query, vector, size=SIZE, spans=3),
        "ids": hybrid_query(query, vector, size=RANKS["hybrid"], k=NEAREST, **kind),
        "graph": span_query(vector, size=1, k=NEAREST, **kind),
        "fetch": lexical_query(query, size=RANKS["hybrid"], source=STORED),
    }


def _timed(
    backend: OpenSearchBackend, encoder: Any, query: str, mode: Any
) -> tuple[Retrieval, dict[str, float]]:
    times = [time.perf_counter()]
    vector, words = encode_query(encoder, query)
    times.append(time.perf_counter())
    lengths = query_lengths(query, backend.meta.max_words, False)
    wanted = Retrieval(query, vector, lengths, mode, size=SIZE, words=words, late=LATE)
    candidates = backend.retrieve(wanted)
    times.append(time.perf_counter())
    explain(candidates, vector, lengths, encoder, 8)
    times.append(time.perf_counter())
    taken = np.diff(times).tolist()
    return wanted, dict(zip(("encode", "retrieve", "verify"), taken, strict=True))


def _scoring(answers: list[dict[str, Any]], wanted: Retrieval) -> float:
    hits = [hit for answer in answers for hit in answer["hits"]["hits"]]
    return seconds(lambda: relevance(wanted, [stored_passage(hit) for hit in hits]))


@contextmanager
def _recorded(ask: Any) -> Iterator[list[dict[str, Any]]]:
    """Collect the answers of searches."""
    answers: list[dict[str, Any]] = []
    search: Callable[..., dict[str, Any]] = ask.search

    def recording(body: dict[str, Any], *rest: Any, **params: Any) -> dict[str, Any]:
        answers.append(search(body, *rest, **params))
        return answers[-1]

    ask.search = recording
    try:
        yield answers
    finally:
        del ask.search


def _found(
    index: slice_os.Index,
    backend: OpenSearchBackend,
    encoder: Any,
    queries: dict[str, str],
    judged: dict[str, dict[str, int]],
) -> list[str]:
    """Return recall@10 and nDCG@10 against the exact ranking of all passages."""
    cut = {count: _cut(list(queries.values()), count) for count in CUT}
    texts = [*queries.values(), *(text for some in cut.values() for text in some)]
    exact = _exact_rankings(backend, encoder, texts)
    rows = [
        "| all queries | recall@10 | nDCG@10 | exact ranking | of it |",
        "|---|---:|---:|---:|---:|",
    ]
    short: dict[str, list[float]] = {}
    lost: dict[str, list[float]] = {}
    for mode in ("dense", "hybrid"):
        recall, less, found, best = [], [], {}, {}
        for number, (text, ranking) in enumerate(zip(texts, exact[mode], strict=True)):
            size = 100 if number < len(queries) else SIZE
            hits = index.search(text, mode=mode, size=size, verify=0)  # type: ignore[arg-type]
            keys = [(hit.document, hit.passage) for hit in hits]
            top = sorted(ranking, key=lambda key: -ranking[key])
            recall.append(len({*keys[:SIZE]} & {*top[:SIZE]}) / SIZE)
            less.append(_mean(ranking, top[:SIZE]) - _mean(ranking, keys[:SIZE]))
            if number < len(queries):
                query = list(queries)[number]
                found[query] = _by_document({k: h.score for k, h in zip(keys, hits, strict=True)})
                best[query] = _by_document({key: ranking[key] for key in top[:100]})
        ours, theirs = ndcg(found, judged), ndcg(best, judged)
        rows.append(
            f"| {mode} | {np.mean(recall[: len(queries)]):.3f} | {ours:.4f} | {theirs:.4f} | "
            f"{100 * ours / theirs:.1f} % |"
        )
        short[mode], lost[mode] = (
            [float(part.mean()) for part in np.split(np.array(one[len(queries) :]), len(CUT))]
            for one in (recall, less)
        )
    return [
        *rows,
        "",
        f"| recall@10 of words cut out of {EACH} queries | "
        + " | ".join(f"{count} word{'s' * (count > 1)}" for count in CUT)
        + " |",
        "|---|" + "---:|" * len(CUT),
        *(f"| {m} | {' | '.join(f'{value:.3f}' for value in v)} |" for m, v in short.items()),
        *(
            f"| {m}: by how much less the ten score | {' | '.join(f'{v:.4f}' for v in values)} |"
            for m, values in lost.items()
        ),
    ]


def _mean(ranking: Ranking, keys: list[tuple[str, int]]) -> float:
    return float(np.mean([ranking[key] for key in keys]))


def _cut(queries: list[str], count: int) -> list[str]:
    """Return so many words of each of the first queries, from anywhere in them."""
    rng = random.Random(count)
    found = []
    for query in queries:
        words = query.rstrip(".").split()
        start = rng.randrange(max(1, len(words) - count + 1))
        text = " ".join(words[start : start + count])
        if len(text) > LEAST_LETTERS:  # "the" is no phrase
            found.append(text)
    return found[:EACH]


def _by_document(scores: Ranking) -> dict[str, float]:
    best: dict[str, float] = {}
    for (document, _), score in scores.items():
        best[document] = max(best.get(document, -1.0), score)
    return best


def _exact_rankings(
    backend: OpenSearchBackend, encoder: Any, texts: list[str]
) -> dict[str, list[Ranking]]:
    """Return every passage's score for every query, from all its words and Lucene's BM25."""
    encoded = [encode_query(encoder, text) for text in texts]
    vectors, words = np.stack([vector for vector, _ in encoded]), [words for _, words in encoded]
    lengths = [query_lengths(text, backend.meta.max_words, False) for text in texts]
    keys, scores = [], []
    for page in backend._cluster.pages({"query": {"match_all": {}}, "_source": STORED}, 100):
        passages = [stored_passage(hit) for hit in page]
        keys += [(stored.passage.document, stored.passage.number) for stored in passages]
        inside = [stored.words.vectors for stored in passages]
        spans = np.stack(
            [best_cosines(s.words.vectors, s.norms, vectors, lengths) for s in passages]
        )
        scores.append((1 - LATE) * degree(spans) + LATE * degree(said(inside, words)))
    table = np.concatenate(scores)
    dense = [dict(zip(keys, table[:, k].tolist(), strict=True)) for k in range(len(texts))]
    fusion, weight = get_fusion("saturation", None)
    hybrid = []
    for text, ranking in zip(texts, dense, strict=True):
        body = lexical_query(text, size=10_000, source=["document", "passage"])
        hits = backend._cluster.search(body)["hits"]["hits"]
        lexical = {
            (hit["_source"]["document"], hit["_source"]["passage"]): hit["_score"] for hit in hits
        }
        hybrid.append(fusion.fuse(ranking, lexical, weight))
    return {"dense": dense, "hybrid": hybrid}


def _mining(index: slice_os.Index, phrases: list[str]) -> list[str]:
    """Return what mining finds and costs: as it is by default, by the graph, by every word."""
    rows = [
        f"| mining {len(phrases)} phrases at degree | matches, every word read "
        "| found by the graph | recall | by default | the graph | every word |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for threshold in DEGREES:
        found: dict[str, set[tuple[Any, ...]]] = {}
        taken = {}
        for way in ("default", "graph", "words"):
            with _always_the_graph() if way == "graph" else nullcontext():
                start = time.perf_counter()
                found[way] = {
                    (m.phrase, m.document, m.passage, m.start, m.end)
                    for m in index.mine(phrases, degree=threshold, exact=way == "words")
                }
                taken[way] = time.perf_counter() - start
        common = len(found["words"] & found["graph"])
        times = " | ".join(f"{taken[way]:.1f} s" for way in ("default", "graph", "words"))
        rows.append(
            f"| {threshold} | {len(found['words']):,} | {common:,} | "
            f"{common / max(len(found['words']), 1):.4f} | {times} |"
        )
        assert found["default"] >= found["words"] & found["graph"]
    return rows


@contextmanager
def _always_the_graph() -> Iterator[None]:
    """Have mining ask the graph, whatever a sample says."""
    chosen = scan.Scan.graph_pays
    scan.Scan.graph_pays = lambda self: True  # type: ignore[method-assign]
    try:
        yield
    finally:
        scan.Scan.graph_pays = chosen  # type: ignore[method-assign]

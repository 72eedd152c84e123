"""What to store of the spans: tolerance x dimensions, in bytes, in recall and in nDCG@10.

Candidates are ranked by the stored spans and BM25 as a cluster ranks them, but by all stored spans
instead of its graph; the best of them are scored again over all spans, as slice-os does. Bytes and
BM25 are those of a real node. Needs `--data FOLDER` with retrieval/scifact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

import slice_os
from benchmarks.exact import Floats, best_cosines, said
from benchmarks.hybrid import merge
from benchmarks.retrieval import ndcg
from slice_os.encoders import load_encoder
from slice_os.engine import encode_with_words, query_lengths
from slice_os.engine.rerank import RANKS
from slice_os.lab.evaluate.collections import read_collection
from slice_os.query import field_vectors, lexical_query
from slice_os.spans import bounded_cover, degree, dequantize, quantize, span_norms
from slice_os.storage.cluster.backend import ClusterBackend
from slice_os.storage.cluster.bulk import BulkSender, Operation
from slice_os.storage.cluster.candidates import KEYS, NEAREST, WINDOW
from slice_os.storage.cluster.passages import MOST_SPANS, fields, index_operation
from slice_os.storage.cluster.requests import WRITTEN
from slice_os.storage.cluster.responses import KeyHit
from slice_os.storage.cluster.settings import Layout
from slice_os.storage.contract import IndexMeta
from slice_os.storage.fusion import LATE, get_fusion
from slice_os.text import split
from slice_os.types import Document
from tests.cluster.launcher import start_cluster

TITLE = "OpenSearch: what to store"
ALL = 384
SETTINGS = (
    *((0.9, ALL), (0.8, ALL), (0.7, ALL), (0.6, ALL)),
    *((0.9, 256), (0.8, 256), (0.7, 256), (0.6, 256)),
    *((0.9, 192), (0.8, 192), (0.6, 192), (0.8, 128)),
)
"""Tolerances and dimensions of the stored spans."""
FILES = {"vec": "span vectors", "vex": "their graph", "fdt": "`_source`: words, text, offsets"}
"""What lies in Lucene's files, by their endings."""
CODECS = ("default", "best_compression")
SAMPLE = 100
"""Documents that are put into a node for their size."""
EVERY = 3
"""Of the queries one in so many is asked."""
PER_SPAN = "a stored span"
Relevance = Mapping[str, Mapping[str, int]]


class Scores(NamedTuple):
    """What was found of every passage for every query, float32 ``[passages, queries]``."""

    dense: Floats
    bm25: Floats
    stored: dict[tuple[float, int], Floats]
    spans: Counter[float]
    words: int


def run(data: Path | None) -> list[str]:
    """Return the bytes by what they hold, and the curve."""
    if data is None:
        return []
    collection = read_collection(data / "retrieval" / "scifact")
    corpus = list(collection.documents())
    queries = dict(list(collection.queries.items())[::EVERY])
    with start_cluster(heap="1g", measured=True) as cluster:
        sizes = {codec: _bytes(cluster.url, corpus[:SAMPLE], codec) for codec in CODECS}
        passages = [passage for document in corpus for passage in split(document)]
        names = [passage.document for passage in passages]
        scores = _scores(cluster.url, passages, list(queries.values()))
    usual = sizes["default"]
    held = [*FILES.values(), "BM25 and the other fields", "all"]
    judged = collection.qrels.relevance
    relevance = {query: judged[query] for query in queries if query in judged}
    return [
        f"SciFact: {len(corpus):,} documents, {scores.words:,} words, {len(queries)} queries, the "
        f"encoder inside, byte vectors, at most {MOST_SPANS} spans a passage. Bytes are those of "
        f"{SAMPLE} documents in one segment, tolerance {Layout().tolerance}.",
        "",
        f"| bytes a word, by what they hold | {' | '.join(CODECS)} |",
        "|---|" + "---:|" * len(CODECS),
        *(f"| {what} | {' | '.join(f'{sizes[c][what]:,.0f}' for c in sizes)} |" for what in held),
        "",
        f"The best {RANKS['hybrid']} by the stored spans of the nearest and by BM25 (hybrid), and "
        f"the best {RANKS['dense']} by the stored spans (dense; of fewer dimensions as many more), "
        "are scored again over all spans.",
        "",
        "| tolerance | dimensions | spans a word | bytes a word | best_compression | nearest "
        "| dense: recall@10 | nDCG@10 | hybrid: recall@10 | nDCG@10 |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
        *(
            _row(tolerance, kept, scores, sizes, relevance, names, queries)
            for tolerance, kept in SETTINGS
        ),
        _exactly(scores, relevance, names, queries),
        "",
        f"{usual[PER_SPAN]:,.0f} bytes {PER_SPAN} of {ALL} dimensions. The last row is of all "
        "spans of all passages.",
    ]


def _row(
    tolerance: float,
    kept: int,
    scores: Scores,
    sizes: dict[str, dict[str, float]],
    relevance: Relevance,
    names: Sequence[str],
    queries: dict[str, str],
) -> str:
    spans = scores.spans[tolerance] / scores.words
    each = sizes["default"][PER_SPAN] - (ALL - kept)
    stored = [f"{size['without spans'] + each * spans:,.0f}" for size in sizes.values()]
    degrees = degree(scores.stored[tolerance, kept])
    nearest = ceil(NEAREST * ALL / kept)
    known = np.where(_are_best(degrees, nearest), degrees, np.where(scores.bm25 > 0, 0.5, 0))
    figures = []
    for first, exact, block in (
        (degrees, scores.dense, ceil(RANKS["dense"] * ALL / kept)),
        (
            _fused(known, scores.bm25),
            _fused(scores.dense, scores.bm25),
            RANKS["hybrid"],
        ),
    ):
        ranked = np.where(_are_best(first, block), exact, first - 4)
        best = _are_best(ranked, 10) & _are_best(exact, 10)
        figures += [f"{best.sum(axis=0).mean() / 10:.3f}"]
        figures += [f"{ndcg(_rankings(ranked, names, queries), relevance):.4f}"]
    figures = [*stored, str(nearest), *figures]
    return f"| {tolerance} | {kept} | {spans:.2f} | {' | '.join(figures)} |"


def _exactly(
    scores: Scores, relevance: Relevance, names: Sequence[str], queries: dict[str, str]
) -> str:
    both = (scores.dense, _fused(scores.dense, scores.bm25))
    dense, hybrid = (ndcg(_rankings(exact, names, queries), relevance) for exact in both)
    return f"| | | | | | | 1 | {dense:.4f} | 1 | {hybrid:.4f} |"


def _fused(degrees: npt.NDArray[Any], bm25: Floats) -> npt.NDArray[Any]:
    """Return the scores of a hybrid search."""
    fusion, weight = get_fusion("saturation", None)
    assert fusion.of_one is not None
    scores: npt.NDArray[Any] = fusion.of_one(degrees, bm25, weight)
    return scores


def _are_best(scores: npt.NDArray[Any], count: int) -> npt.NDArray[np.bool_]:
    """Tell of each passage whether it is among the `count` best for a query."""
    best = np.argsort(-scores, axis=0, kind="stable")[:count]
    are = np.zeros(scores.shape, bool)
    np.put_along_axis(are, best, values=True, axis=0)
    return are


def _rankings(
    scores: npt.NDArray[Any], names: Sequence[str], queries: dict[str, str]
) -> dict[str, dict[str, float]]:
    rankings: dict[str, dict[str, float]] = {}
    for column, query in enumerate(queries):
        ranking = rankings.setdefault(query, {})
        for row in np.argsort(-scores[:, column], kind="stable")[:200]:
            ranking.setdefault(names[row], float(scores[row, column]))
    return rankings


def _scores(url: str, passages: list[slice_os.Passage], queries: list[str]) -> Scores:
    stored: dict[tuple[float, int], list[Floats]] = {setting: [] for setting in SETTINGS}
    spans: Counter[float] = Counter()
    bm25 = _bm25(url, passages, queries)
    dense, words = [], 0
    with load_encoder() as encoder, threadpool_limits(1, "blas"):
        encoded = list(encode_with_words(encoder, queries))
        lengths = [query_lengths(query, 20, False) for query in queries]
        vectors, inside = np.stack([v for v, _ in encoded]), [of for _, of in encoded]
        sides = {kept: _unit(field_vectors(vectors, "byte", kept)) for _, kept in SETTINGS}
        for held in encoder.encode_words(passage.text for passage in passages):
            words += len(held)
            exact = dequantize(*quantize(held.vectors))
            best = best_cosines(exact, span_norms(exact, 20), vectors, lengths)
            dense.append((1 - LATE) * degree(best) + LATE * degree(said([exact], inside)[0]))
            for tolerance in dict.fromkeys(tolerance for tolerance, _ in SETTINGS):
                cover = _cover_vectors(exact, tolerance)
                spans[tolerance] += len(cover)
                for setting in SETTINGS:
                    if setting[0] == tolerance:
                        near = _unit(field_vectors(cover, "byte", setting[1]))
                        stored[setting].append((near @ sides[setting[1]].T).max(axis=0))
    cosines = {setting: np.stack(part) for setting, part in stored.items()}
    return Scores(np.stack(dense), bm25, cosines, spans, words)


def _cover_vectors(words: Floats, tolerance: float) -> Floats:
    spans, _ = bounded_cover(words, tolerance, MOST_SPANS)
    sums = np.zeros((len(words) + 1, words.shape[1]))
    np.cumsum(words, axis=0, out=sums[1:])
    return (sums[spans[:, 1]] - sums[spans[:, 0]]).astype(np.float32)


def _unit(vectors: npt.NDArray[Any]) -> Floats:
    floats = vectors.astype(np.float32)
    floats /= np.maximum(np.linalg.norm(floats, axis=1, keepdims=True), 1e-9)
    return floats


def _bm25(url: str, passages: list[slice_os.Passage], queries: list[str]) -> Floats:
    """Return the BM25 scores of a node that holds the texts alone; 0 where no word is in both."""
    with load_encoder() as encoder:
        info = encoder.info
    meta = IndexMeta(info.name, info.weights_hash, info.dimension)
    backend = ClusterBackend.create(f"{url}/texts", meta, settings={"replicas": 0})
    backend.cluster.change_alias("add", WRITTEN.format(backend.cluster.index))
    sender = BulkSender(backend.cluster, lambda reject: None)
    for row, passage in enumerate(passages):
        body = {**fields(passage, {}, "", {}), "stamp": "texts"}
        sender.send(Operation("", "", index_operation(str(row), body)))
    sender.close()
    backend.cluster.refresh()
    rows = {(passage.document, passage.number): row for row, passage in enumerate(passages)}
    scores = np.zeros((len(passages), len(queries)), np.float32)
    for column, query in enumerate(queries):
        body = {**lexical_query(query, size=WINDOW), **KEYS}
        for hit in backend.cluster.search(body, list[KeyHit]):
            (document,), (number,) = hit["fields"]["document"], hit["fields"]["passage"]
            scores[rows[document, number], column] = hit["_score"]
    return scores


def _bytes(url: str, documents: list[Document], codec: str) -> dict[str, float]:
    """Return the bytes a word of an index on a node, by what they hold.

    Those of a stored span follow from a second index, which differs in its tolerance.
    """
    found, spans = [], []
    for tolerance in (Layout().tolerance, 0.6):
        settings: Any = {"tolerance": tolerance, "codec": codec, "replicas": 0}
        location = f"{url}/size-{codec}-{round(100 * tolerance)}"
        with slice_os.open(location, cluster=settings) as index:
            index.add(documents)
            merge(index)
            status = index.status()
            backend = index._backend
            assert isinstance(backend, ClusterBackend)
            stats: Any = backend.cluster.ask(
                "GET", "_stats/segments", include_segment_file_sizes="true"
            )
            backend.cluster.ask("DELETE")
        files = stats["_all"]["primaries"]["segments"]["file_sizes"]
        held = {
            what: files[ending]["size_in_bytes"] / status.words for ending, what in FILES.items()
        }
        held["all"] = status.bytes / status.words
        held["BM25 and the other fields"] = 2 * held["all"] - sum(held.values())
        found.append(held)
        spans.append(status.details["spans"] / status.words)
    each = (found[0]["all"] - found[1]["all"]) / (spans[0] - spans[1])
    return {**found[0], PER_SPAN: each, "without spans": found[0]["all"] - each * spans[0]}

"""What to store of the spans: tolerance x ceiling x vectors x passages, in bytes and in nDCG@10.

Candidates are ranked by the stored spans as a cluster ranks them (without its graph), the best of
them are scored again over all spans, as slice-os does. Bytes are those of a real node.
Needs `--data FOLDER` with retrieval/scifact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

import slice_os
from benchmarks.exact import Floats, best_cosines
from benchmarks.hybrid import merge
from benchmarks.retrieval import ndcg
from slice_os.encoders import load_encoder
from slice_os.engine.rerank import RANKS
from slice_os.lab.evaluate.collections import read_collection
from slice_os.query import VectorType, field_vectors
from slice_os.spans import bounded_cover, dequantize, length_window, quantize, span_norms
from slice_os.storage.cluster.backend import ClusterBackend
from slice_os.storage.cluster.candidates import COVERED
from slice_os.storage.cluster.passages import MOST_SPANS
from slice_os.text import count_words, split
from slice_os.types import Document
from tests.cluster.launcher import start_cluster

TITLE = "OpenSearch: what to store"
TYPES: tuple[VectorType, ...] = ("byte", "float")
DIMENSIONS = (384, 192)
EVERY = 10_000
"""A ceiling that no passage reaches."""
COVERS = ((0.95, EVERY), (0.9, EVERY), (0.85, EVERY), (0.95, MOST_SPANS), (0.9, MOST_SPANS))
"""Tolerances, and how many spans of a passage are stored at most."""
SHORTER = 65
"""Words of a passage so short that its spans stay below the ceiling by themselves."""
SAMPLE = 100
"""Documents that are put into a node for their size."""
BLOCKS = {kept: ceil(RANKS["hybrid"] / COVERED * DIMENSIONS[0] / kept) for kept in DIMENSIONS}
"""How many candidates are scored again."""
PART = 200
"""Passages that are scored at once."""
Relevance = dict[str, dict[str, int]]


def run(data: Path | None) -> list[str]:
    """Return the curve."""
    if data is None:
        return []
    collection = read_collection(data / "retrieval" / "scifact")
    corpus = list(collection.documents())
    sizes = _sizes(corpus[:SAMPLE])
    rows = [
        f"SciFact: {len(corpus):,} documents, {len(collection.queries)} queries, the encoder "
        "inside. The best passages by the stored spans are scored again over all spans, as a "
        f"hybrid search does: {_candidates()}. *Exactly* is nDCG@10 by all spans.",
        "",
        "| passages | tolerance | spans at most | spans a word | vectors | bytes a word "
        "| of 20 float vectors | nDCG@10 | exactly | exact top 10 found |",
        "|---:|---:|---:|---:|---|---:|---:|---:|---:|---:|",
    ]
    for words, covers in ((110, COVERS), (SHORTER, ((0.9, MOST_SPANS),))):
        rows += _measured(
            corpus, collection.queries, collection.qrels.relevance, words, covers, sizes
        )
    return rows


def _measured(
    corpus: list[Document],
    queries: dict[str, str],
    relevance: Relevance,
    passage_words: int,
    covers: Sequence[tuple[float, int]],
    sizes: dict[tuple[VectorType, int], tuple[float, float]],
) -> Iterator[str]:
    """Yield a row a cover and kind of vector, for passages of so many words."""
    passages = [passage for document in corpus for passage in split(document, passage_words)]
    names = [passage.document for passage in passages]
    with load_encoder() as encoder:
        stored = [
            quantize(words.vectors) for words in encoder.encode_words(p.text for p in passages)
        ]
        vectors = encoder.encode(list(queries.values()))
        lengths = [length_window(count_words(query)) for query in queries.values()]
    exact = np.concatenate([_exact(dequantize(*one), vectors, lengths)[None] for one in stored])
    best = _ndcg(exact, names, list(queries), relevance)
    words = sum(len(scales) for _, scales in stored)
    top = np.argsort(-exact, axis=0, kind="stable")[:10]
    for tolerance, most in covers:
        kept, approximate = _stored_degrees(stored, vectors, tolerance, most)
        for kind, dimensions in product(TYPES, DIMENSIONS):
            scores = _rescored(approximate[kind, dimensions], exact, BLOCKS[dimensions])
            found = np.argsort(-scores, axis=0, kind="stable")[:10]
            recall = np.mean([len({*a} & {*b}) / 10 for a, b in zip(found.T, top.T, strict=True)])
            value = _ndcg(scores, names, list(queries), relevance)
            fixed, each = sizes[kind, dimensions]
            size = fixed + each * kept / words
            yield (
                f"| {passage_words} | {tolerance} | {'all' if most == EVERY else most} | "
                f"{kept / words:.2f} | {kind}, {dimensions} | {size:,.0f} | "
                f"1/{20 * 384 * 4 / size:.1f} | {value:.4f} | {best:.4f} | {recall:.3f} |"
            )


def _candidates() -> str:
    return ", ".join(f"{block} with {kept} dimensions" for kept, block in BLOCKS.items())


def _exact(words: Floats, queries: Floats, lengths: list[range]) -> Floats:
    with threadpool_limits(1, "blas"):
        norms = span_norms(words, 20)
    return best_cosines(words, norms, queries, lengths)


def _stored_degrees(
    stored: list[tuple[Any, Any]], queries: Floats, tolerance: float, most: int
) -> tuple[int, dict[tuple[VectorType, int], Floats]]:
    """Return how many spans are stored, and each passage's best stored cosine, by setting."""
    found: dict[tuple[VectorType, int], list[Floats]] = {}
    sides = {
        setting: _unit(field_vectors(queries, *setting)) for setting in product(TYPES, DIMENSIONS)
    }
    kept = 0
    for first in range(0, len(stored), PART):
        spans: list[Floats] = []
        starts = []
        for one in stored[first : first + PART]:
            starts.append(sum(map(len, spans)))
            spans.append(_cover_vectors(dequantize(*one), tolerance, most))
        whole = np.concatenate(spans)
        kept += len(whole)
        for setting, side in sides.items():
            cosines = _unit(field_vectors(whole, *setting)) @ side.T
            found.setdefault(setting, []).append(np.maximum.reduceat(cosines, starts, axis=0))
    return kept, {setting: np.concatenate(parts) for setting, parts in found.items()}


def _cover_vectors(words: Floats, tolerance: float, most: int) -> Floats:
    with threadpool_limits(1, "blas"):
        spans, _ = bounded_cover(words, tolerance, most)
    sums = np.zeros((len(words) + 1, words.shape[1]))
    np.cumsum(words, axis=0, out=sums[1:])
    return (sums[spans[:, 1]] - sums[spans[:, 0]]).astype(np.float32)


def _unit(vectors: npt.NDArray[Any]) -> Floats:
    floats = vectors.astype(np.float32)
    floats /= np.maximum(np.linalg.norm(floats, axis=1, keepdims=True), 1e-9)
    return floats


def _rescored(approximate: Floats, exact: Floats, block: int) -> Floats:
    """Return the exact scores of each query's `block` best, the others below them."""
    scores = approximate - 4
    best = np.argpartition(-approximate, block, axis=0)[:block]
    np.put_along_axis(scores, best, np.take_along_axis(exact, best, axis=0), axis=0)
    return scores


def _ndcg(scores: Floats, names: list[str], queries: list[str], relevance: Relevance) -> float:
    rankings = {}
    for column, query in enumerate(queries):
        ranking: dict[str, float] = {}
        for row in np.argsort(-scores[:, column], kind="stable")[:200]:
            ranking.setdefault(names[row], float(scores[row, column]))
        rankings[query] = ranking
    return ndcg(rankings, relevance)


def _sizes(documents: list[Document]) -> dict[tuple[VectorType, int], tuple[float, float]]:
    """Return the bytes a word that do not depend on the spans, and those of a stored span.

    From two indexes of each setting, which differ in their tolerance.
    """
    with start_cluster(measured=True) as cluster:
        measured = {}
        for kind, dimensions in product(TYPES, DIMENSIONS):
            (few, small), (many, large) = (
                _size(cluster.url, documents, kind, dimensions, tolerance)
                for tolerance in (0.6, 0.8)
            )
            each = (large - small) / (many - few)
            measured[kind, dimensions] = small - few * each, each
    return measured


def _size(
    url: str, documents: list[Document], kind: VectorType, dimensions: int, tolerance: float
) -> tuple[float, float]:
    """Return the stored spans and bytes a word of an index on the node."""
    settings = slice_os.ClusterSettings(
        tolerance=tolerance,
        vector_type=kind,
        dimensions=None if dimensions == DIMENSIONS[0] else dimensions,
        replicas=0,
    )
    location = f"{url}/size-{kind}-{dimensions}-{round(100 * tolerance)}"
    with slice_os.open(location, cluster=settings) as index:
        index.add(documents)
        backend = index._backend
        assert isinstance(backend, ClusterBackend)
        merge(index)
        status = index.status()
        backend.cluster.ask("DELETE")
    return status.details["spans"] / status.words, status.bytes / status.words

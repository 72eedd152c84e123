"""Mining in a cluster: which passages may hold a match, by the graph or by reading every word."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from slice_os.backends.base import ClusterSettings, StoredPassage
from slice_os.backends.opensearch.cluster import WORDS_PAGE, Cluster
from slice_os.backends.opensearch.retrieve import STORED, stored_passage
from slice_os.filters import Filter
from slice_os.query import filter_clauses, mining_query
from slice_os.records import Float32
from slice_os.spans import degree, fit_window

PHRASES = 16
"""Radial searches in one request."""
WINDOW = 10_000
ROUNDING = 1e-4
"""By how much a cosine may be below the threshold here: scores are summed in float32."""


def search_radially(
    cluster: Cluster,
    settings: ClusterSettings,
    vectors: Float32,
    lengths: Sequence[range],
    cosines: Float32,
    filters: Sequence[Filter],
    on_words: Callable[[int], None],
) -> Iterator[tuple[StoredPassage, list[int]]]:
    """Yield the passages that a widened search of the stored spans names, scored over all spans.

    Where the widened searches will name most passages anyway, every word is read instead.
    """
    total = int(
        cluster.ask(
            lambda: cluster.client.count(
                index=cluster.index, body={"query": {"bool": {"filter": filter_clauses(filters)}}}
            )
        )["count"]
    )
    named: dict[str, list[int]] = defaultdict(list)
    for first in range(0, len(vectors), PHRASES):
        bodies = []
        for k in range(first, min(first + PHRASES, len(vectors))):
            body = mining_query(
                vectors[k],
                degree(float(cosines[k])),
                tolerance=settings.tolerance,
                size=WINDOW,
                filters=filters,
                vector_type=settings.vector_type,
                dimensions=settings.dimensions,
                source=(),
            )
            del body["sort"]
            bodies.append({**body, "track_total_hits": True})
        answers = cluster.msearch(bodies)
        for k, answer in enumerate(answers, start=first):
            for hit in answer["hits"]["hits"]:
                named[hit["_id"]].append(k)
        cut = any(answer["hits"]["total"]["value"] > WINDOW for answer in answers)
        searched = (first + len(answers)) / len(vectors)
        if cut or _expected(len(named), total, searched) > total / 2:
            yield from scan_every_word(cluster, vectors, lengths, cosines, filters, on_words)
            return
    ids = list(named)
    for first in range(0, len(ids), WORDS_PAGE):
        body = {
            "query": {"ids": {"values": ids[first : first + WORDS_PAGE]}},
            "size": WORDS_PAGE,
            "_source": STORED,
        }
        for hit in cluster.search(body)["hits"]["hits"]:
            stored = stored_passage(hit)
            some = np.array(named[hit["_id"]])
            reached = _reached(stored, vectors[some], [lengths[k] for k in some], cosines[some])
            if reached.any():
                yield stored, some[reached].tolist()
            on_words(len(stored.words))


def _expected(named: int, total: int, searched: float) -> float:
    """Return how many passages all phrases will name, if the others name as many as these."""
    left = max(0.0, 1 - named / max(total, 1))
    return float(total * (1 - left ** (1 / searched)))


def scan_every_word(
    cluster: Cluster,
    vectors: Float32,
    lengths: Sequence[range],
    cosines: Float32,
    filters: Sequence[Filter],
    on_words: Callable[[int], None],
) -> Iterator[tuple[StoredPassage, list[int]]]:
    """Yield the passages where a span reaches a phrase's cosine, all words read from the cluster.

    From one state of the index, whatever is written meanwhile.
    """
    body = {
        "query": {"bool": {"filter": filter_clauses(filters)}},
        "_source": STORED,
    }
    for page in cluster.pages(body, WORDS_PAGE):
        # The products are small: BLAS's threads would only wait for each other.
        with threadpool_limits(1, "blas"):
            passages = [stored_passage(hit) for hit in page]
            tables = [_reached(stored, vectors, lengths, cosines) for stored in passages]
        for stored, reached in zip(passages, tables, strict=True):
            if reached.any():
                yield stored, np.flatnonzero(reached).tolist()
            on_words(len(stored.words))


def _reached(
    stored: StoredPassage, vectors: Float32, lengths: Sequence[range], cosines: Float32
) -> npt.NDArray[np.bool_]:
    """Tell for each phrase whether a span of the passage has its cosine, bool ``[phrases]``."""
    count = len(stored.words)
    scores = stored.words.vectors @ vectors.T
    sums = np.concatenate((np.zeros((1, len(vectors)), np.float32), np.cumsum(scores, axis=0)))
    best = np.full(len(vectors), -np.inf, np.float32)
    windows = [fit_window(one, count) for one in lengths]
    for window in dict.fromkeys(windows):
        members = np.array([k for k, other in enumerate(windows) if other == window])
        for length in range(window.start, min(window.stop, count + 1)):
            norms = stored.norms[length - 1, : count - length + 1]
            inverse = np.divide(1, norms, out=np.zeros_like(norms), where=norms > 0)
            spans = sums[length:, members] - sums[: count - length + 1, members]
            spans *= inverse[:, None]
            best[members] = np.maximum(best[members], spans.max(axis=0))
    return best >= cosines - ROUNDING

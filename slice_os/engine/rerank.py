"""Reranking: the score of a passage from all its spans and word by word, on every backend.

Backends find passages by their spans alone, approximately. The best of them, a block of ranks, are
scored again exactly. Blocks are of fixed ranks, so that pages are cut from one sequence and do not
overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from math import ceil

import numpy as np
import numpy.typing as npt

from slice_os.spans import best_of_each, degree, late_interactions, word_scores
from slice_os.storage.contract import Backend, Candidate, Mode, SearchQuery, StoredPassage
from slice_os.storage.fusion import FUSIONS, get_fusion
from slice_os.types import Float32

Float64 = npt.NDArray[np.float64]
RANKS = {"dense": 50, "hybrid": 30}
"""Ranks that are reranked together, by mode: nearly all ten of a scoring of every passage are
there (benchmarks/hybrid.py). BM25 brings them forward, and in a cluster each costs its words."""
SHORT_RANKS = 100
"""The same for short spans, those that queries of up to five words are compared with: they are near
to many passages, by nearly the same."""


@dataclass(eq=False)
class Ranked:
    """A passage with the score that ranks it, and what its words and spans say of the query."""

    score: float
    stored: StoredPassage
    bm25: float | None
    vector: Float32
    lengths: range
    scores: Float32 | None = None

    @property
    def word_scores(self) -> Float32:
        """Q . w for each of its words, float32 ``[N]``."""
        # No cached_property: before Python 3.12 all of a class share a lock, which a fork may copy.
        if self.scores is None:
            self.scores = word_scores(self.stored.packed.vectors, self.vector)
        return self.scores

    @property
    def degree(self) -> float:
        """The in-context degree of its best span."""
        best = best_of_each([self.stored.packed], [self.word_scores], self.lengths)
        return degree(float(best[0]))


def is_reranked(mode: Mode, fusion: str) -> bool:
    """Tell whether a score can be computed from one passage: not from its ranks in two lists."""
    return mode == "dense" or (mode == "hybrid" and FUSIONS[fusion].whole_corpus)


def ranked_passages(
    backend: Backend, queries: Sequence[SearchQuery], ranks: range
) -> list[list[Ranked]]:
    """Return some ranks of each query, best first: candidates, reranked."""
    return [list(ranked) for ranked in rank_lazily(backend, queries, ranks)]


def rank_lazily(
    backend: Backend, queries: Sequence[SearchQuery], ranks: range
) -> list[Iterator[Ranked]]:
    """Return the same of one reading of the index; a block is reranked when it is come to."""
    blocks = [_block(backend, query) for query in queries]
    whole = [
        replace(
            query,
            ranks=_whole(ranks, block),
            depth=_whole(range(query.depth), block).stop,
            reach=max(query.reach, ranks.stop),
        )
        for query, block in zip(queries, blocks, strict=True)
    ]
    return [
        islice(
            _reranked(query, block, candidates),
            ranks.start - query.ranks.start,
            ranks.stop - query.ranks.start,
        )
        for query, block, candidates in zip(whole, blocks, backend.candidates(whole), strict=True)
    ]


def _reranked(query: SearchQuery, block: int, candidates: Sequence[Candidate]) -> Iterator[Ranked]:
    """Yield candidates, a block of them scored again and sorted."""
    for first in range(0, len(candidates), block):
        ranked = [
            Ranked(candidate.score, candidate.stored, candidate.bm25, query.vector, query.lengths)
            for candidate in candidates[first : first + block]
        ]
        if is_reranked(query.mode, query.fusion):
            scores = dense_scores(query, ranked)
            if query.mode == "hybrid":
                fusion, weight = get_fusion(query.fusion, query.weight)
                lexical = np.array([passage.bm25 or 0 for passage in ranked], float)
                scores = fusion.of_one(scores, lexical, weight) if fusion.of_one else scores
            for passage, score in zip(ranked, scores.tolist(), strict=True):
                passage.score = score
            ranked.sort(key=lambda passage: -passage.score)
        yield from ranked


def _block(backend: Backend, query: SearchQuery) -> int:
    """Return how many ranks of a query are reranked together."""
    if not is_reranked(query.mode, query.fusion):
        return 1
    ranks = SHORT_RANKS if query.is_short else RANKS[query.mode]
    return ceil(ranks / backend.exactness(query))


def _whole(ranks: range, block: int) -> range:
    """Return the ranks of the blocks that some ranks are in."""
    return range(ranks.start // block * block, ceil(ranks.stop / block) * block)


def dense_scores(query: SearchQuery, passages: Sequence[Ranked]) -> Float64:
    """Return the dense scores of passages, float64 ``[n]``, in [0, 1].

    That is (1 - late) degree + late (1 + s) / 2, s the late interaction of the query's words with
    the passage's; the degree alone where the query has no words.
    """
    words = query.words if query.late else None
    vectors = query.vector[None] if words is None else np.vstack((query.vector, words.vectors))
    packed = [passage.stored.packed for passage in passages]
    bounds = np.cumsum([0, *map(len, packed)])
    products = np.empty((bounds[-1], len(vectors)), np.float32)
    squares = np.empty(bounds[-1], np.float32)
    for passage, (start, end) in zip(packed, pairwise(bounds.tolist()), strict=True):
        # What the cache holds at a time. A cosine has no need of the scales.
        codes = passage.codes.astype(np.float32)
        np.matmul(codes, vectors.T, out=products[start:end])
        np.einsum("nd,nd->n", codes, codes, out=squares[start:end])
    for ranked, scores in zip(passages, np.split(products[:, 0], bounds[1:-1]), strict=True):
        ranked.scores = scores * ranked.stored.packed.scales
    best = best_of_each(packed, [passage.word_scores for passage in passages], query.lengths)
    degrees = degree(best.astype(np.float64))
    if words is None:
        return degrees
    late = late_interactions(words, products[:, 1:], squares, bounds)
    return (1 - query.late) * degrees + query.late * degree(late.astype(np.float64))

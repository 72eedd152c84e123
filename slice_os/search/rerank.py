"""Reranking: the score of a passage from all its spans and word by word, on every backend.

Backends find passages by their spans alone, approximately. The best of them, a block of ranks, are
scored again exactly. Blocks are of fixed ranks, so that pages are cut from one sequence and do not
overlap.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil

import numpy as np

from slice_os.backends.base import Backend, Candidate, Mode, SearchQuery, StoredPassage
from slice_os.fusion import FUSIONS, get_fusion
from slice_os.records import Float32
from slice_os.spans import (
    best_span,
    degree,
    fit_window,
    late_interaction,
    word_scores,
)

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

    @cached_property
    def norms(self) -> Float32:
        """The norms of its spans, float32 ``[L, N]``."""
        return self.stored.packed.span_norms

    @cached_property
    def word_scores(self) -> Float32:
        """Q . w for each of its words, float32 ``[N]``."""
        return word_scores(self.stored.packed.vectors, self.vector)

    @property
    def window(self) -> range:
        """The span lengths that count: of a shorter passage, the whole."""
        return fit_window(self.lengths, len(self.stored.packed))

    @cached_property
    def cosines(self) -> Float32:
        """The cosines of its spans with the query, float32 ``[window, N]``."""
        return self.stored.packed.scored(self.word_scores, self.window)

    @property
    def degree(self) -> float:
        """The indexed degree of its best span."""
        return degree(best_span(self.cosines, self.window).cosine)


def is_reranked(mode: Mode, fusion: str) -> bool:
    """Tell whether a score can be computed from one passage: not from its ranks in two lists."""
    return mode == "dense" or (mode == "hybrid" and FUSIONS[fusion].whole_corpus)


def ranked_passages(
    backend: Backend, queries: Sequence[SearchQuery], ranks: range
) -> list[list[Ranked]]:
    """Return some ranks of each query, best first: candidates, reranked."""
    blocks = [_block(backend, query) for query in queries]
    asked = [
        replace(query, ranks=_whole(ranks, block), depth=_whole(range(query.depth), block).stop)
        for query, block in zip(queries, blocks, strict=True)
    ]

    def page(query: SearchQuery, block: int, found: Sequence[Candidate]) -> list[Ranked]:
        ranked = [
            Ranked(one.score, one.stored, one.bm25, query.vector, query.lengths) for one in found
        ]
        if is_reranked(query.mode, query.fusion):
            for first in range(0, len(ranked), block):
                ranked[first : first + block] = _rerank(query, ranked[first : first + block])
        return ranked[ranks.start - query.ranks.start :][: len(ranks)]

    found = backend.candidates(asked)
    if len(queries) == 1:
        return [page(asked[0], blocks[0], found[0])]
    with ThreadPoolExecutor(os.cpu_count(), "slice-os-rerank") as pool:
        return list(pool.map(page, asked, blocks, found))


def _block(backend: Backend, query: SearchQuery) -> int:
    """Return how many ranks of a query are reranked together."""
    if not is_reranked(query.mode, query.fusion):
        return 1
    ranks = SHORT_RANKS if query.is_short else RANKS[query.mode]
    return ceil(ranks / backend.exactness(query))


def _whole(ranks: range, block: int) -> range:
    """Return the ranks of the blocks that some ranks are in."""
    return range(ranks.start // block * block, ceil(ranks.stop / block) * block)


def _rerank(query: SearchQuery, passages: Sequence[Ranked]) -> list[Ranked]:
    """Score passages again and sort them."""
    scores = np.array([dense_score(query, one) for one in passages], float)
    if query.mode == "hybrid":
        fusion, weight = get_fusion(query.fusion, query.weight)
        lexical = np.array([one.bm25 or 0 for one in passages], float)
        scores = fusion.of_one(scores, lexical, weight) if fusion.of_one else scores
    for one, score in zip(passages, scores.tolist(), strict=True):
        one.score = score
    return sorted(passages, key=lambda one: -one.score)


def dense_score(query: SearchQuery, passage: Ranked) -> float:
    """Return the dense score of a passage, in [0, 1].

    That is (1 - late) degree + late (1 + s) / 2, s the late interaction of the query's words with
    the passage's; the degree alone where the query has no words.
    """
    words = query.words if query.late else None
    if words is None:
        return passage.degree
    packed = passage.stored.packed
    # One product of what the cache holds: the codes, since a cosine has no need of their scales.
    codes = packed.codes.astype(np.float32)
    products = codes @ np.vstack((query.vector, words.vectors)).T
    passage.word_scores = products[:, 0] * packed.scales
    said = degree(late_interaction(words, codes, products[:, 1:]))
    return (1 - query.late) * passage.degree + query.late * said

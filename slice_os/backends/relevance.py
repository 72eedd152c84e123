"""The score of a passage that has been read: what its words say of it, the same on every backend.

Finding passages goes by their spans alone. The best of them, a block of ranks, are then read and
scored again, by all their spans and word by word. Blocks are of fixed ranks, so that pages are cut
from one sequence and do not overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil

from slice_os.backends.base import Candidate, Mode, Retrieval, StoredPassage
from slice_os.fusion import FUSIONS, get_fusion
from slice_os.spans import (
    best_span,
    degree,
    fit_window,
    late_interaction,
    span_cosines,
    word_scores,
)

RANKS = {"dense": 50, "hybrid": 30}
"""Ranks that are scored again together, by mode: nearly all ten of a scoring of every passage are
there (benchmarks/hybrid.py). BM25 brings them forward, and in a cluster each costs its words."""
SHORT_RANKS = 100
"""The same for short spans, those that queries of up to five words are compared with: they are near
to many passages, by nearly the same."""
SHORT_SPANS = 3
"""The shortest span that counts for a query of five words."""


def is_short(wanted: Retrieval) -> bool:
    """Tell whether spans so short are compared that much is near to the query."""
    return wanted.lengths.start <= SHORT_SPANS


def is_scored_again(mode: Mode, fusion: str) -> bool:
    """Tell whether a score can be computed from one passage: not from ranks in legs."""
    return mode == "dense" or (mode == "hybrid" and FUSIONS[fusion].whole_corpus)


def score_page(
    wanted: Retrieval,
    read: Callable[[int, int], Sequence[tuple[StoredPassage, float | None]]],
    kept: float = 1.0,
) -> list[Candidate]:
    """Return the page that a retrieval asks for, best first.

    ``read(offset, size)`` gives some ranks as they were found: passages, each with its BM25 score
    if a word of the query is in it. `kept` is the share of the dimensions that found them: with
    fewer the order is coarser, so that many more ranks are scored again.
    """
    size, end = ceil(block_ranks(wanted) / kept), wanted.offset + wanted.size
    first = wanted.offset // size
    found: list[Candidate] = []
    for number in range(first, ceil(end / size)):
        block = read(number * size, size)
        found += sorted(_scored(wanted, block), key=lambda candidate: -candidate.score)
        if len(block) < size:
            break
    return found[wanted.offset - first * size :][: wanted.size]


def _scored(
    wanted: Retrieval, block: Sequence[tuple[StoredPassage, float | None]]
) -> list[Candidate]:
    passages = [stored for stored, _ in block]
    scores = dict(enumerate(relevance(wanted, passages)))
    if wanted.mode == "hybrid":
        fusion, weight = get_fusion(wanted.fusion, wanted.weight)
        lexical = {n: bm25 for n, (_, bm25) in enumerate(block) if bm25 is not None}
        scores = fusion.fuse(scores, lexical, weight)
    return [Candidate(scores[n], stored) for n, stored in enumerate(passages)]


def block_ranks(wanted: Retrieval) -> int:
    """Return how many ranks of a retrieval are scored again together."""
    return SHORT_RANKS if is_short(wanted) else RANKS[wanted.mode]


def whole_blocks(wanted: Retrieval, depth: int) -> int:
    """Return `depth`, or the end of the block that it is in."""
    return -(-depth // block_ranks(wanted)) * block_ranks(wanted)


def exact_degree(stored: StoredPassage, wanted: Retrieval) -> float:
    """Return the degree of a passage's best span, of all of them."""
    scores = word_scores(stored.words.vectors, wanted.vector)
    window = fit_window(wanted.lengths, len(scores))
    return degree(best_span(span_cosines(scores, stored.norms, window), window).cosine)


def relevance(wanted: Retrieval, passages: Sequence[StoredPassage]) -> list[float]:
    """Return the dense scores of passages, in [0, 1].

    That is (1 - late) degree + late (1 + s) / 2, s the late interaction of the query's words with
    the passage's; the degree alone where the retrieval has no words.
    """
    scores = [exact_degree(stored, wanted) for stored in passages]
    if wanted.words is None or not wanted.late:
        return scores
    said = degree(late_interaction(wanted.words, [stored.words.vectors for stored in passages]))
    return [
        (1 - wanted.late) * score + wanted.late * float(one)
        for score, one in zip(scores, said, strict=True)
    ]

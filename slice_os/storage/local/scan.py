"""Scanning segments: the best span's cosine of every passage by its bits, or by its vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache

import numkong
import numpy as np
import numpy.typing as npt

from slice_os.spans import (
    best_span,
    fit_window,
    quantize,
    query_planes,
    stored_cosines,
    unpack_inverse_norms,
)
from slice_os.storage.local.segments import Segment
from slice_os.types import Float32

Int64 = npt.NDArray[np.int64]
DOUBTFUL = 0.001
"""A best cosine below this may be that of a span that leaves its passage."""
TOGETHER = 64
"""Queries for which the vectors are read once."""
BLOCK = 4096
"""Words in one product: it stays in the processor's cache until each query has its row of it."""
BIT_BLOCK = 8192
"""Words whose bits are compared in one product: what it makes is too little for memory of its own,
which would be cleared first each time."""
FEW = 3
"""Up to so many queries are compared with bits one by one; with more, vectors are quicker."""
InverseNorms = Callable[["slice | Int64", int], Float32]
"""Returns 1 / norm of the spans that begin with some words, of a length."""


def best_cosines(
    segment: Segment, queries: Float32, lengths: Sequence[range], *, exact: bool
) -> Float32:
    """Return the best span's cosine of every passage for each query, float32 ``[m, passages]``.

    The unit `queries`, float32 ``[m, d]``, are rounded to 8 bits for this, which moves a cosine by
    about 0.0005 (standard deviation, 384 dimensions). What is shown is computed again exactly.

    What is not `exact` is about the same: a few queries are compared with the words' bits, and of
    the longer lengths some are left out, as a span has nearly the cosine of one a little shorter.
    """
    by_words = _by_vectors if exact or len(queries) > FEW else _by_bits
    inverse: InverseNorms = segment.inverse_norms
    if len(lengths) > 1:
        inverse = _remembering(inverse)
    best = np.empty((len(lengths), len(segment.bounds) - 1), np.float32)
    for row, (scores, window) in enumerate(zip(by_words(segment, queries), lengths, strict=True)):
        best[row] = _best_of_passages(segment.bounds, scores, inverse, window, exact=exact)
    return best


def exact_cosines(places: Sequence[tuple[Segment, int]], query: Float32, lengths: range) -> Float32:
    """Return what `best_cosines` does, of some passages, float32 ``[n]``: (segment, ordinal)."""
    if not places:
        return np.empty(0, np.float32)
    parts = [(segment, segment.slice(ordinal)) for segment, ordinal in places]
    counts = [part.stop - part.start for _, part in parts]
    vectors = np.concatenate([segment.vectors[part] for segment, part in parts])
    scales = np.concatenate([segment.scales[part] for segment, part in parts])
    norms = np.concatenate(
        [segment.norms[: lengths.stop - 1, part] for segment, part in parts], axis=1
    )
    exponents = np.repeat([int(segment.exponent[0]) for segment, _ in parts], counts)

    def inverse(words: slice | Int64, length: int) -> Float32:
        return unpack_inverse_norms(norms[length - 1, words], exponents[words])

    codes, scale = quantize(query[None])
    scores = _products(codes, vectors)[0] * scales * scale
    return _best_of_passages(np.cumsum([0, *counts]), scores, inverse, lengths, exact=True)


def _by_vectors(segment: Segment, queries: Float32) -> Iterator[Float32]:
    """Yield the cosines' numerators of all words, float32 ``[N]``, for each query."""
    for first in range(0, len(queries), TOGETHER):
        codes, scales = quantize(queries[first : first + TOGETHER])
        for products, scale in zip(_products(codes, segment.vectors), scales, strict=True):
            products *= segment.scales
            products *= scale
            yield products


def _products(queries: npt.NDArray[np.int8], words: npt.NDArray[np.int8]) -> Float32:
    """Return the products of int8 queries ``[m, d]`` with all words, float32 ``[m, N]``."""
    products = np.empty((len(queries), len(words)), np.float32)
    if len(queries) == 1:
        products[:] = numkong.cdist(queries, words, metric="dot", out_dtype="float32")
    else:
        packed = numkong.dots_pack(queries)
        for first in range(0, len(words), BLOCK):
            block = slice(first, first + BLOCK)
            products[:, block] = np.asarray(numkong.dots_packed(words[block], packed)).T
    return products


def _by_bits(segment: Segment, queries: Float32) -> Iterator[Float32]:
    """Yield about what `_by_vectors` does."""
    for query in queries:
        planes, weights, constant = query_planes(query)
        packed = numkong.dots_pack(planes, dtype="uint1")
        scores = np.empty(len(segment), np.float32)
        for first in range(0, len(scores), BIT_BLOCK):
            block = slice(first, first + BIT_BLOCK)
            common = np.asarray(numkong.dots_packed(segment.bits[block], packed))
            np.matmul(common.astype(np.float32), weights, out=scores[block])
        scores += constant
        scores *= segment.ratios
        scores *= segment.scales
        yield scores


def _remembering(inverse: InverseNorms) -> InverseNorms:
    """Return the same, which works out the norms of all words once for all queries."""
    every = cache(lambda length: inverse(slice(None), length))
    return lambda words, length: every(length)[words]


def _best_of_passages(
    bounds: Int64, scores: Float32, inverse: InverseNorms, lengths: range, *, exact: bool
) -> Float32:
    """Return the best span's cosine of every passage, ``[passages]``, of its words' scores.

    Long arrays, made once: two threads that allocate, or that meet at the GIL, for every
    operation on a small block take longer together than one of them alone.
    """
    starts, counts = bounds[:-1], np.diff(bounds)
    compared = lengths if exact else _thinned(lengths)
    best = np.full(len(scores), -np.inf, dtype=np.float32)
    sums, cosines = scores.copy(), np.empty_like(best)
    for length in range(1, min(lengths.stop, len(scores) + 1)):
        first = len(scores) - length + 1
        sums = sums[:first]
        if length > 1:
            sums += scores[length - 1 :]
        if length in compared:
            np.multiply(sums, inverse(slice(first), length), out=cosines[:first])
            np.maximum(best[:first], cosines[:first], out=best[:first])
        if length < lengths.start and len(whole := starts[counts == length]):
            best[whole] = sums[whole] * inverse(whole, length)  # too short for any other span
    highest: Float32 = np.maximum.reduceat(best, starts)
    if not exact:
        return highest
    # A span that would leave its passage counts as next to 0 above: that matters only where no true
    # span is better.
    for passage in np.flatnonzero(highest < DOUBTFUL).tolist():
        part = slice(int(bounds[passage]), int(bounds[passage + 1]))
        window = fit_window(lengths, part.stop - part.start)
        norms = np.stack([inverse(part, length) for length in range(1, lengths.stop)])
        highest[passage] = best_span(stored_cosines(scores[part], norms, window), window).cosine
    return highest


def _thinned(lengths: range) -> list[int]:
    """Return the lengths that stand for all: each is longer than the one before by up to a half.

    A span has nearly the cosine of one that is a little shorter.
    """
    kept = [lengths.start]
    while (following := kept[-1] + max(1, kept[-1] // 2)) < lengths.stop:
        kept.append(following)
    return kept

"""Scanning segments: the best span's cosine of every passage by its bits, or by its vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from math import prod
from threading import local

import numkong
import numpy as np
import numpy.typing as npt

from slice_os.spans import (
    PLANES,
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
BIT_BLOCK = 16_384
"""Words whose bits are compared in one product, for the same reason."""
GROUP = 1 << 18
"""Words of the segments that a thread scans together. With fewer, threads take longer: each
operation on an array ends at the GIL, where they meet."""
FEW = 3
"""Up to so many queries are compared with bits one by one; with more, vectors are quicker."""
InverseNorms = Callable[["slice | Int64", int], Float32]
"""Returns 1 / norm of the spans that begin with some words, of a length."""


class _Memory(local):
    """Arrays that a thread uses again: one that it allocates is cleared first, page by page."""

    def __init__(self) -> None:
        self._kept: dict[str, Float32] = {}

    def array(self, name: str, *shape: int) -> Float32:
        """Return the array of a name, float32 of a shape, whatever is in it."""
        size = prod(shape)
        if name not in self._kept or self._kept[name].size < size:
            self._kept[name] = np.empty(size, np.float32)
        return self._kept[name][:size].reshape(shape)


_memory = _Memory()


def _reads_bits(queries: int, *, exact: bool) -> bool:
    return not exact and queries <= FEW


def grouped(segments: Iterable[Segment], queries: int, *, exact: bool) -> Iterator[list[Segment]]:
    """Yield the segments that one call of `best_cosines` scans: by vectors one, by bits more."""
    most = GROUP if _reads_bits(queries, exact=exact) else 0
    group: list[Segment] = []
    for segment in segments:
        if group and sum(map(len, group)) + len(segment) > most:
            yield group
            group = []
        group.append(segment)
    if group:
        yield group


def best_cosines(
    segments: Sequence[Segment], queries: Float32, lengths: Sequence[range], *, exact: bool
) -> Float32:
    """Return the best span's cosine of every passage for each query, float32 ``[m, passages]``.

    The unit `queries`, float32 ``[m, d]``, are rounded to 8 bits for this, which moves a cosine by
    about 0.0005 (standard deviation, 384 dimensions). What is shown is computed again exactly.

    What is not `exact` is about the same: a few queries are compared with the words' bits, and of
    the longer lengths some are left out, as a span has nearly the cosine of one a little shorter.
    """
    if not _reads_bits(len(queries), exact=exact):
        parts = [_by_vectors(segment, queries, lengths, exact=exact) for segment in segments]
        return np.concatenate(parts, axis=1)
    asked = zip(queries, lengths, strict=True)
    return np.stack([_by_bits(segments, query, window) for query, window in asked])


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


def _by_vectors(
    segment: Segment, queries: Float32, lengths: Sequence[range], *, exact: bool
) -> Float32:
    """Return what `best_cosines` does, of one segment."""
    inverse: InverseNorms = segment.inverse_norms
    if len(lengths) > 1:
        inverse = _remembering(inverse)
    best = np.empty((len(lengths), len(segment.bounds) - 1), np.float32)
    for first in range(0, len(queries), TOGETHER):
        codes, scales = quantize(queries[first : first + TOGETHER])
        for row, scores in enumerate(_products(codes, segment.vectors)):
            scores *= segment.scales
            scores *= scales[row]
            window = lengths[first + row]
            best[first + row] = _best_of_passages(
                segment.bounds, scores, inverse, window, exact=exact
            )
    return best


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


def _by_bits(segments: Sequence[Segment], query: Float32, lengths: range) -> Float32:
    """Return about what `best_cosines` does for one query."""
    starts = np.cumsum([0, *map(len, segments)])
    parts = [slice(*edges) for edges in pairwise(starts.tolist())]
    scores, inverse_norms = (_memory.array(name, int(starts[-1])) for name in ("scores", "norms"))
    planes, weights, constant = query_planes(query)
    packed = numkong.dots_pack(planes, dtype="uint1")
    for segment, part in zip(segments, parts, strict=True):
        _likely_scores(segment, packed, weights, constant, scores[part])

    def inverse(words: slice | Int64, length: int) -> Float32:
        if isinstance(words, slice):
            for segment, part in zip(segments, parts, strict=True):
                segment.inverse_norms(slice(None), length, out=inverse_norms[part])
            return inverse_norms[words]
        split = np.split(words, np.searchsorted(words, starts[1:-1]))
        return np.concatenate(
            [
                segment.inverse_norms(begins - part.start, length)
                for segment, part, begins in zip(segments, parts, split, strict=True)
            ]
        )

    bounds = [s.bounds[:-1] + part.start for s, part in zip(segments, parts, strict=True)]
    joined = np.concatenate([*bounds, starts[-1:]])
    return _best_of_passages(joined, scores, inverse, lengths, exact=False)


def _likely_scores(
    segment: Segment,
    planes: numkong.PackedMatrix,
    weights: Float32,
    constant: np.float32,
    out: Float32,
) -> None:
    """Write about the numerators of all words' cosines with a query to `out`, float32 ``[N]``."""
    for first in range(0, len(out), BIT_BLOCK):
        block = slice(first, first + BIT_BLOCK)
        bits = segment.bits[block]
        common, numbers = (_memory.array(name, len(bits), PLANES) for name in ("common", "numbers"))
        counts = common.view(np.uint32)
        numkong.dots_packed(bits, planes, out=numkong.from_dlpack(counts))
        numbers[...] = common.view(np.int32)  # which numpy converts twice as fast as uint32
        np.matmul(numbers, weights, out=out[block])
    out += constant
    out *= segment.ratios
    out *= segment.scales


def _remembering(inverse: InverseNorms) -> InverseNorms:
    """Return the same, which works out the norms of all words once for all queries."""
    every = cache(lambda length: inverse(slice(None), length))
    return lambda words, length: every(length)[words]


def _best_of_passages(
    bounds: Int64, scores: Float32, inverse: InverseNorms, lengths: range, *, exact: bool
) -> Float32:
    """Return the best span's cosine of every passage, ``[passages]``, of its words' scores."""
    starts, counts = bounds[:-1], np.diff(bounds)
    compared = lengths if exact else _thinned(lengths)
    best, sums, cosines = (_memory.array(name, len(scores)) for name in ("best", "sums", "cosines"))
    best[...], sums[...] = -np.inf, scores
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

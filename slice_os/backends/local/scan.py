"""Scoring every span of a segment for some queries, at the speed of memory.

A span's cosine is the sum of its words' scores q . w_k over its norm; the norms are stored, so a
segment costs one matrix product and, for each query and span length, one addition and one
multiplication a word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial

import numkong
import numpy as np
import numpy.typing as npt

from slice_os.backends.local.segment import Segment
from slice_os.records import Float32
from slice_os.spans import best_span, fit_window, quantize, stored_cosines

DOUBTFUL = 0.001
"""A best cosine below this may be that of a span that leaves its passage."""
TOGETHER = 64
"""Queries for which the vectors are read once."""
BLOCK = 4096
"""Words in one product: it stays in the processor's cache until each query has its row of it."""


def best_cosines(segment: Segment, queries: Float32, lengths: Sequence[range]) -> Float32:
    """Return the best span's cosine of every passage for each query, float32 ``[m, passages]``.

    The unit `queries`, float32 ``[m, d]``, are rounded to 8 bits for this, which moves a cosine by
    about 0.0005 (standard deviation, 384 dimensions). What is shown is computed again exactly.
    """
    inverse: Callable[[int], Float32] = partial(segment.inverse_norms, slice(None))
    if len(queries) > 1:
        inverse = cache(inverse)
    found = np.empty((len(queries), len(segment.bounds) - 1), np.float32)
    for first in range(0, len(queries), TOGETHER):
        some = slice(first, first + TOGETHER)
        codes, scales = quantize(queries[some])
        found[some] = [
            _best_of_passages(segment, own, float(scale), inverse, window)
            for own, scale, window in zip(
                _word_scores(segment, codes), scales, lengths[some], strict=True
            )
        ]
    return found


def _word_scores(segment: Segment, queries: npt.NDArray[np.int8]) -> Float32:
    """Return the products of int8 queries ``[m, d]`` with all words, float32 ``[m, words]``."""
    found = np.empty((len(queries), len(segment.vectors)), np.float32)
    if len(queries) == 1:
        found[:] = numkong.cdist(queries, segment.vectors, metric="dot", out_dtype="float32")
    else:
        packed = numkong.dots_pack(queries)
        for first in range(0, len(segment.vectors), BLOCK):
            some = slice(first, first + BLOCK)
            found[:, some] = np.asarray(numkong.dots_packed(segment.vectors[some], packed)).T
    found *= segment.scales
    return found


def _best_of_passages(
    segment: Segment,
    scores: Float32,
    scale: float,
    inverse: Callable[[int], Float32],
    lengths: range,
) -> Float32:
    """Return the best span's cosine of every passage, ``[passages]``, of its words' scores.

    Long arrays, made once: two threads that allocate, or that meet at the GIL, for every
    operation on a small block take longer together than one of them alone.
    """
    starts, counts = segment.bounds[:-1], np.diff(segment.bounds)
    best = np.full(len(scores), -np.inf, dtype=np.float32)
    sums, cosines = scores.copy(), np.empty_like(best)
    for length in range(1, min(lengths.stop, len(scores) + 1)):
        first = len(scores) - length + 1
        sums = sums[:first]
        if length > 1:
            sums += scores[length - 1 :]
        if length >= lengths.start:
            np.multiply(sums, inverse(length)[:first], out=cosines[:first])
            np.maximum(best[:first], cosines[:first], out=best[:first])
        elif len(whole := starts[counts == length]):  # too short for any other span
            best[whole] = sums[whole] * segment.inverse_norms(whole, length)
    found: Float32 = np.maximum.reduceat(best, starts) * np.float32(scale)
    # A span that would leave its passage counts as next to 0 above: that matters only where no true
    # span is better.
    for passage in np.flatnonzero(found < DOUBTFUL).tolist():
        part = segment.slice(passage)
        window = fit_window(lengths, part.stop - part.start)
        own = segment.passage(passage).inverse_norms
        found[passage] = scale * best_span(stored_cosines(scores[part], own, window), window).cosine
    return found

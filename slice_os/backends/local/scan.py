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

from slice_os.backends.local.segment import Segment
from slice_os.records import Float32
from slice_os.spans import best_span, fit_window, quantize, stored_cosines

DOUBTFUL = 0.001
"""A best cosine below this may be that of a span that leaves its passage."""
TOGETHER = 16
"""Queries in one product: its result stays in the processor's cache."""


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
        # In rows of their own, which the cache holds while a query is worked on.
        if len(codes) == 1:
            products = np.asarray(
                numkong.cdist(codes, segment.vectors, metric="dot", out_dtype="float32")
            )
        else:
            packed = numkong.dots_pack(codes)
            products = np.asarray(numkong.dots_packed(segment.vectors, packed)).T
        scores = np.multiply(
            products, segment.scales, order="C", dtype=np.float32, casting="same_kind"
        )
        scores *= scales[:, None]
        found[some] = [
            _best_of_passages(segment, own, inverse, window)
            for own, window in zip(scores, lengths[some], strict=True)
        ]
    return found


def _best_of_passages(
    segment: Segment, scores: Float32, inverse: Callable[[int], Float32], lengths: range
) -> Float32:
    """Return the best span's cosine of every passage, ``[passages]``, of its words' scores.

    Long arrays, made once: two threads that allocate, or that meet at the GIL, for every
    operation on a small block take longer together than one of them alone.
    """
    best = np.full(len(scores), -1, dtype=np.float32)
    sums, cosines = np.zeros_like(best), np.empty_like(best)
    for length in range(1, min(lengths.stop, len(scores) + 1)):
        first = len(scores) - length + 1
        sums = sums[:first]
        sums += scores[length - 1 :]
        if length >= lengths.start:
            np.multiply(sums, inverse(length)[:first], out=cosines[:first])
            np.maximum(best[:first], cosines[:first], out=best[:first])
    found: Float32 = np.maximum.reduceat(best, segment.bounds[:-1])
    # A span that would leave its passage counts as next to 0 above. That matters only where no
    # true span is better, or where the passage is too short for any.
    short = np.diff(segment.bounds) < lengths.start
    for passage in np.flatnonzero(short | (found < DOUBTFUL)).tolist():
        part = segment.slice(passage)
        window = fit_window(lengths, part.stop - part.start)
        own = segment.passage(passage).inverse_norms
        found[passage] = best_span(stored_cosines(scores[part], own, window), window).cosine
    return found

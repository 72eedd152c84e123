"""Scoring every span of a segment for one query, at the speed of memory.

A span's cosine is the sum of its words' scores q . w_k over its norm; the norms are stored, so a
segment costs one matrix-vector product and, for each span length, one addition and one
multiplication a word.
"""

from __future__ import annotations

import numpy as np
import simsimd

from slice_os.backends.local.segment import Segment
from slice_os.records import Float32
from slice_os.spans import best_span, fit_window, quantize, stored_cosines

DOUBTFUL = 0.001
"""A best cosine below this may be that of a span that leaves its passage."""


def best_cosines(segment: Segment, query: Float32, lengths: range) -> Float32:
    """Return the best span's cosine of every passage of a segment, float32 ``[passages]``.

    The unit `query`, float32 ``[d]``, is rounded to 8 bits for this, which moves a cosine by
    about 0.0005 (standard deviation, 384 dimensions). What is shown is computed again exactly.
    """
    codes, scale = quantize(query[None, :])
    products = simsimd.cdist(segment.vectors, codes, metric="dot", out_dtype="float32")
    scores = np.asarray(products)[:, 0] * segment.scales
    scores *= scale[0]
    best = _best_from_each_word(segment, scores, lengths)
    found: Float32 = np.maximum.reduceat(best, segment.bounds[:-1])
    # A span that would leave its passage counts as next to 0 above. That matters only where no
    # true span is better, or where the passage is too short for any.
    short = np.diff(segment.bounds) < lengths.start
    for passage in np.flatnonzero(short | (found < DOUBTFUL)).tolist():
        part = segment.slice(passage)
        window = fit_window(lengths, part.stop - part.start)
        inverse = segment.inverse_norms(part)
        found[passage] = best_span(stored_cosines(scores[part], inverse, window), window).cosine
    return found


def _best_from_each_word(segment: Segment, scores: Float32, lengths: range) -> Float32:
    """Return the best cosine of the spans that begin with each word of a segment.

    Long arrays, made once: two threads that allocate, or that meet at the GIL, for every
    operation on a small block take longer together than one of them alone.
    """
    best = np.full(len(scores), -1, dtype=np.float32)
    sums, inverse = np.zeros_like(best), np.empty_like(best)
    for length in range(1, min(lengths.stop, len(scores) + 1)):
        first = len(scores) - length + 1
        sums = sums[:first]
        sums += scores[length - 1 :]
        if length >= lengths.start:
            cosines = segment.inverse_norms_into(length, inverse[:first])
            cosines *= sums
            np.maximum(best[:first], cosines, out=best[:first])
    return best

"""Scoring every span of a segment: at the speed of memory for one query, exactly for mining.

A span's cosine is the sum of its words' scores q . w_k over its norm; the norms are stored, so a
segment costs one matrix-vector product and, for each span length, one addition and one
multiplication a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import simsimd

from slice_os.backends.local.segment import Segment
from slice_os.records import Float32
from slice_os.spans import best_span, dequantize, fit_window, quantize, stored_cosines

BLOCK_WORDS = 4096
DOUBTFUL = 0.001
"""A best cosine below this may be that of a span that leaves its passage."""
MARGIN = 0.002
"""By how much a mined cosine may be below the threshold here: float32 prefix sums are not exact."""


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
        inverse = segment.inverse_norms(slice(None), part)
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


def reaching(
    segment: Segment, queries: Float32, lengths: Sequence[range], cosines: Float32
) -> Iterator[tuple[int, list[int]]]:
    """Yield (passage, phrases) where a span's cosine with the phrase may reach its threshold.

    `queries` is float32 ``[m, d]`` of unit norm; every passage that qualifies is yielded.
    """
    thresholds = cosines - MARGIN
    groups = [
        (window, np.array([k for k, other in enumerate(lengths) if other == window]))
        for window in dict.fromkeys(lengths)
    ]
    for first, last in _blocks(segment.bounds, BLOCK_WORDS):
        words = slice(int(segment.bounds[first]), int(segment.bounds[last]))
        bounds = segment.bounds[first : last + 1] - words.start
        vectors = dequantize(segment.vectors[words], segment.scales[words])
        reached = np.zeros((words.stop - words.start, len(queries)), dtype=bool)
        for window, members in groups:
            inverse = segment.inverse_norms(slice(window.start - 1, window.stop - 1), words)
            scores = vectors @ queries[members].T
            reached[:, members] = _reached(scores, inverse, window, thresholds[members])
            short, whole = _short_passages(segment, words, bounds, window)
            for passage, inverse_norm in zip(short, whole, strict=True):
                part = slice(*bounds[passage : passage + 2])
                sums = scores[part].sum(axis=0) * inverse_norm
                reached[part.start, members] |= sums >= thresholds[members]
        any_word = np.logical_or.reduceat(reached, bounds[:-1], axis=0)
        for row in np.flatnonzero(any_word.any(axis=1)):
            yield first + int(row), np.flatnonzero(any_word[row]).tolist()


def _reached(
    scores: Float32, inverse: Float32, window: range, thresholds: Float32
) -> npt.NDArray[np.bool_]:
    """Tell for every word and phrase whether a span that begins with the word qualifies."""
    count = len(scores)
    sums = np.concatenate((np.zeros((1, scores.shape[1]), np.float32), np.cumsum(scores, axis=0)))
    reached = np.zeros(scores.shape, dtype=bool)
    for row, length in enumerate(window):
        firsts = count - length + 1
        if firsts <= 0:
            break
        cosines = sums[length:] - sums[:firsts]
        cosines *= inverse[row, :firsts, None]
        reached[:firsts] |= cosines >= thresholds
    return reached


def _short_passages(
    segment: Segment, words: slice, bounds: npt.NDArray[np.int64], lengths: range
) -> tuple[npt.NDArray[np.int64], Float32]:
    """Return the passages of a block too short for `lengths`, and 1 / norm of each whole one.

    Such a passage is compared as a whole, as `fit_window` says.
    """
    sizes = np.diff(bounds)
    short = np.flatnonzero(sizes < lengths.start)
    whole = [
        segment.inverse_norms(slice(n - 1, n), slice(i, i + 1))[0, 0]
        for n, i in zip(sizes[short], words.start + bounds[:-1][short], strict=True)
    ]
    return short, np.array(whole, dtype=np.float32)


def _blocks(bounds: npt.NDArray[np.int64], words: int) -> Iterator[tuple[int, int]]:
    """Yield runs of passages of about `words` words, so that what is worked on stays small."""
    first = 0
    while first < len(bounds) - 1:
        last = int(np.searchsorted(bounds, bounds[first] + words, side="right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last

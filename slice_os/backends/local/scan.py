"""Scoring every span of a segment: at the speed of memory for one query, exactly for mining.

With c_k = q . w_k and C the prefix sums of c, the span of l words from word i has cosine
(C_{i+l} - C_i) / n_{l,i}; the norms are stored, so a segment costs one matrix-vector product
and, for each span length, one subtraction and one multiplication a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import simsimd

from slice_os.backends.local.segment import Segment
from slice_os.records import Float32
from slice_os.spans import dequantize, quantize

BLOCK_WORDS = 4096
MARGIN = 0.002
"""By how much a mined cosine may be below the threshold here: float32 prefix sums are not exact."""


def best_cosines(segment: Segment, query: Float32, lengths: range) -> Float32:
    """Return the best span's cosine of every passage of a segment, float32 ``[passages]``.

    The unit `query`, float32 ``[d]``, is rounded to 8 bits for this, which moves a cosine by
    about 0.0005 (standard deviation, 384 dimensions). What is shown is computed again exactly.
    """
    codes, scale = quantize(query[None, :])
    products = np.asarray(simsimd.cdist(segment.vectors, codes, metric="dot"))[:, 0]
    sums = np.concatenate(([0.0], np.cumsum(products * segment.scales)))
    sums *= float(scale[0])
    best = np.full(len(products), -1, dtype=np.float32)
    firsts_of, ends_of = segment.bounds[:-1], segment.bounds[1:]
    for length in lengths:
        firsts = len(products) - length + 1
        if firsts <= 0:
            break
        cosines = (sums[length:] - sums[:firsts]).astype(np.float32)
        cosines *= segment.inverse_norms(slice(length - 1, length), slice(0, firsts))[0]
        # The last words of a passage begin no span of this length: it would leave the passage.
        crossing = np.maximum(ends_of[:, None] - np.arange(1, length), firsts_of[:, None])
        cosines[crossing[crossing < firsts]] = -1
        np.maximum(best[:firsts], cosines, out=best[:firsts])
    found = np.maximum.reduceat(best, firsts_of)
    short, whole = _short_passages(segment, slice(0, len(firsts_of)), lengths)
    found[short] = (sums[ends_of[short]] - sums[firsts_of[short]]) * whole
    return np.asarray(found, dtype=np.float32)


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
    for first, last in _blocks(segment.bounds):
        words = slice(int(segment.bounds[first]), int(segment.bounds[last]))
        vectors = dequantize(segment.vectors[words], segment.scales[words])
        reached = np.zeros((words.stop - words.start, len(queries)), dtype=bool)
        for window, members in groups:
            inverse = segment.inverse_norms(slice(window.start - 1, window.stop - 1), words)
            scores = vectors @ queries[members].T
            reached[:, members] = _reached(scores, inverse, window, thresholds[members])
            short, whole = _short_passages(segment, slice(first, last), window)
            for passage, inverse_norm in zip(short + first, whole, strict=True):
                part = slice(*(segment.bounds[passage : passage + 2] - words.start))
                sums = scores[part].sum(axis=0) * inverse_norm
                reached[part.start, members] |= sums >= thresholds[members]
        starts = segment.bounds[first:last] - words.start
        any_word = np.logical_or.reduceat(reached, starts, axis=0)
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
    segment: Segment, passages: slice, lengths: range
) -> tuple[npt.NDArray[np.int64], Float32]:
    """Return the passages too short for `lengths`, and 1 / norm of each whole one.

    Such a passage is compared as a whole, as `fit_window` says.
    """
    firsts = segment.bounds[passages]
    sizes = segment.bounds[passages.start + 1 : passages.stop + 1] - firsts
    short = np.flatnonzero(sizes < lengths.start)
    whole = [
        segment.inverse_norms(slice(n - 1, n), slice(i, i + 1))[0, 0]
        for n, i in zip(sizes[short].tolist(), firsts[short].tolist(), strict=True)
    ]
    return short, np.array(whole, dtype=np.float32)


def _blocks(bounds: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield runs of passages of about BLOCK_WORDS words, so that memory stays small."""
    first = 0
    while first < len(bounds) - 1:
        last = int(np.searchsorted(bounds, bounds[first] + BLOCK_WORDS, side="right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last

"""The scan of mining: which passages have a span that reaches a phrase's threshold.

Passages lie one after the other; a block of whole ones is compared with a block of phrases at once,
so that what is formed, ``[phrases, words]``, stays in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from slice_os.records import Float32
from slice_os.threads import one_blas_thread

BLOCK_WORDS = 4096
BLOCK_PHRASES = 256
MARGIN = 0.002
"""Tolerance below the threshold: float32 prefix sums are not exact."""

Read = Callable[[slice], tuple[Float32, Float32]]


def reaching(
    bounds: npt.NDArray[np.int64],
    read: Read,
    queries: Float32,
    lengths: Sequence[range],
    cosines: Float32,
) -> Iterator[tuple[int, list[int]]]:
    """Yield (passage, phrases) where a span's cosine with the phrase may reach its threshold.

    Every passage that qualifies is yielded, and few others: what is within 0.002 of it, and where
    a threshold is not above 0, passages without such a span.

    Args:
        bounds: Which words are a passage's: ``bounds[p]`` to ``bounds[p + 1]``; ``[passages + 1]``.
        read: Returns, of a slice of the words, vectors ``[n, d]`` and 1 / norm of the spans that
            begin with each, by length, ``[max_words, n]``; about 0 where there is none.
        queries: The phrases, unit vectors ``[m, d]``.
        lengths: The span lengths that count for each; of a shorter passage, the whole.
        cosines: The thresholds, ``[m]``.
    """
    thresholds = cosines - MARGIN
    by_window: dict[range, list[int]] = {}
    for k, window in enumerate(lengths):
        by_window.setdefault(window, []).append(k)
    groups = [
        (window, np.array(members[first : first + BLOCK_PHRASES]))
        for window, members in by_window.items()
        for first in range(0, len(members), BLOCK_PHRASES)
    ]
    for first, last in _blocks(bounds):
        words = slice(int(bounds[first]), int(bounds[last]))
        starts = bounds[first : last + 1] - words.start
        vectors, inverse = read(words)
        reached = np.empty((len(queries), last - first), dtype=bool)
        with one_blas_thread():
            for window, members in groups:
                best = _best(queries[members] @ vectors.T, inverse, starts, window)
                reached[members] = best >= thresholds[members, None]
        for passage in np.flatnonzero(reached.any(axis=0)).tolist():
            yield first + passage, np.flatnonzero(reached[:, passage]).tolist()


def _best(
    scores: Float32, inverse: Float32, starts: npt.NDArray[np.int64], lengths: range
) -> Float32:
    """Return the best span's cosine of each passage, ``[m, passages]``, of scores ``[m, n]``."""
    count = scores.shape[1]
    sums = np.zeros((len(scores), count + 1), np.float32)
    np.cumsum(scores, axis=1, out=sums[:, 1:])
    best = np.full_like(scores, -np.inf)
    spans = np.empty_like(scores)
    for length in range(lengths.start, min(lengths.stop, count + 1)):
        first = count - length + 1
        np.subtract(sums[:, length:], sums[:, :first], out=spans[:, :first])
        spans[:, :first] *= inverse[length - 1, :first]
        np.maximum(best[:, :first], spans[:, :first], out=best[:, :first])
    found: Float32 = np.maximum.reduceat(best, starts[:-1], axis=1)
    sizes = np.diff(starts)
    (short,) = np.nonzero(sizes < lengths.start)
    whole = sums[:, starts[short + 1]] - sums[:, starts[short]]
    found[:, short] = whole * inverse[sizes[short] - 1, starts[short]]
    return found


def _blocks(bounds: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield runs of passages of about `BLOCK_WORDS` words, so that what is formed stays small."""
    first = 0
    while first < len(bounds) - 1:
        last = int(np.searchsorted(bounds, bounds[first] + BLOCK_WORDS, side="right")) - 1
        last = max(last, first + 1)
        yield first, last
        first = last

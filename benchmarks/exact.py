"""The exact ranking: all spans and words of every passage against many queries at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from slice_os.spans import QueryWords, fit_window

Floats = npt.NDArray[np.float32]


def best_cosines(words: Floats, norms: Floats, queries: Floats, lengths: list[range]) -> Floats:
    """Return the best span's cosine with every query, float32 ``[queries]``.

    `words` is float32 ``[N, d]``, `norms` ``[20, N]``, `queries` ``[queries, d]`` of unit norm.
    """
    sums = np.zeros((len(words) + 1, len(queries)), np.float32)
    with threadpool_limits(1, "blas"):  # many small products: its threads would wait for each other
        products = words @ queries.T
    np.cumsum(products, axis=0, out=sums[1:])
    best = np.full(len(queries), -1, np.float32)
    windows = [fit_window(one, len(words)) for one in lengths]
    for length in range(1, min(20, len(words)) + 1):
        some = np.array([k for k, window in enumerate(windows) if length in window], dtype=int)
        if len(some):
            spans = sums[length:, some] - sums[: len(sums) - length, some]
            own = norms[length - 1, : len(spans), None]  # 0 of a span that is a neighbour's
            spans = np.where(own > 0, spans / np.maximum(own, 1e-9), -1)
            best[some] = np.maximum(best[some], spans.max(axis=0))
    return best


def said(passages: list[Floats], queries: list[QueryWords]) -> Floats:
    """Return the late interaction of passages and queries, float32 ``[passages, queries]``.

    `passages` are float32 ``[N, d]``, none of them empty.
    """
    words = np.concatenate(passages)
    words /= np.linalg.norm(words, axis=1, keepdims=True)
    starts = np.cumsum([0, *map(len, passages[:-1])])
    nearest = np.maximum.reduceat(words @ np.concatenate([q.vectors for q in queries]).T, starts)
    nearest *= np.concatenate([query.shares for query in queries])
    firsts = np.cumsum([0, *(len(query.shares) for query in queries[:-1])])
    found: Floats = np.add.reduceat(nearest, firsts, axis=1)
    return found

"""The principal axes of spans: a rotation after which the first dimensions matter most."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from slice_os.records import Float32
from slice_os.spans.enumeration import MAX_WORDS
from slice_os.spans.norms import prefix_sums


def principal_axes(passages: Iterable[Float32], seed: int = 0) -> Float32:
    """Return an orthogonal matrix A, float32 ``[d, d]``: the first columns of x A say most of x.

    The columns are the eigenvectors of the sum of u u^T, largest eigenvalue first, u the unit
    vectors of random spans, one that begins with each word (principal component analysis without
    centring: a cosine is about 0, not about the mean). Of all orthogonal matrices A is the one with
    which the first k columns keep most of these spans' energy, for each k.

    Args:
        passages: Word vectors, float32 ``[N, d]`` each.
        seed: Seed of the spans' lengths.

    Raises:
        ValueError: There are fewer words than dimensions.
    """
    rng = np.random.default_rng(seed)
    moment: np.ndarray[tuple[int, int], np.dtype[np.float64]] | None = None
    count = 0
    for words in passages:
        starts = np.arange(len(words))
        ends = np.minimum(starts + rng.integers(1, MAX_WORDS + 1, len(words)), len(words))
        sums = prefix_sums(words)
        spans = sums[ends] - sums[starts]
        spans /= np.maximum(np.linalg.norm(spans, axis=1, keepdims=True), 1e-9)
        moment = spans.T @ spans + (0 if moment is None else moment)
        count += len(words)
    if moment is None or count < len(moment):
        raise ValueError(f"{count} words are too few to say what their dimensions hold.")
    axes = np.linalg.eigh(moment)[1][:, ::-1]
    # An eigenvector has no sign: the largest component is made positive.
    signs = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(len(axes))])
    return np.ascontiguousarray(axes * signs, dtype=np.float32)

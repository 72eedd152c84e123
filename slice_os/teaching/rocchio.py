"""A query drawn towards what was liked and away from what was not.

Rocchio (1971), with the weights that Manning et al. (2008, section 9.1.1) recommend:

    q' = q + 0.75 mean(liked) - 0.15 mean(disliked),   at unit length
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slice_os.encoders import StandaloneVectors
from slice_os.types import Float32, Hit, Match

LIKED, DISLIKED = 0.75, 0.15
Liked = str | Hit | Match
"""A text, a match, or a hit: its best span."""


def turned(
    vector: Float32,
    *,
    standalone: StandaloneVectors,
    liked: Sequence[Liked],
    disliked: Sequence[Liked],
) -> Float32:
    """Return a query's unit vector ``[d]``, drawn to what was liked and from what was not."""
    moved = vector.astype(np.float64)
    for examples, share in ((liked, LIKED), (disliked, -DISLIKED)):
        texts = [text for example in examples if (text := _text(example)).strip()]
        if texts:
            moved = moved + share * standalone.encode(texts).mean(axis=0)
    norm = float(np.linalg.norm(moved))
    return vector if norm < 1e-6 else (moved / norm).astype(np.float32)


def _text(example: Liked) -> str:
    if isinstance(example, Hit):
        return example.spans[0].text if example.spans else example.text
    return example.text if isinstance(example, Match) else example

"""Verification: the best spans are encoded alone and compared with the query again."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from slice_os.spans.norms import Float64
from slice_os.spans.scores import degree
from slice_os.spans.selection import ScoredSpan, top_spans

SPANS = 8
"""Default number of spans verified per passage."""


def pick(
    cosines: npt.NDArray[Any],
    lengths: range,
    spans: int = SPANS,
    costs: npt.NDArray[Any] | float = 0.0,
) -> list[ScoredSpan]:
    """Return the spans of `cosines` ``[len(lengths), N]`` to verify: the `spans` best, best first.

    Overlapping ones stay: which words to leave out is what encoding alone decides. `costs` are
    those of `Phrasing`, if it is to count.

    Raises:
        ValueError: `cosines` has not one row a length, or `spans` is negative.
    """
    return top_spans(cosines, lengths, spans, costs=costs)


def verified_degrees(query: npt.NDArray[Any], alone: npt.NDArray[Any]) -> Float64:
    """Return the degrees, float64 ``[k]``, of a query ``[d]`` and vectors ``[k, d]``.

    The rows of `alone` are the spans' vectors, each from its own words only. Neither side needs
    unit length; a vector of norm 0 has degree 0.
    """
    unit, rows = query.astype(np.float64), alone.astype(np.float64)
    scales = np.linalg.norm(rows, axis=1) * np.linalg.norm(unit)
    cosines = np.full(len(rows), -np.inf)
    np.divide(rows @ unit, scales, out=cosines, where=scales > 0)
    degrees: Float64 = degree(cosines)
    return degrees

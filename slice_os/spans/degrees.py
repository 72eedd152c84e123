"""The degree that is shown: what a span's words say alone, raised by what they say in context.

With cosines c (the span in its context) and r (its words alone) and a query of n words:

    cos = r + share(n) max(0, offset(n) + (1 - offset(n)) c - r)

so that a span is never below what its words say alone, and of short queries, whose words mean much
in one context and little in another, the context decides nearly all above that. Words that are the
query's have 1. Where nothing was encoded alone, the phrase head's cosine h is taken for r. The four
numbers were chosen on development sets of four kinds, each left out in turn (docs/results.md).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

SHORT, LONG = 4, 7
"""Queries of up to SHORT words have the first of the values below, from LONG words on the second;
between them they change evenly."""
SHARE = (0.9, 0.5)
OFFSET = (0.2, 0.3)
MARGIN = 0.14
"""How far the cosine of a span's words alone is above that of the phrase head, of a query of four
words or more: with it mining finds more than 0.99 of all (`benchmarks/rescoring.py`)."""
MARGINS = (2.0, 1.5, 1.2, 1.0)
"""By what that is multiplied for queries of one to four words, whose spans have few words."""


class Weights(NamedTuple):
    """How much the context counts: `share` and `offset` of the formula above."""

    share: float
    offset: float

    @classmethod
    def of(cls, query_words: int) -> Weights:
        """Return the weights for a query of so many words."""
        between = (SHORT, LONG)
        return cls(
            float(np.interp(query_words, between, SHARE)),
            float(np.interp(query_words, between, OFFSET)),
        )

    def combine(self, in_context: npt.NDArray[Any], alone: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the cosines that are shown, of the shape and dtype of both; -inf stays -inf."""
        kind = alone.dtype.type
        lifted = kind(self.offset) + kind(1 - self.offset) * in_context
        # Not `alone + share * ...`: what is not there is -inf in both.
        raised = kind(1 - self.share) * alone + kind(self.share) * lifted
        shown: npt.NDArray[Any] = np.maximum(alone, raised)
        return shown


def margin(query_words: int, cosine: float) -> float:
    """Return how far below `cosine` the phrase head's may be of a span that is to be encoded."""
    wide = MARGINS[min(max(query_words, 1), len(MARGINS)) - 1]
    return wide * (MARGIN + max(0.0, 0.6 - cosine) / 2)

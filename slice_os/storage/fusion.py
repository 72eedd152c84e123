"""Fusing the dense and the lexical scores of a search: three ways, the same on every backend.

Both map a passage's reference to its score. `weight` is that of the lexical scores.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from slice_os.errors import QueryError

Ref = TypeVar("Ref", bound=Hashable)
Scores = Mapping[Ref, float]
Number = TypeVar("Number", float, npt.NDArray[np.float64])

LATE = 0.3
"""The share of late interaction in a dense score (`spans.late_interactions`), unless a search says
otherwise: chosen on SciFact, CISI and passages that say a sentence of STS-B dev."""
SATURATION_PIVOT = 10.0
"""The BM25 score that counts one half (k in s / (s + k))."""
RANK_CONSTANT = 60
"""Cormack, Clarke and Buettcher (2009), the customary constant of reciprocal rank fusion."""
LOWEST_NORMAL = 0.001
"""What OpenSearch's min_max normalisation gives the smallest score instead of 0."""


def saturated(dense: Number, lexical: Number, weight: float) -> Number:
    """Return (1 - weight) * d + weight * s / (s + 10), d the dense and s the BM25 score.

    Of one passage, or arrays ``[n]`` of many; a missing score is 0. The only fusion whose value
    means the same across queries: it is in [0, 1].
    """
    return (1 - weight) * dense + weight * lexical / (lexical + SATURATION_PIVOT)


def saturation(dense: Scores[Ref], lexical: Scores[Ref], weight: float) -> dict[Ref, float]:
    """Return the `saturated` score of each passage."""
    return {
        ref: saturated(dense.get(ref, 0.0), lexical.get(ref, 0.0), weight)
        for ref in {**dense, **lexical}
    }


def rrf(dense: Scores[Ref], lexical: Scores[Ref], weight: float | None) -> dict[Ref, float]:
    """Return the sum over both of share / (60 + rank), ranks from 1.

    The shares are 1 - weight and weight; without a weight both are 1, as OpenSearch has it.
    """
    shares = (1.0, 1.0) if weight is None else (1 - weight, weight)
    fused: dict[Ref, float] = {}
    for scores, share in zip((dense, lexical), shares, strict=True):
        ranked = sorted(scores, key=lambda ref: -scores[ref])
        for rank, ref in enumerate(ranked, start=1):
            fused[ref] = fused.get(ref, 0.0) + share / (RANK_CONSTANT + rank)
    return fused


def min_max(dense: Scores[Ref], lexical: Scores[Ref], weight: float) -> dict[Ref, float]:
    """Return the weighted mean of both, each scaled to [0, 1]; a missing score counts 0.

    As OpenSearch's normalization-processor does it: the smallest score becomes 0.001, a
    single one 1.
    """
    fused: dict[Ref, float] = {}
    for scores, share in ((dense, 1 - weight), (lexical, weight)):
        low, high = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
        for ref, score in scores.items():
            normal = 1.0 if high == low else (score - low) / (high - low) or LOWEST_NORMAL
            fused[ref] = fused.get(ref, 0.0) + share * normal
    return fused


@dataclass(frozen=True, slots=True)
class Fusion:
    """A way to fuse and the lexical weight that measured best for it."""

    fuse: Callable[..., dict[Any, float]]
    weight: float | None
    of_one: Callable[..., Any] | None = None
    """The score of a passage by its own two, if ranks do not matter: then every degree counts."""

    @property
    def whole_corpus(self) -> bool:
        """Whether every passage's degree counts, or only those of the dense results."""
        return self.of_one is not None


FUSIONS: Mapping[str, Fusion] = {
    "saturation": Fusion(saturation, 0.2, saturated),
    "min_max": Fusion(min_max, 0.5),
    "rrf": Fusion(rrf, None),
}
FusionName = Literal["saturation", "min_max", "rrf"]
DEFAULT_FUSION: FusionName = "saturation"


def get_fusion(name: str, weight: float | None) -> tuple[Fusion, float | None]:
    """Return the fusion called `name` and the weight to use with it, or raise QueryError."""
    fusion = FUSIONS.get(name)
    if fusion is None:
        raise QueryError(f"There is no fusion {name!r}: choose one of {', '.join(FUSIONS)}.")
    chosen = fusion.weight if weight is None else weight
    if chosen is not None and not 0 <= chosen <= 1:
        raise QueryError(f"The weight of the lexical scores is {weight}: it must be from 0 to 1.")
    return fusion, chosen

"""Search pipelines for the hybrid query: the body of ``PUT _search/pipeline/NAME``.

The clauses of `hybrid_query` come in the order lexical, dense, and so do the weights.
"""

from __future__ import annotations

from typing import Literal, get_args

from slice_os.errors import QueryError
from slice_os.storage.cluster.query.bodies import Body
from slice_os.storage.fusion import RANK_CONSTANT

Technique = Literal["min_max", "l2", "z_score"]


def normalization_pipeline(weight: float = 0.5, technique: Technique = "min_max") -> Body:
    """Return the weighted mean of the two scores, each normalised; `weight` is the lexical share.

    ``min_max`` is what slice-os computes itself where there is no such plugin.

    Raises:
        QueryError: a weight not in [0, 1], or an unknown technique.
    """
    if technique not in get_args(Technique):
        choice = ", ".join(get_args(Technique))
        raise QueryError(f"There is no normalisation {technique!r}: choose one of {choice}.")
    processor = {
        "normalization": {"technique": technique},
        "combination": {
            "technique": "arithmetic_mean",
            "parameters": {"weights": _weights(weight)},
        },
    }
    return {"phase_results_processors": [{"normalization-processor": processor}]}


def rrf_pipeline(rank_constant: int = RANK_CONSTANT, weight: float | None = None) -> Body:
    """Return reciprocal rank fusion; `weight` is the lexical share, None for 1 on both sides.

    Raises:
        QueryError: a rank constant below 1, or a weight not in [0, 1].
    """
    if rank_constant < 1:
        raise QueryError(f"The rank constant is {rank_constant}: it must be at least 1.")
    combination: Body = {"technique": "rrf", "rank_constant": rank_constant}
    if weight is not None:
        combination["parameters"] = {"weights": _weights(weight)}
    return {"phase_results_processors": [{"score-ranker-processor": {"combination": combination}}]}


def _weights(weight: float) -> list[float]:
    if not 0 <= weight <= 1:
        raise QueryError(f"The weight of the words is {weight}: it must be from 0 to 1.")
    # As floats: the plugin answers a whole number with "Integer cannot be cast to Double".
    return [float(weight), round(1.0 - weight, 12)]

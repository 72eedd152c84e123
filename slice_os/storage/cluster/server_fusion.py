"""Fusing that the cluster does itself: a script, search pipelines, and retrievers.

The clauses that are fused come in the order lexical, dense, and so do their weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slice_os.errors import QueryError
from slice_os.storage.fusion import RANK_CONSTANT, SATURATION_PIVOT

Body = dict[str, Any]
LEXICAL = "lexical"
"""The name of the match. The k-NN clause has none: the cluster would run it again for its score."""


def normalization_pipeline(weight: float = 0.5) -> Body:
    """Return the body of ``PUT _search/pipeline/NAME`` for the fusion ``min_max``.

    It takes the weighted mean of the two scores, each normalised; `weight` is the lexical share.
    It is what slice-os computes itself where there is no such plugin.

    Raises:
        QueryError: a weight not in [0, 1].
    """
    parameters = {"weights": _weights(weight)}
    processor = {
        "normalization": {"technique": "min_max"},
        "combination": {"technique": "arithmetic_mean", "parameters": parameters},
    }
    return {"phase_results_processors": [{"normalization-processor": processor}]}


def rrf_pipeline(rank_constant: int = RANK_CONSTANT, weight: float | None = None) -> Body:
    """Return the body of ``PUT _search/pipeline/NAME`` for the fusion ``rrf``.

    `weight` is the lexical share, None for 1 on both sides.

    Raises:
        QueryError: a rank constant below 1, or a weight not in [0, 1].
    """
    if rank_constant < 1:
        raise QueryError(f"The rank constant is {rank_constant}: it must be at least 1.")
    combination: Body = {"technique": "rrf", "rank_constant": rank_constant}
    if weight is not None:
        combination["parameters"] = {"weights": _weights(weight)}
    return {"phase_results_processors": [{"score-ranker-processor": {"combination": combination}}]}


def saturation(
    match: Body, named: Body, near: Body, filters: Sequence[Body], weight: float, floor: float
) -> Body:
    """Return the query that fuses a match, plain and by its name, and a k-NN clause by a script."""
    script = {
        "source": "params.weight * saturation(_score, params.pivot)",
        "params": {"weight": weight, "pivot": SATURATION_PIVOT},
    }
    from_words = {"script_score": {"query": named, "script": script}}
    at_least = {"constant_score": {"filter": match, "boost": floor}}
    from_meaning = {"dis_max": {"queries": [near, at_least], "boost": round(1 - weight, 12)}}
    query: Body = {"should": [from_words, from_meaning], "minimum_should_match": 1}
    if filters:
        query["filter"] = list(filters)
    return {"bool": query}


def retriever(queries: Sequence[Body], fusion: str, weight: float | None, window: int) -> Body:
    """Return Elasticsearch's retriever that fuses the first `window` ranks of two queries."""
    standard = [{"standard": {"query": query}} for query in queries]
    if fusion == "rrf":
        parts: list[Body] = standard
        if weight is not None:  # older versions know no weights
            pairs = zip(standard, _weights(weight), strict=True)
            parts = [{"retriever": part, "weight": share} for part, share in pairs]
        body = {"retrievers": parts, "rank_constant": RANK_CONSTANT, "rank_window_size": window}
        return {"rrf": body}
    parts = [
        {"retriever": part, "weight": share, "normalizer": "minmax"}
        for part, share in zip(standard, _weights(0.5 if weight is None else weight), strict=True)
    ]
    return {"linear": {"retrievers": parts, "rank_window_size": window}}


def _weights(weight: float) -> list[float]:
    if not 0 <= weight <= 1:
        raise QueryError(f"The weight of the words is {weight}: it must be from 0 to 1.")
    # As floats: the plugin answers a whole number with "Integer cannot be cast to Double".
    return [float(weight), round(1.0 - weight, 12)]

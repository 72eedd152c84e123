"""Retrievers of Elasticsearch that fuse two queries. They need a licence."""

from __future__ import annotations

from collections.abc import Sequence

from slice_os.fusion import RANK_CONSTANT
from slice_os.query.clauses import Body


def fused_retriever(
    queries: Sequence[Body], fusion: str, weight: float | None, window: int
) -> Body:
    """Return the retriever that fuses the first `window` ranks of a lexical and a dense query.

    ``rrf`` has weights only where one is given, as older versions know none; ``min_max`` is the
    retriever ``linear``.
    """
    standard = [{"standard": {"query": query}} for query in queries]
    shares = None if weight is None else (float(weight), round(1 - weight, 12))
    if fusion == "rrf":
        parts: list[Body] = standard
        if shares is not None:
            pairs = zip(standard, shares, strict=True)
            parts = [{"retriever": one, "weight": share} for one, share in pairs]
        body = {"retrievers": parts, "rank_constant": RANK_CONSTANT, "rank_window_size": window}
        return {"rrf": body}
    parts = [
        {"retriever": one, "weight": share, "normalizer": "minmax"}
        for one, share in zip(standard, shares or (0.5, 0.5), strict=True)
    ]
    return {"linear": {"retrievers": parts, "rank_window_size": window}}

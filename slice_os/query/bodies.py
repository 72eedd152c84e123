"""The bodies of searches. Each is a plain dict, to be sent as it is to ``_search``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy.typing as npt

from slice_os.errors import QueryError
from slice_os.filters import Condition
from slice_os.fusion import DEFAULT_FUSION, SATURATION_PIVOT, get_fusion
from slice_os.query.clauses import SOURCE, VECTOR, Body, dense_clause, lexical_clause, nested, page
from slice_os.query.filtering import filter_clauses
from slice_os.query.vectors import VectorType, query_value

NEAREST = 100
"""Passages of each shard that a k-NN query finds at least: Lucene searches its graph as wide as
k, so that a smaller k is less exact."""
PAGINATION_DEPTH = 100
"""Ranks of each query that a hybrid query fuses: as many as the k-NN query finds. Each costs time,
since every shard fetches all that it ranks (docs/query.md)."""
LEXICAL = "lexical"
"""The name of the match. The k-NN clause has none: the cluster would run it again for its score."""
_SCRIPT = "params.weight * saturation(_score, params.pivot)"
# Not the script "knn_score": of byte vectors it returns 1 + cos (OpenSearch 3.6.0).
_DEGREE = "Math.max(0, (1 + cosineSimilarity(params.query_value, doc[params.field])) / 2)"


def span_query(
    vector: npt.ArrayLike,
    *,
    size: int = 10,
    offset: int = 0,
    k: int | None = None,
    filters: Sequence[Condition] = (),
    spans: int = 1,
    vector_type: VectorType = "byte",
    dimensions: int | None = None,
    source: Sequence[str] = SOURCE,
) -> Body:
    """Return the search for the passages whose best span is nearest; scores are degrees.

    `k` counts the passages of each shard (by default ``max(offset + size, 100)``); `spans` is how
    many spans a hit shows: more than the best one take the cluster several times as long, as all
    spans of the k passages are then compared. `vector_type` and `dimensions` are the index's.

    Raises:
        QueryError: a setting is out of its range, or the vector is zero.
    """
    body = page(size, source, offset)
    nearest = _nearest(k, offset + size)
    knn = {"vector": query_value(vector, vector_type, dimensions), "k": nearest}
    return {**body, "query": dense_clause(knn, filter_clauses(filters), spans, expand=True)}


def lexical_query(
    text: str,
    *,
    size: int = 10,
    offset: int = 0,
    filters: Sequence[Condition] = (),
    source: Sequence[str] = SOURCE,
) -> Body:
    """Return the BM25 search on text and title.

    Raises:
        QueryError: the query is empty, or a setting is out of its range.
    """
    return {
        **page(size, source, offset),
        "query": lexical_clause(text, filter_clauses(filters)),
    }


def hybrid_query(
    text: str,
    vector: npt.ArrayLike,
    *,
    fusion: str = DEFAULT_FUSION,
    weight: float | None = None,
    size: int = 10,
    offset: int = 0,
    k: int = NEAREST,
    filters: Sequence[Condition] = (),
    spans: int = 1,
    pagination_depth: int = PAGINATION_DEPTH,
    floor: float = 0.5,
    vector_type: VectorType = "byte",
    dimensions: int | None = None,
    source: Sequence[str] = SOURCE,
) -> Body:
    """Return the search for words and meaning at once; `weight` is the share of the words.

    With ``saturation`` the score is ``(1 - weight) * degree + weight * s / (s + 10)``, s the BM25
    score, and k-NN is the only plugin needed. A passage that the text matches but that is not
    among the `k` nearest has a degree which the cluster does not compute: it counts as `floor`,
    not as 0, so that it stays among the candidates whose true degree slice-os computes
    afterwards. Sent with ``include_named_queries_score=true``, the BM25 score comes back under
    the name ``lexical``; the degree is that of the best inner hit.

    ``rrf`` and ``min_max`` need the neural-search plugin and a pipeline of this module
    (``_search?search_pipeline=NAME``), which also holds their weight. The body must be sent as it
    is: a hybrid query within another is not normalised. Keep `pagination_depth` and
    `k` the same from page to page.

    Raises:
        QueryError: no such fusion, an empty query, or a setting out of its range.
    """
    chosen = get_fusion(fusion, weight)[1]
    body = page(size, source, offset)
    clauses = filter_clauses(filters)
    value = query_value(vector, vector_type, dimensions)
    knn = {"vector": value, "k": _nearest(k, 1)}
    if fusion == "saturation":
        if chosen is None or not 0 <= floor <= 1:
            raise QueryError(f"The floor is {floor}: it must be from 0 to 1.")
        return {**body, "query": _saturation(text, knn, clauses, spans, chosen, floor)}
    if pagination_depth < offset + size:
        raise QueryError(
            f"The pagination depth is {pagination_depth}: it must reach offset + size, "
            f"{offset + size}, and stay the same from page to page."
        )
    queries = [lexical_clause(text, clauses), dense_clause(knn, clauses, spans, expand=True)]
    hybrid = {"pagination_depth": pagination_depth, "queries": queries}
    return {**body, "query": {"hybrid": hybrid}}


def exact_query(
    vector: npt.ArrayLike,
    *,
    size: int = 10,
    filters: Sequence[Condition] = (),
    spans: int = 1,
    vector_type: VectorType = "byte",
    dimensions: int | None = None,
    source: Sequence[str] = SOURCE,
) -> Body:
    """Return the search of every stored span, without a graph; scores are degrees.

    It reads all span vectors that the filters leave: for small indices, narrow filters and tests.

    Raises:
        QueryError: a setting is out of its range, or the vector is zero.
    """
    value = query_value(vector, vector_type, dimensions)
    script = {"source": _DEGREE, "params": {"field": VECTOR, "query_value": value}}
    query = nested({"script_score": {"query": {"match_all": {}}, "script": script}}, spans)
    if filters:
        query = {"bool": {"must": [query], "filter": filter_clauses(filters)}}
    return {**page(size, source), "query": query}


def _saturation(
    text: str, knn: Body, filters: Sequence[Body], spans: int, weight: float, floor: float
) -> Body:
    from_words = {
        "script_score": {
            "query": lexical_clause(text, (), LEXICAL),
            "script": {
                "source": _SCRIPT,
                "params": {"weight": weight, "pivot": SATURATION_PIVOT},
            },
        }
    }
    at_least = {"constant_score": {"filter": lexical_clause(text, ()), "boost": floor}}
    from_meaning = {
        "dis_max": {
            "queries": [dense_clause(knn, filters, spans, expand=True), at_least],
            "boost": round(1 - weight, 12),
        }
    }
    query: Body = {"should": [from_words, from_meaning], "minimum_should_match": 1}
    if filters:
        query["filter"] = list(filters)
    return {"bool": query}


def _nearest(k: int | None, wanted: int) -> int:
    nearest = max(wanted, NEAREST) if k is None else k
    if nearest < 1:
        raise QueryError(f"k is {k}: it must be at least 1.")
    return nearest

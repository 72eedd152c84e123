"""The bodies of searches. Each is a plain dict, to be sent as it is to ``_search``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy.typing as npt

from slice_os.errors import QueryError
from slice_os.filters import Condition
from slice_os.fusion import DEFAULT_FUSION, SATURATION_PIVOT, get_fusion
from slice_os.query.clauses import (
    SOURCE,
    VECTOR,
    Body,
    Dialect,
    dense_clause,
    lexical_clause,
    nested,
    page,
)
from slice_os.query.filtering import filter_clauses
from slice_os.query.retrievers import fused_retriever
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
_DEGREE = "Math.max(0, (1 + cosineSimilarity(params.query_value, {})) / 2)"
_FIELD: dict[Dialect, str] = {"opensearch": "doc[params.field]", "elasticsearch": "params.field"}


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
    dialect: Dialect = "opensearch",
) -> Body:
    """Return the search for the passages whose best span is nearest; scores are degrees.

    `k` counts the passages of each shard (by default ``max(offset + size, 100)``); `spans` is how
    many spans a hit shows: more than the best one take the cluster several times as long, as all
    spans of the k passages are then compared. `vector_type` and `dimensions` are the index's.

    Raises:
        QueryError: a setting is out of its range, or the vector is zero.
    """
    body = page(size, source, offset)
    nearest, value = _nearest(k, offset + size), query_value(vector, vector_type, dimensions)
    clauses = filter_clauses(filters)
    return {**body, "query": dense_clause(value, clauses, spans, k=nearest, dialect=dialect)}


def lexical_query(
    text: str,
    *,
    size: int = 10,
    offset: int = 0,
    filters: Sequence[Condition] = (),
    source: Sequence[str] = SOURCE,
    dialect: Dialect = "opensearch",
) -> Body:
    """Return the BM25 search on text and title.

    Raises:
        QueryError: the query is empty, or a setting is out of its range.
    """
    return {
        **page(size, source, offset),
        "query": lexical_clause(text, filter_clauses(filters), dialect=dialect),
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
    dialect: Dialect = "opensearch",
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

    In Elasticsearch ``rrf`` and ``min_max`` are a ``retriever``, which needs a licence;
    ``saturation`` is `hybrid_queries`, which needs none.

    Raises:
        QueryError: no such fusion, an empty query, or a setting out of its range.
    """
    chosen = get_fusion(fusion, weight)[1]
    body = page(size, source, offset)
    clauses = filter_clauses(filters)
    value = query_value(vector, vector_type, dimensions)
    near = dense_clause(value, clauses, spans, k=_nearest(k, 1), dialect=dialect)
    if fusion == "saturation":
        if chosen is None or not 0 <= floor <= 1:
            raise QueryError(f"The floor is {floor}: it must be from 0 to 1.")
        if dialect == "elasticsearch":
            raise QueryError(
                "Elasticsearch cannot fuse by saturation without a script: send hybrid_queries in "
                "one _msearch, and read_fused reads its answers."
            )
        return {**body, "query": _saturation(text, near, clauses, chosen, floor)}
    if pagination_depth < offset + size:
        raise QueryError(
            f"The pagination depth is {pagination_depth}: it must reach offset + size, "
            f"{offset + size}, and stay the same from page to page."
        )
    queries = [lexical_clause(text, clauses, dialect=dialect), near]
    if dialect == "elasticsearch":
        return {**body, "retriever": fused_retriever(queries, fusion, chosen, pagination_depth)}
    hybrid = {"pagination_depth": pagination_depth, "queries": queries}
    return {**body, "query": {"hybrid": hybrid}}


def hybrid_queries(
    text: str,
    vector: npt.ArrayLike,
    *,
    size: int = 100,
    k: int = NEAREST,
    found: int | None = None,
    filters: Sequence[Condition] = (),
    spans: int = 1,
    vector_type: VectorType = "byte",
    dimensions: int | None = None,
    source: Sequence[str] = SOURCE,
    dialect: Dialect = "opensearch",
) -> list[Body]:
    """Return two searches for one ``_msearch``, for words and for meaning: `read_fused` fuses them.

    The first finds the `size` passages with the best BM25 scores; the second the `k` nearest of
    each shard (of all shards the best `found`, by default `k`), scored by their degree: sent with
    ``include_named_queries_score=true``, their BM25 scores come back under the name ``lexical``.

    Raises:
        QueryError: an empty query, or a setting out of its range.
    """
    words = lexical_query(text, size=size, filters=filters, source=source, dialect=dialect)
    value, nearest = query_value(vector, vector_type, dimensions), _nearest(k, 1)
    near = dense_clause(value, filter_clauses(filters), spans, k=nearest, dialect=dialect)
    named = {"bool": {"must": [lexical_clause(text, (), LEXICAL, dialect)], "boost": 0}}
    meaning = {
        **page(nearest if found is None else found, source),
        "query": {"bool": {"must": [near], "should": [named]}},
    }
    return [words, meaning]


def exact_query(
    vector: npt.ArrayLike,
    *,
    size: int = 10,
    filters: Sequence[Condition] = (),
    spans: int = 1,
    vector_type: VectorType = "byte",
    dimensions: int | None = None,
    source: Sequence[str] = SOURCE,
    dialect: Dialect = "opensearch",
) -> Body:
    """Return the search of every stored span, without a graph; scores are degrees.

    It reads all span vectors that the filters leave: for small indices, narrow filters and tests.

    Raises:
        QueryError: a setting is out of its range, or the vector is zero.
    """
    value = query_value(vector, vector_type, dimensions)
    source_code = _DEGREE.format(_FIELD[dialect])
    script = {"source": source_code, "params": {"field": VECTOR, "query_value": value}}
    query = nested({"script_score": {"query": {"match_all": {}}, "script": script}}, spans)
    if filters:
        query = {"bool": {"must": [query], "filter": filter_clauses(filters)}}
    return {**page(size, source), "query": query}


def _saturation(
    text: str, near: Body, filters: Sequence[Body], weight: float, floor: float
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
            "queries": [near, at_least],
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

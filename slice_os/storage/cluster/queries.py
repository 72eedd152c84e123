"""The bodies of searches, each a plain dict to be sent as it is to ``_search``, for any client.

Pure functions: nothing here opens a connection. docs/query.md shows what each returns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy.typing as npt

from slice_os.errors import QueryError
from slice_os.storage.cluster.server_fusion import LEXICAL, Body, retriever, saturation
from slice_os.storage.cluster.vectors import MARGINS, VectorType, query_value, radius
from slice_os.storage.filters import filter_clauses
from slice_os.storage.fusion import DEFAULT_FUSION, get_fusion
from slice_os.text.filters import Condition

Dialect = Literal["opensearch", "elasticsearch"]
SPANS, VECTOR, TEXT = "spans", "spans.vector", "text"
SOURCE = ("document", "passage", "title", "text", "metadata", "start", "end")
"""What a hit needs of a stored passage; not its vectors, words, hashes and tokens."""
MOST_SHOWN = 100
"""index.max_inner_result_window, by default."""
BM25_BOOST: dict[Dialect, float] = {"opensearch": 1.0, "elasticsearch": 0.45454545}
"""Elasticsearch multiplies BM25 scores by k1 + 1, which is 2.2; Lucene and OpenSearch 3 do not."""
MOST_NEAREST = 10_000
"""num_candidates of Elasticsearch, at most."""
NEAREST = 100
"""Passages of each shard that a k-NN query finds at least: Lucene searches its graph as wide as
k, so that a smaller k is less exact."""
PAGINATION_DEPTH = 100
"""Ranks of each query that a hybrid query fuses: as many as the k-NN query finds. Each costs time,
since every shard fetches all that it ranks (docs/query.md)."""
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
    body = _page(size, source, offset)
    nearest, value = _nearest(k, offset + size), query_value(vector, vector_type, dimensions)
    clauses = filter_clauses(filters)
    return {**body, "query": _dense_clause(value, clauses, spans, k=nearest, dialect=dialect)}


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
    query = _lexical_clause(text, filter_clauses(filters), dialect=dialect)
    return {**_page(size, source, offset), "query": query}


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
    share = get_fusion(fusion, weight)[1]
    body, clauses = _page(size, source, offset), filter_clauses(filters)
    value = query_value(vector, vector_type, dimensions)
    near = _dense_clause(value, clauses, spans, k=_nearest(k, 1), dialect=dialect)
    if fusion == "saturation":
        if share is None or not 0 <= floor <= 1:
            raise QueryError(f"The floor is {floor}: it must be from 0 to 1.")
        if dialect == "elasticsearch":
            raise QueryError(
                "Elasticsearch cannot fuse by saturation without a script: send hybrid_queries in "
                "one _msearch, and read_fused reads its answers."
            )
        match, named = _lexical_clause(text, ()), _lexical_clause(text, (), LEXICAL)
        return {**body, "query": saturation(match, named, near, clauses, share, floor)}
    if pagination_depth < offset + size:
        raise QueryError(
            f"The pagination depth is {pagination_depth}: it must reach offset + size, "
            f"{offset + size}, and stay the same from page to page."
        )
    queries = [_lexical_clause(text, clauses, dialect=dialect), near]
    if dialect == "elasticsearch":
        return {**body, "retriever": retriever(queries, fusion, share, pagination_depth)}
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
    near = _dense_clause(value, filter_clauses(filters), spans, k=nearest, dialect=dialect)
    named = {"bool": {"must": [_lexical_clause(text, (), LEXICAL, dialect)], "boost": 0}}
    meaning = {
        **_page(nearest if found is None else found, source),
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
    code = _DEGREE.format(_FIELD[dialect])
    script = {"source": code, "params": {"field": VECTOR, "query_value": value}}
    query = _nested({"script_score": {"query": {"match_all": {}}, "script": script}}, spans)
    if filters:
        query = {"bool": {"must": [query], "filter": filter_clauses(filters)}}
    return {**_page(size, source), "query": query}


def mining_query(
    vector: npt.ArrayLike,
    degree: float,
    *,
    tolerance: float,
    size: int = 1000,
    after: Sequence[object] = (),
    filters: Sequence[Condition] = (),
    spans: int = 0,
    margin: float | None = None,
    vector_type: VectorType = "byte",
    dimensions: int | None = None,
    source: Sequence[str] = SOURCE,
    nearest: int = MOST_NEAREST,
    dialect: Dialect = "opensearch",
) -> Body:
    """Return the search for every passage that may hold a span of at least `degree`.

    `tolerance` is that of the stored spans: the search is as much wider, and what it finds has
    to be scored exactly over all spans. Passages whose own (the field `tolerance`) is lower come
    in any case. `margin` (by default 0.003 for bytes, 1e-6 for floats)
    makes room for the rounding of the vectors. With fewer `dimensions` than the encoder has,
    degrees differ by far more than a margin, and matches are missed.

    Passages come by document and passage: `after` takes the ``sort`` of the last hit of the page
    before. If the widened angle reaches all directions, every passage (within `filters`) comes.

    Elasticsearch looks at the `nearest` passages of each shard, at most 10,000: if all pages hold
    as many as that, more may qualify.

    Raises:
        QueryError: a setting is out of its range, or the vector is zero.
    """
    value = query_value(vector, vector_type, dimensions)
    least = radius(degree, tolerance, MARGINS[vector_type] if margin is None else margin)
    clauses = filter_clauses(filters)
    parts: Body = {"filter": clauses} if clauses else {}
    if least > 0:
        near = _dense_clause(value, clauses, spans, k=nearest, least=least, dialect=dialect)
        # Between two steps of the tolerance: the cluster's numbers have 24 bits.
        coarser = {"range": {"tolerance": {"lt": tolerance - 0.001}}}
        parts |= {
            "should": [near, {"constant_score": {"filter": coarser}}],
            "minimum_should_match": 1,
        }
    body = {**_page(size, source), "query": {"bool": parts} if parts else {"match_all": {}}}
    body["sort"] = [{"document": "asc"}, {"passage": "asc"}]
    if after:
        body["search_after"] = list(after)
    return body


def _lexical_clause(
    text: str,
    filters: Sequence[Body],
    name: str | None = None,
    dialect: Dialect = "opensearch",
) -> Body:
    """Return the BM25 match on the text (and title), within the filters; the same score in both."""
    if not text.strip():
        raise QueryError("The query is empty: give at least one word.")
    options: Body = {"_name": name} if name else {}
    if (boost := BM25_BOOST[dialect]) != 1:
        options["boost"] = boost
    match: Body = {"match": {TEXT: {"query": text, **options} if options else text}}
    return {"bool": {"must": [match], "filter": list(filters)}} if filters else match


def _dense_clause(
    value: Sequence[float],
    filters: Sequence[Body],
    spans: int,
    *,
    k: int,
    least: float | None = None,
    dialect: Dialect = "opensearch",
) -> Body:
    """Return the nested k-NN clause: a passage counts as its best span does.

    It finds the `k` nearest passages of each shard. With `least`, a degree, those that reach it: in
    OpenSearch all of them, in Elasticsearch of the `k` nearest. Without, the inner hits are chosen
    from all spans of the k passages; a plain k-NN query of OpenSearch knows the best one only.
    """
    within = {"bool": {"filter": list(filters)}} if len(filters) > 1 else next(iter(filters), None)
    if dialect == "elasticsearch":
        if k > MOST_NEAREST:
            raise QueryError(f"k is {k}: Elasticsearch looks at the {MOST_NEAREST:,} nearest.")
        knn = {"field": VECTOR, "query_vector": value, "k": k, "num_candidates": k}
        if least is not None:
            knn["similarity"] = 2 * least - 1  # the cosine
        if within:
            knn["filter"] = within
        return _nested({"knn": knn}, spans)
    clause: Body = {"vector": value}
    clause |= {"k": k} if least is None else {"min_score": least}
    if within:
        clause["filter"] = within
    if least is None and spans > 1:
        clause["expand_nested_docs"] = True
    return _nested({"knn": {VECTOR: clause}}, spans)


def _nested(query: Body, spans: int) -> Body:
    """Return a query on the spans whose best one is the passage's score, showing `spans`."""
    if not 0 <= spans <= MOST_SHOWN:
        raise QueryError(f"spans is {spans}: it must be from 0 to {MOST_SHOWN}.")
    clause: Body = {"path": SPANS, "score_mode": "max", "query": query}
    if spans:
        clause["inner_hits"] = {
            "size": spans,
            "_source": False,
            "docvalue_fields": [f"{SPANS}.start", f"{SPANS}.end"],
        }
    return {"nested": clause}


def _page(size: int, source: Sequence[str], offset: int = 0) -> Body:
    """Return the part of a body that says how many hits are wanted, and which fields of them."""
    if size < 1 or offset < 0:
        raise QueryError("size must be at least 1, offset at least 0.")
    body: Body = {"size": size, "_source": list(source) or False}
    if offset:
        body["from"] = offset
    return body


def _nearest(k: int | None, wanted: int) -> int:
    nearest = max(wanted, NEAREST) if k is None else k
    if nearest < 1:
        raise QueryError(f"k is {k}: it must be at least 1.")
    return nearest

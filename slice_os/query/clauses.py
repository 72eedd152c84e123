"""The two clauses that every body is made of: the match on the text, the nested k-NN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from slice_os.errors import QueryError

Dialect = Literal["opensearch", "elasticsearch"]
SPANS = "spans"
VECTOR = "spans.vector"
TEXT = "text"
SOURCE = ("document", "passage", "title", "text", "metadata", "start", "end")
"""What a hit needs of a stored passage; not its vectors, words, hashes and tokens."""
MOST_SPANS = 100
"""index.max_inner_result_window, as OpenSearch has it unless told."""

BM25_BOOST: dict[Dialect, float] = {"opensearch": 1.0, "elasticsearch": 0.45454545}
"""Elasticsearch multiplies BM25 scores by k1 + 1, which is 2.2; Lucene and OpenSearch 3 do not."""
MOST_NEAREST = 10_000
"""num_candidates of Elasticsearch, at most."""

Body = dict[str, Any]


def page(size: int, source: Sequence[str], offset: int = 0) -> Body:
    """Return the part of a body that says how much is wanted and of what."""
    if size < 1 or offset < 0:
        raise QueryError("size must be at least 1, offset at least 0.")
    body: Body = {"size": size, "_source": list(source) or False}
    if offset:
        body["from"] = offset
    return body


def lexical_clause(
    text: str,
    filters: Sequence[Body],
    name: str | None = None,
    dialect: Dialect = "opensearch",
) -> Body:
    """Return the BM25 match on the text (and title), within the filters; the same score in both."""
    if not text.strip():
        raise QueryError("The query is empty: give at least one word.")
    how: Body = {"_name": name} if name else {}
    if (boost := BM25_BOOST[dialect]) != 1:
        how["boost"] = boost
    match: Body = {"match": {TEXT: {"query": text, **how} if how else text}}
    return {"bool": {"must": [match], "filter": list(filters)}} if filters else match


def dense_clause(
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
    if dialect == "elasticsearch":
        if k > MOST_NEAREST:
            raise QueryError(f"k is {k}: Elasticsearch looks at the {MOST_NEAREST:,} nearest.")
        knn = {"field": VECTOR, "query_vector": value, "k": k, "num_candidates": k}
        if least is not None:
            knn["similarity"] = 2 * least - 1  # the cosine
        if filters:
            knn["filter"] = joined(filters)
        return nested({"knn": knn}, spans)
    clause: Body = {"vector": value}
    clause |= {"k": k} if least is None else {"min_score": least}
    if filters:
        clause["filter"] = joined(filters)
    if least is None and spans > 1:
        clause["expand_nested_docs"] = True
    return nested({"knn": {VECTOR: clause}}, spans)


def nested(query: Body, spans: int) -> Body:
    """Return a query on the spans whose best one is the passage's score, showing `spans`."""
    if not 0 <= spans <= MOST_SPANS:
        raise QueryError(f"spans is {spans}: it must be from 0 to {MOST_SPANS}.")
    clause: Body = {"path": SPANS, "score_mode": "max", "query": query}
    if spans:
        clause["inner_hits"] = {
            "size": spans,
            "_source": False,
            "docvalue_fields": [f"{SPANS}.start", f"{SPANS}.end"],
        }
    return {"nested": clause}


def joined(filters: Sequence[Body]) -> Body:
    """Return one clause that holds where all the filters do."""
    if not filters:
        return {"match_all": {}}
    return filters[0] if len(filters) == 1 else {"bool": {"filter": list(filters)}}

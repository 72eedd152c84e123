"""Mining: every passage that may hold a span above the threshold, by a widened radial search."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy.typing as npt

from slice_os.errors import QueryError
from slice_os.storage.cluster.query.bodies import (
    MOST_NEAREST,
    SOURCE,
    Body,
    Dialect,
    dense_clause,
    joined,
    page,
)
from slice_os.storage.cluster.query.filters import filter_clauses
from slice_os.storage.cluster.query.vectors import VectorType, query_value
from slice_os.text.filters import Condition

MARGINS: Mapping[VectorType, float] = {"byte": 0.003, "float": 1e-6}
"""How much lower a stored degree may be because both vectors were rounded."""


def radius(degree: float, tolerance: float, margin: float = 0.0) -> float:
    """Return the least stored degree of a passage that may hold a span of the given degree.

    A span at the angle t from the query has a stored one within t + arccos(tolerance), as angles
    obey the triangle inequality. 0.0 means that any passage may.

    Raises:
        QueryError: degree or margin not in [0, 1], or tolerance not in (0, 1].
    """
    if not 0 <= degree <= 1 or not 0 < tolerance <= 1 or not 0 <= margin <= 1:
        raise QueryError(
            f"degree {degree} and margin {margin} must be from 0 to 1, tolerance {tolerance} "
            "above 0 and at most 1."
        )
    angle = math.acos(2 * degree - 1) + math.acos(tolerance)
    return max(0.0, (1 + math.cos(angle)) / 2 - margin) if angle < math.pi else 0.0


def coarser(tolerance: float) -> Body:
    """Return the clause of the passages whose stored spans keep a lower tolerance than this."""
    # Between two steps of it: the cluster's numbers have 24 bits.
    return {"constant_score": {"filter": {"range": {"tolerance": {"lt": tolerance - 0.001}}}}}


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
        near = dense_clause(value, clauses, spans, k=nearest, least=least, dialect=dialect)
        parts |= {"should": [near, coarser(tolerance)], "minimum_should_match": 1}
    query = {"bool": parts} if parts else joined(())
    body = {**page(size, source), "query": query}
    body["sort"] = [{"document": "asc"}, {"passage": "asc"}]
    if after:
        body["search_after"] = list(after)
    return body

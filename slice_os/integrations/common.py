"""What the retrievers share: the metadata of a hit, and filters as trees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

from slice_os.errors import QueryError
from slice_os.text.filters import OPERATORS, Filter, compare, either
from slice_os.types import Hit

MOST_CLAUSES = 1_000
"""A tree of filters that takes more conditions is refused."""
NEGATED = {"=": "!=", "!=": "=", ">=": "<", "<": ">=", "<=": ">", ">": "<="}
Clauses = list[list[Filter]]
"""Filters of which each list has to have one that holds."""


def passage_metadata(hit: Hit) -> dict[str, Any]:
    """Return the metadata of a hit's document, and where the passage and its spans are.

    `start` and `end` are the passage's characters in the document; those of `spans`, which stand
    best first, are characters of the passage.
    """
    spans = [
        {"start": span.start, "end": span.end, "text": span.text, "degree": span.degree}
        for span in hit.spans
    ]
    return {
        **hit.metadata,
        "document": hit.document,
        "passage": hit.passage,
        "title": hit.title,
        "start": hit.document_start,
        "end": hit.document_end,
        "degree": hit.degree,
        "spans": spans,
    }


def leaf(field: str, operator: str, value: Any, *, negated: bool = False) -> Clauses:
    """Return a comparison of a field, or of any (`in`) or none (`not in`) of some values."""
    if value is None:
        raise QueryError(f"The filter on {field!r} is None, which is no value: leave it out.")
    if operator in ("in", "not in"):
        values = list(value) if isinstance(value, list | tuple | set) else [value]
        is_any = (operator == "in") != negated
        members = [compare(field, "=" if is_any else "!=", member) for member in values]
        if not members:
            raise QueryError(f"The filter on {field!r} is a list without values: leave it out.")
        return [members] if is_any else [[member] for member in members]
    operator = NEGATED.get(operator, operator) if negated else operator
    if operator not in OPERATORS:
        raise QueryError(
            f"The operator {operator!r} of the filter on {field!r} has no counterpart in slice-os: "
            f"use one of {' '.join(OPERATORS)}, in, not in."
        )
    return [[compare(field, operator, value)]]


def all_of(parts: Iterable[Clauses]) -> Clauses:
    """Return the conditions that all of some hold."""
    return [clause for clauses in parts for clause in clauses]


def any_of(parts: Sequence[Clauses]) -> Clauses:
    """Return the conditions that one of some holds: *or* over *and*, multiplied out."""
    count = 1
    for clauses in parts:
        count *= len(clauses)
    if count > MOST_CLAUSES:
        raise QueryError(f"These filters take {count:,} conditions: at most {MOST_CLAUSES:,} may.")
    return [[member for clause in chosen for member in clause] for chosen in product(*parts)]


def as_filters(clauses: Clauses) -> list[Filter]:
    """Return the filters that a search takes."""
    return [
        either(
            Filter(part.field, part.operator, part.value)
            for member in clause
            for part in (member, *member.others)
        )
        for clause in clauses
    ]

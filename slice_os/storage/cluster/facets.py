"""Counting documents, where a cluster counts passages: by the values of their metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import regex

from slice_os.errors import QueryError
from slice_os.storage.cluster.hits import read_rows
from slice_os.storage.filters import FIELD, field_tokens, token_text

Body = dict[str, Any]
DOCUMENTS = "documents"
EXACT = 40_000
"""precision_threshold, at most: so many documents of a value are counted as good as exactly."""
_SPECIAL = regex.compile(r'[.?+*|{}\[\]()"\\#@&<>~^$-]')
"""What Lucene's regular expressions take for more than a character."""
_UNFIT = str.maketrans("[]>", "\uff3b\uff3d\uff1e")
"""What cannot stand in the name of an aggregation, and what stands for it."""


def facets(fields: Sequence[str], *, size: int = 10) -> Body:
    """Return aggregations, the ``aggs`` of a body, that count documents by metadata.

    For each field they give the `size` values that most documents have, of the passages that the
    body's query matches. Any field of the metadata will do, declared or not; of a list every member
    counts. `read_facets` reads the answer.

    Raises:
        QueryError: size is below 1.
    """
    if size < 1:
        raise QueryError(f"size is {size}: it must be at least 1.")
    counted = {"cardinality": {"field": "document", "precision_threshold": EXACT}}
    return {
        field.translate(_UNFIT): {
            "terms": {
                "field": FIELD,
                "include": _values_of(field),
                "size": size,
                # A shard may hold few passages of what has many documents in all.
                "shard_size": 5 * size + 50,
                "order": {DOCUMENTS: "desc"},
            },
            "aggs": {DOCUMENTS: counted},
            "meta": {"field": field},
        }
        for field in fields
    }


def _values_of(field: str) -> str:
    """Return the regular expression of a field's tokens."""
    beginnings = (_SPECIAL.sub(r"\\\g<0>", token) for token in field_tokens(field))
    return "|".join(f"{beginning}.*" for beginning in beginnings)


def read_facets(answer: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Return field -> value (its text) -> documents, most first, of an answer with `facets`.

    Raises:
        QueryError: the answer is an error, is incomplete, or has no facets.
    """
    read_rows(answer)  # which refuses what is not whole
    counts = [each for each in answer.get("aggregations", {}).values() if "meta" in each]
    if not counts:
        raise QueryError('This answer has no facets: send facets(...) as "aggs".')
    return {
        each["meta"]["field"]: {
            token_text(bucket["key"]): bucket[DOCUMENTS]["value"] for bucket in each["buckets"]
        }
        for each in counts
    }

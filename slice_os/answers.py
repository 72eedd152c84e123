"""Answers as plain JSON: what the command line prints with --json and what the server sends."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from slice_os.types import DocumentInfo, Excerpt, Hit


def to_json(value: Any, *, indent: int | None = None) -> str:
    """Return a value as JSON, on one line unless it is indented; what is no number is null."""
    return json.dumps(_finite(value), ensure_ascii=False, indent=indent, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def hit_rows(
    hits: Sequence[Hit], excerpts: Sequence[Excerpt | None], group: bool
) -> list[dict[str, Any]]:
    """Return hits, each with what stands around it if there is an excerpt; or their documents."""
    rows = [
        {**hit.to_dict(), **({"context": excerpt.to_dict()} if excerpt else {})}
        for hit, excerpt in zip(hits, excerpts, strict=True)
    ]
    if not group:
        return rows
    return [_document(list(some)) for _, some in groupby(rows, lambda row: row["document"])]


def _document(hits: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a document from its hits."""
    return {
        "document": hits[0]["document"],
        "title": hits[0]["title"],
        "degree": max(hit["degree"] for hit in hits),
        "metadata": hits[0]["metadata"],
        "hits": hits,
    }


def search_answer(query: str, rows: list[dict[str, Any]], group: bool) -> dict[str, Any]:
    """Return the answer to a search."""
    return {"query": query, "documents" if group else "hits": rows}


def mining_report(
    min_degree: float, counts: Mapping[str, int], unknown: Sequence[str]
) -> dict[str, Any]:
    """Return what is said of a mining beside its matches; `unknown` phrases were left out."""
    report: dict[str, Any] = {"min_degree": min_degree, "counts": counts}
    return {**report, "unknown": unknown} if unknown else report


def document_list(documents: Sequence[DocumentInfo], size: int) -> dict[str, Any]:
    """Return the first `size` of some documents, and whether there are more."""
    shown = [document.to_dict() for document in documents[:size]]
    return {"documents": shown, "more": len(documents) > size}

"""Fusing the answers of two searches, where the cluster does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from slice_os.errors import QueryError
from slice_os.fusion import DEFAULT_FUSION, Scores, get_fusion
from slice_os.query.bodies import LEXICAL
from slice_os.query.hits import read_hits
from slice_os.records import Hit

Ref = TypeVar("Ref")
FLOOR = 0.5
"""The degree that a passage counts as which the text matches and whose degree is not known."""


def fuse_found(
    lexical: Scores[Ref],
    degrees: Scores[Ref],
    fusion: str = DEFAULT_FUSION,
    weight: float | None = None,
    floor: float = FLOOR,
) -> dict[Ref, float]:
    """Return the scores of all that was found by its BM25 score, its degree, or both.

    As `hybrid_query` has it: by ``saturation``, what the text matches has at least `floor` for a
    degree.

    Raises:
        QueryError: no such fusion, or the weight is out of its range.
    """
    chosen, share = get_fusion(fusion, weight)
    if chosen.whole_corpus:
        matched = {ref: max(degrees.get(ref, 0.0), floor) for ref in lexical}
        degrees = {**degrees, **matched}
    return chosen.fuse(degrees, lexical, share)


def named_score(row: Mapping[str, Any]) -> float | None:
    """Return the BM25 score that a hit of the second of `hybrid_queries` brings along."""
    named = row.get("matched_queries")
    return named.get(LEXICAL) if isinstance(named, Mapping) else None


def read_fused(
    answer: Mapping[str, Any],
    *,
    fusion: str = DEFAULT_FUSION,
    weight: float | None = None,
    size: int = 10,
    offset: int = 0,
    floor: float = FLOOR,
) -> list[Hit]:
    """Return `size` hits after the first `offset` of the answer of `hybrid_queries`' ``_msearch``.

    Raises:
        QueryError: one of the two has failed or is incomplete, or a setting is out of its range.
    """
    answers: Sequence[Any] = answer.get("responses") or ()
    if len(answers) != 2:
        raise QueryError("This is not the answer of an _msearch with the two of hybrid_queries.")
    hits: dict[tuple[str, str], Hit] = {}
    scores: list[dict[tuple[str, str], float]] = []
    named: dict[tuple[str, str], float] = {}
    for one in answers:
        found = read_hits(one)
        keys = [(row["_index"], row["_id"]) for row in one["hits"]["hits"]]
        scores.append({key: hit.score for key, hit in zip(keys, found, strict=True)})
        hits |= dict(zip(keys, found, strict=True))  # the second's hold the spans
    for key, row in zip(scores[1], answers[1]["hits"]["hits"], strict=True):
        if (score := named_score(row)) is not None:
            named[key] = score
    lexical, degrees = scores
    if get_fusion(fusion, weight)[0].whole_corpus:
        lexical = {**named, **lexical}
    fused = fuse_found(lexical, degrees, fusion, weight, floor)
    ranked = sorted(fused, key=lambda key: -fused[key])[offset : offset + size]
    return [replace(hits[key], score=fused[key]) for key in ranked]

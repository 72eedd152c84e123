"""The answers of searches as hits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from slice_os.errors import QueryError
from slice_os.storage.cluster.queries import SPANS
from slice_os.storage.cluster.server_fusion import LEXICAL
from slice_os.storage.fusion import DEFAULT_FUSION, Scores, get_fusion
from slice_os.text.filters import flat_metadata
from slice_os.types import Hit, SpanMatch

Ref = TypeVar("Ref")
FLOOR = 0.5
"""The degree that a passage counts as which the text matches and whose degree is not known."""
_DELIMITER = -1e9
"""Scores below are the delimiter rows of a hybrid query that no pipeline has read."""


def read_hits(response: Mapping[str, Any], body: Mapping[str, Any] | None = None) -> list[Hit]:
    """Return the hits of an answer to any body of `slice_os.query`.

    Of a `body` that is given, a ``hybrid`` query is refused that stands within another query: its
    scores are plain sums, which the answer does not show.

    The spans and their in-context degrees come from the inner hits; the hit's degree is that of the
    best. A hit without inner hits (found by its words alone, or a body with ``spans=0``) has no
    spans and the degree 0.0: that degree is *not known*. Where the answer is sorted and so has no
    score, the score is the degree. Without ``_source`` the document is the cluster's ``_id``, and
    without `start` and `end` in it the passage counts as the document's first.

    Raises:
        QueryError: the answer is an error, is incomplete (a shard failed, or time ran out), or
            comes from a hybrid query without its search pipeline, or within another query.
    """
    if body is not None and _holds_hybrid(list((body.get("query") or {}).values())):
        raise QueryError(
            "A hybrid query within another query adds up raw scores: send it as the whole query, "
            "and put filters into each of its clauses (filters=)."
        )
    return [_hit(row) for row in read_rows(response)]


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
    by_words, by_meaning = (
        {(row["_index"], row["_id"]): row for row in read_rows(response)} for response in answers
    )
    hits = {key: _hit(row) for key, row in {**by_words, **by_meaning}.items()}  # with the spans
    lexical = {key: _hit(row).score for key, row in by_words.items()}
    if get_fusion(fusion, weight)[0].whole_corpus:
        named = {key: named_score(row) for key, row in by_meaning.items()}
        lexical = {key: score for key, score in named.items() if score is not None} | lexical
    degrees = {key: hits[key].score for key in by_meaning}
    fused = fuse_found(lexical, degrees, fusion, weight, floor)
    ranked = sorted(fused, key=lambda key: -fused[key])[offset : offset + size]
    return [replace(hits[key], score=fused[key]) for key in ranked]


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


def _holds_hybrid(part: object) -> bool:
    if isinstance(part, Mapping):
        return "hybrid" in part or _holds_hybrid(list(part.values()))
    return isinstance(part, list) and any(map(_holds_hybrid, part))


def read_rows(response: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a whole answer; raise QueryError if it is none."""
    if not isinstance(response, Mapping):
        raise QueryError(f"An answer of _search is a JSON object, not {type(response).__name__}.")
    if error := response.get("error"):
        reason = error.get("reason") if isinstance(error, Mapping) else error
        raise QueryError(f"The cluster refused the search: {reason}.")
    hits = response.get("hits")
    if not isinstance(hits, Mapping) or not isinstance(hits.get("hits"), list):
        raise QueryError("This is not an answer of _search: it holds no hits.")
    if response.get("timed_out"):
        raise QueryError("The cluster ran out of time, so hits are missing: raise its timeout.")
    shards = response.get("_shards", {})
    if shards.get("failed"):
        reason = next(iter(shards.get("failures") or [{}])).get("reason", {})
        raise QueryError(
            f"{shards['failed']} of {shards.get('total')} shards failed, so hits are missing: "
            f"{reason.get('reason', reason) if isinstance(reason, Mapping) else reason}."
        )
    total = shards.get("total", 0)
    # One whose node is away is not among "failed": it is only missing in "successful".
    if absent := total - shards.get("successful", total):
        raise QueryError(
            f"{absent} of {total} shards did not answer, so hits are missing: try again when the "
            "cluster is whole."
        )
    rows: list[dict[str, Any]] = hits["hits"]
    if any((row.get("_score") or 0.0) < _DELIMITER for row in rows):
        raise QueryError(
            "The hybrid query was sent without its search pipeline: add "
            "?search_pipeline=NAME to the request."
        )
    return rows


def _hit(row: Mapping[str, Any]) -> Hit:
    source = row.get("_source") or {}
    text = source.get("text", "")
    inner = row.get("inner_hits", {}).get(SPANS, {}).get("hits", {}).get("hits", [])
    spans = sorted((_span(span, text) for span in inner), key=lambda span: -span.degree)
    degree = spans[0].degree if spans else 0.0
    score = row.get("_score")
    return Hit(
        document=source.get("document", row.get("_id", "")),
        passage=source.get("passage", 0),
        title=source.get("title", ""),
        text=text,
        score=degree if score is None else float(score),
        degree=degree,
        spans=tuple(spans),
        metadata=flat_metadata(source.get("metadata") or {}),
        document_start=source.get("start", 0),
        document_end=source.get("end", len(text)),
    )


def _span(row: Mapping[str, Any], text: str) -> SpanMatch:
    fields = row.get("fields", {})
    try:
        start, end = int(fields[f"{SPANS}.start"][0]), int(fields[f"{SPANS}.end"][0])
        degree = float(row["_score"])
    except (KeyError, IndexError, TypeError) as exc:
        raise QueryError(
            f"An inner hit lacks its score or the doc values {SPANS}.start and {SPANS}.end."
        ) from exc
    return SpanMatch(start, end, text[start:end], degree, degree)

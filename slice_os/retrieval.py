"""Search: a backend's best passages, their best spans found exactly and verified."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import numpy as np

from slice_os.backends.base import Backend, Candidate, Mode, Retrieval, StoredPassage
from slice_os.corpus import count_words
from slice_os.encoder import Encoder
from slice_os.errors import QueryError
from slice_os.filters import Filter
from slice_os.fusion import DEFAULT_FUSION, LATE, get_fusion
from slice_os.records import Float32, Hit, SpanMatch
from slice_os.spans import (
    QueryWords,
    ScoredSpan,
    contributions,
    degree,
    fit_window,
    full_range,
    length_window,
    pick,
    query_words,
    span_cosines,
    verified_degrees,
    word_scores,
)
from slice_os.threads import one_blas_thread

DEPTH = 1000
"""Passages of each leg that a hybrid search fuses, whatever the page: so pages do not overlap."""
SHOWN_SPANS = 3
"""Spans a hit shows: the best that share no word."""


def search_passages(
    backend: Backend,
    encoder: Encoder,
    query: str,
    *,
    mode: Mode = "hybrid",
    fusion: str = DEFAULT_FUSION,
    weight: float | None = None,
    filters: Sequence[Filter] = (),
    size: int = 10,
    offset: int = 0,
    all_lengths: bool = False,
    verify: int = 8,
    late: float = LATE,
) -> list[Hit]:
    """Return the best passages for a query, ranked by their score.

    The dense part of a score is the degree of the best span in context and, for a share of `late`,
    how near each word of the query has its nearest word in the passage (`backends.relevance`;
    the fusions of rankings, rrf and min_max, go by the degree alone).

    The degree of a hit is that of its best span: of `verify` spans a hit encoded alone, or, with
    ``verify=0``, as the index has them (in context). `all_lengths` compares spans of every length
    instead of about 0.75 to 1.4 times the query's words.

    Raises:
        QueryError: the query holds no word, or a setting is out of its range.
    """
    if mode not in get_args(Mode):
        raise QueryError(f"There is no mode {mode!r}: choose one of {', '.join(get_args(Mode))}.")
    if size < 1 or offset < 0 or verify < 0:
        raise QueryError("size must be at least 1, offset and verify at least 0.")
    if not 0 <= late <= 1:
        raise QueryError(f"The share of late interaction is {late}: it must be from 0 to 1.")
    get_fusion(fusion, weight)
    if mode == "hybrid" and offset + size > DEPTH:
        raise QueryError(
            f"A hybrid search ranks the best {DEPTH:,} passages of each leg: ask for no more than "
            "that, or use the mode dense or lexical."
        )
    with one_blas_thread():
        vector, words = encode_query(encoder, query)
        known = encoder.knows(query)
        if mode != "lexical":
            _known(query, known)
        lengths = query_lengths(query, backend.meta.max_words, all_lengths)
        candidates = backend.retrieve(
            Retrieval(
                query,
                vector,
                lengths,
                mode=mode,
                fusion=fusion,
                weight=weight,
                filters=filters,
                size=size,
                offset=offset,
                depth=DEPTH,
                words=words,
                late=late,
            )
        )
        # To the encoder an unknown word is like every other: no span can be shown for one.
        return explain(candidates, vector, lengths if known else range(1, 1), encoder, verify)


def encode_query(encoder: Encoder, query: str) -> tuple[Float32, QueryWords]:
    """Return the unit vector of a query, float32 ``[d]``, and its words, in one encoder run.

    Raises:
        QueryError: it is empty or holds no word.
    """
    _not_empty(query)
    (words,) = encoder.encode_words([query])
    whole = words.vectors.sum(axis=0)
    norm = np.linalg.norm(whole)
    if not norm > 0:
        raise QueryError(f"The query {query[:60]!r} holds no word that the encoder knows.")
    return whole / norm, query_words(words.vectors)


def encode_queries(encoder: Encoder, queries: Sequence[str]) -> Float32:
    """Return the unit vectors of queries or phrases, float32 ``[n, d]``.

    Raises:
        QueryError: one of them is empty or holds no word that the encoder knows.
    """
    for query in queries:
        _not_empty(query)
    vectors = encoder.encode(queries)
    for query, norm in zip(queries, np.linalg.norm(vectors, axis=1), strict=True):
        _known(query, norm > 0 and encoder.knows(query))
    return vectors


def _not_empty(query: str) -> None:
    if not query.strip():
        raise QueryError("The query is empty: give at least one word.")


def _known(query: str, known: bool) -> None:
    if not known:
        raise QueryError(
            f"The query {query[:60]!r} holds no word that the encoder knows: search for it by BM25 "
            "('--mode lexical'), or index with an encoder of its language."
        )


def query_lengths(query: str, max_words: int, all_lengths: bool) -> range:
    """Return the span lengths that a query is compared with."""
    return full_range(max_words) if all_lengths else length_window(count_words(query), max_words)


def span_text(stored: StoredPassage, span: ScoredSpan) -> tuple[int, int, str]:
    """Return a span's character offsets in its passage, and its text."""
    start, end = int(stored.words.starts[span.i]), int(stored.words.ends[span.j - 1])
    return start, end, stored.passage.text[start:end]


def explain(
    candidates: Sequence[Candidate], vector: Float32, lengths: range, encoder: Encoder, verify: int
) -> list[Hit]:
    """Turn candidates into hits: exact degrees, best spans, one encoder run to verify them all."""
    found: list[list[SpanMatch]] = []
    for candidate in candidates:
        stored = candidate.stored
        scores = word_scores(stored.words.vectors, vector)
        window = fit_window(lengths, len(scores))
        cosines = span_cosines(scores, stored.norms, window)
        spans = pick(cosines, window, verify or SHOWN_SPANS)
        found.append([_match(stored, span, scores) for span in spans])
    if verify:
        found = _verified(found, vector, encoder)
    hits = []
    for candidate, matches in zip(candidates, found, strict=True):
        shown = _apart(sorted(matches, key=lambda match: -match.degree))
        passage = candidate.stored.passage
        hits.append(
            Hit(
                passage.document,
                passage.number,
                passage.title,
                passage.text,
                candidate.score,
                shown[0].degree if shown else 0.0,
                tuple(shown),
                candidate.stored.metadata,
            )
        )
    return hits


def _match(stored: StoredPassage, span: ScoredSpan, scores: Float32) -> SpanMatch:
    indexed = degree(span.cosine)
    shares = tuple(contributions(scores, stored.norms, span.i, span.j).tolist())
    return SpanMatch(*span_text(stored, span), indexed, indexed, shares)


def _verified(
    found: Sequence[Sequence[SpanMatch]], vector: Float32, encoder: Encoder
) -> list[list[SpanMatch]]:
    texts = list(dict.fromkeys(match.text for matches in found for match in matches))
    degrees = verified_degrees(vector, encoder.encode(texts)) if texts else ()
    by_text = dict(zip(texts, map(float, degrees), strict=True))
    return [
        [
            SpanMatch(m.start, m.end, m.text, by_text[m.text], m.indexed_degree, m.contributions)
            for m in matches
        ]
        for matches in found
    ]


def _apart(matches: Sequence[SpanMatch]) -> list[SpanMatch]:
    """Keep the best matches that share no word, SHOWN_SPANS at most."""
    kept: list[SpanMatch] = []
    for match in matches:
        if all(match.end <= other.start or other.end <= match.start for other in kept):
            kept.append(match)
    return kept[:SHOWN_SPANS]

"""Longest common subsequences of two texts' sentences, of one query with many documents at once.

Two sentences match if their cosine is above a threshold. A matching takes matching pairs in order:
(i1, j1), (i2, j2), ... with i1 < i2 < ... and j1 < j2 < .... The score is the best matching's sum
of cosines, or, unweighted, its number of pairs, the length of the longest common subsequence. It
grows with what two texts share and not with how long they are: van Belle (2020), Length-agnostic
document retrieval using sentence-level embeddings, section 2.1. With w_ij = cos_ij (unweighted: 1)
where cos_ij > threshold and 0 elsewhere,

    L[i, j] = max(L[i-1, j], L[i, j-1], L[i-1, j-1] + w_ij),    L[0, .] = L[., 0] = 0,

which is Wagner and Fischer's recurrence (JACM 1974) with weights, the heaviest common subsequence
of Jacobson and Vo (CPM 1992). As w is never negative, a row follows from the one above without a
look at its own left neighbour:

    L[i, j] = max over j' <= j of max(L[i-1, j'], L[i-1, j'-1] + w_ij'),

a running maximum, which numpy computes for thousands of documents at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from slice_os.errors import QueryError
from slice_os.ranking.stack import BLOCK_BYTES, Int64, Stack, cosine_blocks, stack
from slice_os.records import Float32

THRESHOLD = 0.4
_PADDED = 1.25
"""The longest of the documents padded together has at most this many times the shortest's rows."""
_FEW = 64
"""Of fewer documents at once a call for each row costs more than it saves."""


class MatchedPair(NamedTuple):
    """Sentence `query` of the query and `document` of the document, from 0, and their cosine."""

    query: int
    document: int
    cosine: float


def lcs_scores(
    query: npt.NDArray[Any],
    documents: Stack | npt.NDArray[Any] | Sequence[npt.NDArray[Any]],
    counts: npt.NDArray[Any] | None = None,
    threshold: float = THRESHOLD,
    *,
    weighted: bool = True,
    block_bytes: int = BLOCK_BYTES,
) -> Float32:
    """Return each document's best matching with the query, float32 ``[D]``.

    Args:
        query: Unit vectors of the query's sentences in order, ``[m, d]``.
        documents: Unit vectors of all documents' sentences, ``[total, d]``, or an array for each.
        counts: How many rows each document has, ``[D]``, where `documents` is one array.
        threshold: The cosine above which two sentences match, from 0 to below 1.
        weighted: Sum the cosines of the matched pairs, or else count the pairs.
        block_bytes: How many bytes of cosines to hold at once; about twice as much is used.

    Raises:
        QueryError: There is nothing to rank, the vectors do not fit together or are no unit
            vectors, or the threshold is not one.
    """
    stacked = stack(documents, counts)
    check_threshold(threshold)
    scores = np.empty(len(stacked.counts), np.float32)
    for part, cosines in cosine_blocks(query, stacked, block_bytes):
        lengths = stacked.counts[part]
        starts = np.cumsum(lengths) - lengths
        weights = _weights(cosines, threshold, weighted)
        for bucket in _buckets(lengths):
            scores[part.start + bucket] = _best(weights, starts[bucket], lengths[bucket])
    return scores


def lcs_pairs(
    query: npt.NDArray[Any],
    document: npt.NDArray[Any],
    threshold: float = THRESHOLD,
    *,
    weighted: bool = True,
) -> list[MatchedPair]:
    """Return the pairs of one document's best matching, in order; see `lcs_scores`.

    Their cosines (unweighted: their number) sum up to the document's score. Of equally good
    matchings the one whose pairs come first in the document is taken.

    Raises:
        QueryError: As for `lcs_scores`.
    """
    check_threshold(threshold)
    _, cosines = next(cosine_blocks(query, stack([document])))
    table = np.zeros((len(cosines) + 1, cosines.shape[1] + 1), np.float32)
    for i, row in enumerate(_weights(cosines, threshold, weighted)):
        np.maximum(table[i, 1:], table[i, :-1] + row, out=table[i + 1, 1:])
        np.maximum.accumulate(table[i + 1], out=table[i + 1])
    pairs = []
    i, j = cosines.shape
    while i and j:
        # Values are only ever copied from a neighbour, so equality is exact.
        if table[i, j] == table[i, j - 1]:
            j -= 1
        elif table[i, j] == table[i - 1, j]:
            i -= 1
        else:
            i, j = i - 1, j - 1
            pairs.append(MatchedPair(i, j, float(cosines[i, j])))
    return pairs[::-1]


def check_threshold(threshold: float) -> None:
    """Raise QueryError unless a threshold is from 0 to below 1."""
    if not 0 <= threshold < 1:
        raise QueryError(f"The threshold {threshold} must be from 0 to below 1.")


def _weights(cosines: Float32, threshold: float, weighted: bool) -> Float32:
    matching = cosines > np.float32(threshold)
    return np.where(matching, cosines, np.float32(0)) if weighted else matching.astype(np.float32)


def _buckets(lengths: Int64) -> Iterator[Int64]:
    """Yield the documents, by number, in groups of about the same length."""
    order = np.argsort(lengths, kind="stable")
    ascending = lengths[order]
    first = 0
    while first < len(order):
        last = int(ascending.searchsorted(_PADDED * ascending[first], side="right"))
        yield order[first:last]
        first = last


def _best(weights: Float32, starts: Int64, lengths: Int64) -> Float32:
    """Return L[m, n] of each document, float32 ``[documents]``.

    `weights` is ``[m, rows]``; a document's columns are `lengths` from `starts` on. Cells past a
    document's end weigh nothing, so that its last value stays.
    """
    steps = np.arange(lengths.max())[:, None]
    columns = starts + steps
    inside = steps < lengths if lengths.min() < len(steps) else None
    best = np.zeros(columns.shape, np.float32)
    for row in weights:
        found = row.take(columns, mode="clip")
        if inside is not None:
            found *= inside
        found[1:] += best[:-1]
        np.maximum(best, found, out=best)
        _run_maximum(best)
    scores: Float32 = best[-1]
    return scores


def _run_maximum(table: Float32) -> None:
    """Replace each row of `table` by the maximum of it and the rows above."""
    if table.shape[1] < _FEW:
        np.maximum.accumulate(table, axis=0, out=table)
        return
    for above, row in pairwise(table):  # numpy accumulates column by column, ten times slower
        np.maximum(above, row, out=row)

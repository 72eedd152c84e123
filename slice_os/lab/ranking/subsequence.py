"""Longest common subsequences of two texts' sentences, of one query with many documents at once.

Two sentences match if their cosine reaches a threshold. A matching takes matching pairs in order:
(i1, j1), (i2, j2), ... with i1 < i2 < ... and j1 < j2 < .... What two texts share is scored by the
longest matching, and not by how long the texts are: van Belle (2020), Length-agnostic document
retrieval using sentence-level embeddings, section 2.1. With w_ij a matching pair's weight and 0 for
other pairs,

    L[i, j] = max(L[i-1, j], L[i, j-1], L[i-1, j-1] + w_ij),    L[0, .] = L[., 0] = 0,

which is Wagner and Fischer's recurrence (JACM 1974) with weights, the heaviest common subsequence
of Jacobson and Vo (CPM 1992). As w is never negative, a row follows from the one above without a
look at its own left neighbour:

    L[i, j] = max over j' <= j of max(L[i-1, j'], L[i-1, j'-1] + w_ij'),

a running maximum, which numpy computes for thousands of documents at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from slice_os.errors import QueryError
from slice_os.types import Float32

Int64 = npt.NDArray[np.int64]

BLOCK_BYTES = 32 << 20
"""Bytes of cosines that are held at once."""
_UNIT = 1 + 1e-3


THRESHOLD = 0.4
"""The least cosine of two sentences that match."""
NOTHING = -1.0
"""The cosine of a document in which nothing matches."""
Score = Literal["cosine", "sum", "count"]
_PADDED = 1.25
"""The longest of the documents padded together has at most this many times the shortest's rows."""
_FEW = 64
"""Of fewer documents at once a call for each row costs more than it saves."""


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """The sentence vectors of all documents, one document after the other.

    `vectors` is float32 ``[total, d]``, unit rows (a row of zeros matches nothing); `counts` is
    int64 ``[D]``, how many rows each document has, at least 1.
    """

    vectors: Float32
    counts: Int64

    @classmethod
    def of(cls, documents: Sequence[npt.NDArray[Any]]) -> Stack:
        """Return the stack of arrays ``[n, d]``, one a document."""
        if not len(documents):
            raise QueryError("There is no document to rank: give at least one.")
        if len({np.shape(document)[1:] for document in documents}) > 1:
            raise QueryError("The documents' vectors differ in dimension: encode all by one model.")
        counts = np.array([len(document) for document in documents], np.int64)
        if counts.min() < 1:
            raise QueryError(f"Document {int(counts.argmin())} has no sentence: leave it out.")
        return cls(np.concatenate(documents).astype(np.float32, copy=False), counts)

    @property
    def starts(self) -> Int64:
        """The first row of each document, int64 ``[D]``."""
        return np.cumsum(self.counts) - self.counts

    def document(self, number: int) -> Float32:
        """Return the vectors of one document, float32 ``[n, d]``, a view."""
        start = int(self.counts[:number].sum())
        return self.vectors[start : start + int(self.counts[number])]


def cosine_blocks(query: Float32, documents: Stack) -> Iterator[tuple[slice, Float32]]:
    """Yield which documents, and the cosines of each query sentence with their rows.

    Cosines are float32 ``[m, rows]``, at most `BLOCK_BYTES` of them; a document that has more is
    a block of its own.
    """
    dimension = documents.vectors.shape[1]
    if query.ndim != 2 or not len(query) or query.shape[1] != dimension:
        raise QueryError(
            f"The query's vectors {query.shape} are not rows of {dimension} dimensions as the "
            "documents' are: give one for each sentence, by the same model."
        )
    ends = np.cumsum(documents.counts)
    rows = max(1, BLOCK_BYTES // (query.itemsize * len(query)))
    first, start = 0, 0
    while first < len(ends):
        last = max(first + 1, int(ends.searchsorted(start + rows, side="right")))
        cosines = query @ documents.vectors[start : ends[last - 1]].T
        if not (cosines.max() <= _UNIT and cosines.min() >= -_UNIT):
            raise QueryError(
                f"A vector of the query or of documents {first} to {last - 1} is not finite or not "
                "of length 1: encode the texts again, or divide each row by its norm."
            )
        yield slice(first, last), cosines
        first, start = last, int(ends[last - 1])


class MatchedPair(NamedTuple):
    """Sentence `query` of the query and `document` of the document, from 0, and their cosine."""

    query: int
    document: int
    cosine: float


def lcs_scores(
    query: npt.NDArray[Any],
    documents: Stack | Sequence[npt.NDArray[Any]],
    threshold: float = THRESHOLD,
    *,
    score: Score = "sum",
) -> Float32:
    """Return the score of each document's best matching with the query, float32 ``[D]``.

    By "sum" the best matching is the one with the largest sum of cosines, and that sum its score.
    By "count" it is the one with the most pairs, and how many they are its score. By "cosine", as
    published, it has the most pairs too, of equally many the largest sum of cosines; its score is
    the cosine of the mean of the matched query sentences with that of the matched document
    sentences. Where nothing matches the score is 0, by "cosine" -1.

    Args:
        query: Unit vectors of the query's sentences in order, ``[m, d]``.
        documents: Unit vectors of the documents' sentences, an array ``[n, d]`` for each.
        threshold: The least cosine of two sentences that match, above 0, at most 1.
        score: As above.

    Raises:
        QueryError: There is nothing to rank, the vectors do not fit together or are no unit
            vectors, or the threshold is not one.
    """
    check_threshold(threshold)
    stacked = documents if isinstance(documents, Stack) else Stack.of(documents)
    query = np.asarray(query, np.float32)
    scores = np.empty(len(stacked.counts), np.float32)
    for part, cosines in cosine_blocks(query, stacked):
        lengths = stacked.counts[part]
        starts = np.cumsum(lengths) - lengths
        weights = _weights(cosines, threshold, score)
        for bucket in _buckets(lengths):
            table = _table(weights, starts[bucket], lengths[bucket])
            numbers = part.start + bucket
            if score == "cosine":
                scores[numbers] = _cosines(table, query, stacked, numbers)
            else:
                scores[numbers] = table[-1, -1]
    return scores


def lcs_pairs(
    query: npt.NDArray[Any],
    document: npt.NDArray[Any],
    threshold: float = THRESHOLD,
    *,
    score: Score = "sum",
) -> list[MatchedPair]:
    """Return the pairs of one document's best matching, in order; see `lcs_scores`.

    Of equally good matchings the one whose pairs come first in the document is taken.

    Raises:
        QueryError: As for `lcs_scores`.
    """
    check_threshold(threshold)
    stacked = Stack.of([document])
    _, cosines = next(cosine_blocks(np.asarray(query, np.float32), stacked))
    table = _table(_weights(cosines, threshold, score), stacked.starts, stacked.counts)
    pairs = [(int(i[0]), int(j[0])) for _, i, j in _matched(table, stacked.counts)]
    return [MatchedPair(i, j, float(cosines[i, j])) for i, j in reversed(pairs)]


def check_threshold(threshold: float) -> None:
    """Raise QueryError unless a threshold is above 0 and at most 1."""
    if not 0 < threshold <= 1:
        raise QueryError(f"The threshold {threshold} must be above 0 and at most 1.")


def _weights(cosines: Float32, threshold: float, score: Score) -> Float32:
    """Return the weight of each pair; for "cosine" a longer matching always weighs more."""
    matching: Float32 = (cosines >= np.float32(threshold)).astype(np.float32)
    if score == "count":
        return matching
    weights: Float32 = matching * cosines
    if score == "cosine":
        weights = matching + weights * np.float32(1 / (2 + len(cosines)))
    return weights


def _buckets(lengths: Int64) -> Iterator[Int64]:
    """Yield the documents, by number, in groups of about the same length."""
    order = np.argsort(lengths, kind="stable")
    ascending = lengths[order]
    first = 0
    while first < len(order):
        last = int(ascending.searchsorted(_PADDED * ascending[first], side="right"))
        yield order[first:last]
        first = last


def _table(weights: Float32, starts: Int64, lengths: Int64) -> Float32:
    """Return L of documents, float32 ``[m + 1, longest + 1, documents]``.

    `weights` is ``[m, rows]``; a document's columns are `lengths` from `starts` on. Cells past a
    document's end weigh nothing, so that its last value stays.
    """
    steps = np.arange(lengths.max())[:, None]
    columns = starts + steps
    inside = steps < lengths if lengths.min() < len(steps) else None
    table = np.zeros((len(weights) + 1, len(steps) + 1, len(lengths)), np.float32)
    for row, above, best in zip(weights, table, table[1:], strict=False):
        row.take(columns, mode="clip", out=best[1:])
        if inside is not None:
            best[1:] *= inside
        best[1:] += above[:-1]
        np.maximum(above, best, out=best)
        _run_maximum(best)
    return table


def _matched(table: Float32, lengths: Int64) -> Iterator[tuple[Int64, Int64, Int64]]:
    """Yield the pairs of documents' best matchings, from the last on, a pair a document at a time.

    Of each step: which documents (int64 ``[k]``), and their pair's i and j, from 0.
    """
    documents = np.arange(len(lengths))
    i, j = np.full(len(lengths), len(table) - 1), lengths.copy()
    while len(documents):
        # Values are only ever copied from a neighbour, so equality is exact.
        value = table[i, j, documents]
        left = value == table[i, j - 1, documents]
        matched = ~left & (value != table[i - 1, j, documents])
        i -= ~left
        j -= left | matched
        if matched.any():
            yield documents[matched], i[matched], j[matched]
        going = (i > 0) & (j > 0)
        documents, i, j = documents[going], i[going], j[going]


def _cosines(table: Float32, query: Float32, stacked: Stack, numbers: Int64) -> Float32:
    """Return the cosines of the means of what documents `numbers` and the query match in."""
    first = stacked.starts[numbers]
    ours = np.zeros((len(numbers), query.shape[1]), np.float32)
    theirs = np.zeros_like(ours)
    for documents, i, j in _matched(table, stacked.counts[numbers]):
        ours[documents] += query[i]
        theirs[documents] += stacked.vectors[first[documents] + j]
    norms = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
    scores = np.full(len(numbers), NOTHING, np.float32)
    products = np.einsum("nd,nd->n", ours, theirs)
    np.divide(products, norms, out=scores, where=norms > 0)
    return scores


def _run_maximum(table: Float32) -> None:
    """Replace each row of `table` by the maximum of it and the rows above."""
    if table.shape[1] < _FEW:
        np.maximum.accumulate(table, axis=0, out=table)
        return
    for above, row in pairwise(table):  # numpy accumulates column by column, ten times slower
        np.maximum(above, row, out=row)

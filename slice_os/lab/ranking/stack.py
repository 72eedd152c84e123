"""Documents as a stack of sentence vectors, and their cosines with a query, block by block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from slice_os.errors import QueryError
from slice_os.types import Float32

Int64 = npt.NDArray[np.int64]

BLOCK_BYTES = 32 << 20
"""Bytes of cosines that are held at once."""
_UNIT = 1 + 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class Stack:
    """The sentence vectors of all documents, one document after the other.

    `vectors` is float32 ``[total, d]``, unit rows (a row of zeros matches nothing); `counts` is
    int64 ``[D]``, how many rows each document has, at least 1.
    """

    vectors: Float32
    counts: Int64

    @property
    def starts(self) -> Int64:
        """The first row of each document, int64 ``[D]``."""
        return np.cumsum(self.counts) - self.counts

    def document(self, number: int) -> Float32:
        """Return the vectors of one document, float32 ``[n, d]``, a view."""
        start = int(self.counts[:number].sum())
        return self.vectors[start : start + int(self.counts[number])]


def stack(
    documents: Stack | npt.NDArray[Any] | Sequence[npt.NDArray[Any]],
    counts: npt.NDArray[Any] | None = None,
) -> Stack:
    """Return `documents` as a `Stack`: rows ``[total, d]`` with `counts`, or an array for each.

    Raises:
        QueryError: There is no document, one has no sentence, or the shapes do not fit together.
    """
    if isinstance(documents, Stack):
        return documents
    if counts is None:
        if len({np.shape(one)[1:] for one in documents}) > 1:
            raise QueryError("The documents' vectors differ in dimension: encode all by one model.")
        counts = np.array([len(one) for one in documents], np.int64)
        documents = np.concatenate(documents) if len(documents) else np.empty((0, 0))
    vectors = np.asarray(documents, np.float32)
    rows = np.asarray(counts, np.int64)
    if vectors.ndim != 2 or rows.ndim != 1 or rows.sum() != len(vectors):
        raise QueryError(
            f"Vectors of shape {vectors.shape} and {rows.sum()} sentences do not fit together: "
            "give one row a sentence, and how many each document has."
        )
    if not len(rows):
        raise QueryError("There is no document to rank: give at least one.")
    if rows.min() < 1:
        raise QueryError(f"Document {int(rows.argmin())} has no sentence: leave it out.")
    return Stack(vectors, rows)


def check_query(query: npt.NDArray[Any], dimension: int) -> Float32:
    """Return the query as float32 ``[m, d]``.

    Raises:
        QueryError: It has no sentence, another dimension, or a value that is not finite.
    """
    vectors = np.asarray(query, np.float32)
    if vectors.ndim != 2 or not len(vectors):
        raise QueryError("The query has no sentence: give at least one, a row for each.")
    if vectors.shape[1] != dimension:
        raise QueryError(
            f"The query has {vectors.shape[1]} dimensions, the documents {dimension}: encode both "
            "by the same model."
        )
    if not np.isfinite(vectors).all():
        raise QueryError("The query's vectors are not all finite: encode it again.")
    return vectors


def cosine_blocks(
    query: npt.NDArray[Any], documents: Stack, block_bytes: int = BLOCK_BYTES
) -> Iterator[tuple[slice, Float32]]:
    """Yield which documents, and the cosines of each query sentence with their rows.

    Cosines are float32 ``[m, rows]``, at most `block_bytes` of them; a document that has more is
    a block of its own.

    Raises:
        QueryError: The query or the documents' vectors are not unit rows of one dimension.
    """
    vectors = check_query(query, documents.vectors.shape[1])
    ends = np.cumsum(documents.counts)
    rows = max(1, block_bytes // (vectors.itemsize * len(vectors)))
    first, start = 0, 0
    while first < len(ends):
        last = max(first + 1, int(ends.searchsorted(start + rows, side="right")))
        cosines = vectors @ documents.vectors[start : ends[last - 1]].T
        if not (cosines.max() <= _UNIT and cosines.min() >= -_UNIT):
            raise QueryError(
                f"A vector of the query or of documents {first} to {last - 1} is not finite or not "
                "of length 1: encode the texts again, or divide each row by its norm."
            )
        yield slice(first, last), cosines
        first, start = last, int(ends[last - 1])

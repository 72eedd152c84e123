"""Texts whose batches are running."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import CancelledError, Future

import numpy as np

from slice_os.encoder.batching import Segment
from slice_os.encoder.tokens import TokenizedText
from slice_os.errors import EncoderError
from slice_os.records import Float32, Words


class Chunk:
    """Some texts whose batches are running."""

    def __init__(self, texts: list[TokenizedText], dimension: int) -> None:
        self._texts = texts
        self._dimension = dimension
        self._rows: list[list[tuple[Segment, Future[list[Float32]], int]]] = [[] for _ in texts]
        self._running: list[Future[list[Float32]]] = []

    def expect(self, batch: list[Segment], running: Future[list[Float32]]) -> None:
        """Note that `running` will hold the sums of `batch`."""
        self._running.append(running)
        for place, row in enumerate(batch):
            self._rows[row.owner].append((row, running, place))

    def words(self) -> Iterator[Words]:
        """Yield the words of each text, waiting for its batches."""
        for i, (text, rows) in enumerate(zip(self._texts, self._rows, strict=True)):
            first, starts, ends, _ = text.words
            if len(rows) == 1:
                vectors = _sums(rows[0][1], rows[0][2])
            else:
                vectors = np.zeros((len(first), self._dimension), np.float32)
                for row, running, place in rows:
                    sums = _sums(running, place)
                    vectors[row.word : row.word + len(sums)] += sums
            self._rows[i] = []  # so that what the caller drops is freed
            yield Words(starts, ends, vectors)

    def add_to(self, vectors: Float32) -> None:
        """Add to each row of `vectors` the sum of all tokens of that text."""
        for i, rows in enumerate(self._rows):
            for _, running, place in rows:
                vectors[i] += _sums(running, place).sum(axis=0)

    def cancel(self) -> None:
        """Drop the batches that have not begun."""
        for running in self._running:
            running.cancel()


def _sums(running: Future[list[Float32]], place: int) -> Float32:
    try:
        return running.result()[place]
    except CancelledError as exc:
        raise EncoderError("The encoder was closed while it ran: load it again.") from exc

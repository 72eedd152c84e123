"""Cutting texts into windows, grouping windows into batches, and summing up their results."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from slice_os.encoders.tokens import TokenizedText, Uint8
from slice_os.errors import EncoderError
from slice_os.types import Float32, Int32, Words


class Pool:
    """Threads that each run one task after the other.

    A plain executor runs all that it was given before the interpreter may exit. This one gives it
    a task a thread, so that at exit, or after `close`, those finish and the rest is dropped.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._start()

    def _start(self) -> None:
        self._process = os.getpid()
        self._executor = ThreadPoolExecutor(self._threads, "slice-os-encoder")
        self._busy = 0
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._lock = Lock()

    def submit(self, task: Callable[[], Any]) -> Future[Any]:
        """Return what will hold the result of `task`; it can be cancelled until it begins."""
        if self._process != os.getpid():  # a forked process has none of its parent's threads
            self._start()
        future: Future[Any] = Future()
        with self._lock:
            self._waiting.append((future, task))
            idle = self._busy < self._threads
            self._busy += idle
        if idle:
            self._go_on()
        return future

    def close(self) -> None:
        """Wait for the tasks that have begun and cancel the others."""
        self._executor.shutdown(wait=True, cancel_futures=True)
        self._drop()

    def _go_on(self) -> None:
        try:
            self._executor.submit(self._step)
        except RuntimeError:  # closed, or the interpreter is exiting
            self._drop()

    def _step(self) -> None:
        with self._lock:
            if not self._waiting:
                self._busy -= 1
                return
            future, task = self._waiting.popleft()
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(task())
            except BaseException as exc:  # whoever waits for the result gets it
                future.set_exception(exc)
        self._go_on()

    def _drop(self) -> None:
        with self._lock:
            for future, _ in self._waiting:
                future.cancel()
            self._waiting.clear()


Int64 = npt.NDArray[np.int64]
_OVERLAP = 64


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """A row of a batch: a text, or one window of it.

    Attributes:
        owner: Which text of the chunk it belongs to.
        ids: int64 token ids.
        skip: How many of its tokens are there for context only, before those that count.
        stop: Where those that count end.
        first: int64; where each word begins, counted from `skip`. The first may be the rest of a
            word of the window before.
        word: Number of the first word in the text.
    """

    owner: int
    ids: Int64
    skip: int
    stop: int
    first: Int64
    word: int


def windows(tokens: int, capacity: int) -> Iterator[tuple[int, int, int, int]]:
    """Cut a text of `tokens` tokens into windows of at most `capacity`.

    Yields ``(start, end, low, high)``: the window ``start:end`` and the tokens ``low:high`` that
    are taken from it. Every token is taken once, from the window where its nearer edge is
    furthest away; the edges of the text do not count as edges.
    """
    overlap = min(_OVERLAP, capacity // 4)
    start = low = 0
    while start + capacity < tokens:
        # The last window moves back, so that it is as long as the others.
        following = min(start + capacity - overlap, tokens - capacity)
        high = (following + start + capacity) // 2
        yield start, start + capacity, low, high
        start, low = following, high
    if tokens:
        yield start, tokens, low, tokens


def windows_of(owner: int, text: TokenizedText, capacity: int) -> Iterator[Window]:
    """Yield the windows of `text` that hold a word."""
    first, owned = text.words.first, text.words.owned
    if not owned:
        return
    if len(text.ids) <= capacity:
        yield Window(owner, text.ids, 0, owned, first, 0)
        return
    for start, end, low, high in windows(len(text.ids), capacity):
        stop = min(high, owned)
        if low >= stop:
            continue
        word = int(first.searchsorted(low, side="right")) - 1
        begins = np.maximum(first[word : first.searchsorted(stop)] - low, 0)
        yield Window(owner, text.ids[start:end], low - start, stop - start, begins, word)


def batches(rows: Sequence[Window], budget: int, special: int) -> Iterator[list[Window]]:
    """Group `rows` into batches of at most `budget` tokens with padding, longest rows first.

    A row longer than the budget is a batch of its own. Longest first, because many threads then
    finish at about the same time.
    """
    batch: list[Window] = []
    width = 0
    for row in sorted(rows, key=lambda one: len(one.ids), reverse=True):
        if not batch or (len(batch) + 1) * width > budget:
            if batch:
                yield batch
            batch, width = [], len(row.ids) + special
        batch.append(row)
    if batch:
        yield batch


class Chunk:
    """Some texts whose batches are running."""

    def __init__(
        self,
        texts: list[TokenizedText],
        dimension: int,
        pieces: Callable[[TokenizedText], tuple[Int32, Uint8]],
    ) -> None:
        self._texts = texts
        self._pieces = pieces
        self._dimension = dimension
        self._rows: list[list[tuple[Window, Future[list[Float32]], int]]] = [[] for _ in texts]
        self._running: list[Future[list[Float32]]] = []

    def expect(self, batch: list[Window], running: Future[list[Float32]]) -> None:
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
            yield Words(starts, ends, vectors, *self._pieces(text))

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

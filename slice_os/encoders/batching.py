"""Cutting texts into windows, grouping windows into batches, and the threads that run them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from slice_os.encoders.tokens import TokenizedText
from slice_os.errors import EncoderError
from slice_os.host import thread_pool
from slice_os.types import Float32


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
        self._executor = thread_pool(self._threads, "slice-os-encoder")
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
    for row in sorted(rows, key=lambda row: len(row.ids), reverse=True):
        if not batch or (len(batch) + 1) * width > budget:
            if batch:
                yield batch
            batch, width = [], len(row.ids) + special
        batch.append(row)
    if batch:
        yield batch


class RunningWindow(NamedTuple):
    """A window whose batch runs: its place there, and what will hold the sums of its words."""

    window: Window
    batch: Future[list[Float32]]
    place: int

    def sums(self) -> Float32:
        """Return the sums of its words' token vectors, ``[W, d]``, once they are there."""
        try:
            return self.batch.result()[self.place]
        except CancelledError as exc:
            raise EncoderError("The encoder was closed while it ran: load it again.") from exc

"""Documents that may have to be done again, and what is worked out ahead in a thread."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from queue import Full, Queue
from threading import Event, Lock, Thread
from typing import TypeVar

from slice_os.records import Document

T = TypeVar("T")
SETTLED_SECONDS = 120.0
"""After which a run commits, so that it need not keep what it may have to repeat,"""
SETTLED_CHARACTERS = 32_000_000
"""or after so many,"""
OVERHEAD = 1_000
"""of which a document without text is worth these."""


class Unsettled:
    """Documents, and again those that are not settled; threads may take turns."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._source = iter(documents)
        self._failed: Exception | None = None
        self._kept: list[Document] = []
        self._settled = self._done = self._met = self._size = 0
        self._due = time.monotonic() + SETTLED_SECONDS
        self._one = Lock()

    def __iter__(self) -> Iterator[Document]:
        at = self._settled
        while True:
            with self._one:
                if at - self._settled == len(self._kept) and not self._read():
                    return
                document = self._kept[at - self._settled]
            at += 1
            yield document

    def _read(self) -> bool:
        """Keep one more; False if there is none."""
        if self._failed is not None:
            raise self._failed
        try:
            document = next(self._source, None)
        except Exception as exc:
            self._failed = exc
            raise
        if document is not None:
            self._kept.append(document)
            self._size += OVERHEAD + len(str(document.metadata))
            self._size += len(document.text) if isinstance(document.text, str) else 0
        return document is not None

    @property
    def is_repeating(self) -> bool:
        """Whether the next to be done was done before."""
        return self._done < self._met

    def done(self) -> bool:
        """Note that one more is done; tell whether it is time to settle."""
        self._done += 1
        return self._size > SETTLED_CHARACTERS or time.monotonic() > self._due

    def settle(self) -> None:
        """Forget those that are done."""
        with self._one:
            del self._kept[: self._done - self._settled]
            self._settled, self._size = self._done, 0
        self._due = time.monotonic() + SETTLED_SECONDS

    def repeat(self) -> None:
        """Have those that are not settled done again."""
        self._met = max(self._met, self._done)
        self._done = self._settled


def ahead(items: Iterable[T], size: int) -> Generator[T, None, None]:
    """Yield `items`, up to `size` of them worked out ahead in a thread."""
    queue: Queue[T | _End] = Queue(size)
    abandoned = Event()

    def put(item: T | _End) -> bool:
        while not abandoned.is_set():
            with suppress(Full):
                queue.put(item, timeout=0.1)
                return True
        return False

    def work() -> None:
        try:
            if all(put(item) for item in items):
                put(_End(None))
        except BaseException as exc:
            put(_End(exc))

    Thread(target=work, name="slice-os-ahead", daemon=True).start()
    try:
        while not isinstance(item := queue.get(), _End):
            yield item
        if item.error is not None:
            raise item.error
    finally:
        abandoned.set()


@dataclass(frozen=True, slots=True)
class _End:
    error: BaseException | None

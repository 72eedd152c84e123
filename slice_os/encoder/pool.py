"""A thread pool that does not hold up the exit of the interpreter."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any

from slice_os.threads import Forkable


class Pool(Forkable):
    """Threads that each run one task after the other.

    A plain executor runs all that it was given before the interpreter may exit. This one gives it
    a task a thread, so that at exit, or after `close`, those finish and the rest is dropped.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self.forked()
        self.watch_forks()

    def forked(self) -> None:
        """Begin without threads and tasks: a child has none of its parent's threads."""
        self._executor = ThreadPoolExecutor(self._threads, "slice-os-encoder")
        self._busy = 0
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._lock = Lock()

    def submit(self, task: Callable[[], Any]) -> Future[Any]:
        """Return what will hold the result of `task`; it can be cancelled until it begins."""
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

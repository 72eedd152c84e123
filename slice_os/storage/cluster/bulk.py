"""Sending many operations: batches by bytes, in threads of their own, retried when refused.

opensearch-py's `streaming_bulk` retries neither 503 nor a cut connection and `parallel_bulk`
nothing at all, hence this.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, Queue
from time import monotonic

from slice_os.errors import BusyError, ClusterError, GoneError
from slice_os.storage.cluster.cluster_errors import (
    BUSY,
    TOO_LARGE,
    WRITE_RETRY_TIMEOUT,
    blocked_error,
    is_breaker,
    reason_of,
    with_retries,
)
from slice_os.storage.cluster.hold import await_block
from slice_os.storage.cluster.requests import Cluster
from slice_os.storage.cluster.responses import nested
from slice_os.types import Reject

BATCH_BYTES = 4_000_000
BATCH_OPERATIONS = 500
BATCH_SECONDS = 1.0
"""A batch is sent when its first operation is so old: a run that is throttled makes no bursts."""
SENDERS = 2
LAST_RETRY_TIMEOUT = 10.0
"""Seconds for which a batch is still retried when somebody waits for the end."""
WAITING = 2
"""Batches that wait for a sender: with those under way, what the client holds in memory."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: the lines of a _bulk body, whose it is, and its place if it is refused."""

    document: str
    place: str
    body: bytes


class BulkSender:
    """Sends operations as they come; `on_refused` is told in the caller's thread.

    An error that ends the sending is raised by the next call. Of two operations on one id only
    one may be under way: their order is not kept.
    """

    def __init__(self, cluster: Cluster, on_refused: Callable[[Reject], None]) -> None:
        self._cluster, self._url = cluster, cluster.url
        self._on_refused = on_refused
        self._batch: list[Operation] = []
        self._bytes = 0
        self._began = 0.0
        self._queue: Queue[list[Operation] | None] = Queue(WAITING)
        self._refused: deque[Reject] = deque()
        self._failed: list[BaseException] = []
        self._given_up = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, name="slice-os-bulk", daemon=True)
            for _ in range(SENDERS)
        ]
        for thread in self._threads:
            thread.start()

    def send(self, operation: Operation) -> None:
        """Take an operation; waits while enough is under way."""
        if self._batch and self._bytes + len(operation.body) > BATCH_BYTES:
            self._hand_over()
        if not self._batch:
            self._began = monotonic()
        self._batch.append(operation)
        self._bytes += len(operation.body)
        is_old = monotonic() - self._began > BATCH_SECONDS
        if is_old or len(self._batch) >= BATCH_OPERATIONS:
            self._hand_over()
        self._report()

    def flush(self) -> None:
        """Return when all that was sent is acknowledged or refused."""
        self._hand_over()
        self._queue.join()
        self._report()

    def stop_retrying(self) -> None:
        """Retry nothing for long from now on: what the cluster takes at once is still sent."""
        timer = threading.Timer(LAST_RETRY_TIMEOUT, self._given_up.set)
        timer.daemon = True
        timer.start()

    def close(self, *, abandon: bool = False) -> None:
        """Send the rest, or with `abandon` only what is on its way, and end the threads."""
        try:
            if abandon:
                self._given_up.set()
                self._batch = []
                with suppress(Empty):
                    while True:
                        self._queue.get_nowait()
                        self._queue.task_done()
            else:
                self.flush()
        finally:
            for _ in self._threads:
                self._queue.put(None)
            for thread in self._threads:
                thread.join()

    def _hand_over(self) -> None:
        if self._batch:
            self._queue.put(self._batch)  # Ctrl-C may break the wait off: not forgotten before
            self._batch, self._bytes = [], 0

    def _report(self) -> None:
        while self._refused:
            self._on_refused(self._refused.popleft())
        if self._failed:
            raise self._failed[0]

    def _refuse(self, operation: Operation, reason: str) -> None:
        reason = f"the cluster refuses it: {reason}"
        self._refused.append(Reject(operation.place, reason, operation.document))

    def _work(self) -> None:
        while (batch := self._queue.get()) is not None:
            try:
                if not self._failed:  # what is left is drained, so that nobody waits for it
                    self._deliver(batch)
            except BaseException as exc:
                self._failed.append(exc)
            finally:
                self._queue.task_done()
        self._queue.task_done()

    def _deliver(self, batch: Sequence[Operation]) -> None:
        """Send a batch until nothing of it is left to be retried."""
        rest = list(batch)

        def attempt() -> None:
            nonlocal rest
            # As bytes: more copies as large fragment the heap, and memory grows by the hour.
            body = b"".join(operation.body for operation in rest)
            results = self._cluster.bulk(body, len(rest))
            again, busy, blocked = [], "", None
            for operation, result in zip(rest, results, strict=True):
                error, reason = result.get("error"), reason_of(result)
                if nested(error, "type") == "index_not_found_exception":
                    raise GoneError(
                        f"The index {self._cluster.index} was deleted while it was written to: run "
                        "this again."
                    )
                block = blocked_error(self._url, reason) if error else None
                blocked = blocked or block
                if block or result["status"] in BUSY or is_breaker(error):
                    again.append(operation)
                    busy = reason
                elif error:
                    self._refuse(operation, reason)
            rest = again
            if blocked:
                await_block(self._cluster, blocked, self._given_up)
            if rest:
                raise BusyError(
                    f"{self._url} keeps refusing documents ({busy}): look at its load, then run "
                    "this again."
                )

        effort = self._cluster.client.effort
        try:
            with_retries(attempt, self._url, WRITE_RETRY_TIMEOUT, self._given_up, effort)
        except ClusterError as exc:
            if exc.status != TOO_LARGE:
                raise
            if len(rest) == 1:
                self._refuse(rest[0], "the passage is too large for a request")
                return
            middle = len(rest) // 2  # halves may do
            self._deliver(rest[:middle])
            self._deliver(rest[middle:])

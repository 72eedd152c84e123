"""How fast a run may go, and what it has taken: for every verb that works for long."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TypeVar

from slice_os.errors import LocationError

T = TypeVar("T")


class Throttle:
    """A token bucket: so many a second in the long run, and at once what a second brings.

    For one thread.

    Args:
        rate: How many a second; None for as many as come.

    Raises:
        LocationError: `rate` is not above 0.
    """

    def __init__(self, rate: float | None) -> None:
        if rate is not None and not rate > 0:  # NaN is not, either
            raise LocationError(f"max_rate must be above 0, not {rate}.")
        self._rate = rate
        self._capacity = self._tokens = max(rate or 0.0, 1.0)
        self._refilled = time.monotonic()

    def take(self, amount: int = 1) -> float:
        """Wait until `amount` more may be done; return for how many seconds."""
        if self._rate is None:
            return 0.0
        now = time.monotonic()
        refill = (now - self._refilled) * self._rate
        self._tokens = min(self._tokens + refill, self._capacity) - amount
        self._refilled = now
        if self._tokens >= 0:
            return 0.0
        time.sleep(-self._tokens / self._rate)
        return time.monotonic() - now


class Effort:
    """What work on an index has taken so far, by name; threads may count at once.

    Amounts:
        spans: Span vectors handed over to a cluster.
        retries: Requests, and parts of requests, that were sent again.
        encoding_seconds: Spent waiting for words and their vectors: reading and encoding.
        writing_seconds: Spent preparing what is written and handing it over, or writing it.
        sending_seconds: Of all requests to a cluster together; those under way at once add up.
        waiting_seconds: Held back: by a `Throttle`, or before a retry, in each thread.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._amounts: dict[str, float] = {
            "spans": 0,
            "retries": 0,
            "encoding_seconds": 0.0,
            "writing_seconds": 0.0,
            "sending_seconds": 0.0,
            "waiting_seconds": 0.0,
        }

    def add(self, **amounts: float) -> None:
        """Add amounts by name."""
        with self._lock:
            for name, amount in amounts.items():
                self._amounts[name] += amount

    def so_far(self) -> dict[str, float]:
        """Return all amounts by name."""
        with self._lock:
            return dict(self._amounts)

    def since(self, before: dict[str, float], report: object) -> None:
        """Set the attributes of a report to what has been added since a `so_far`."""
        for name, amount in self.so_far().items():
            setattr(report, name, amount - before[name])

    @contextmanager
    def spent(self, name: str) -> Iterator[None]:
        """Add the time that a block takes to an amount."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.add(**{name: time.monotonic() - began})

    def timed(self, items: Iterable[T], name: str) -> Iterator[T]:
        """Yield `items`; the time in which they come about is added to an amount."""
        source = ((item,) for item in items)
        while True:
            with self.spent(name):
                item = next(source, None)
            if item is None:
                return
            yield item[0]

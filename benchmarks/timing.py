"""Timing a piece of work."""

from __future__ import annotations

import time
from collections.abc import Callable


def seconds(work: Callable[[], object]) -> float:
    """Return how long `work` takes, in seconds."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start

"""Something that is done again and again while a block lasts, by a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread, current_thread

from slice_os.errors import ClusterError


@contextmanager
def repeated(work: Callable[[], object], seconds: float) -> Iterator[None]:
    """Do some work every so many seconds until the block ends; a cluster may be away meanwhile."""
    ended = Event()

    def run() -> None:
        while not ended.wait(seconds):
            with suppress(ClusterError):
                work()

    beat = Thread(target=run, name="slice-os-beat", daemon=True)
    beat.start()
    try:
        yield
    finally:
        ended.set()
        if current_thread() is not beat:  # in which an abandoned generator may be collected
            beat.join(1)  # what is under way is over then, unless the cluster is away

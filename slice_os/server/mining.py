"""Mining as a stream of JSON lines: what is found is sent at once, and no thread waits to send."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from itertools import islice
from threading import Event
from typing import Any

from slice_os.answers import mining_report, to_json
from slice_os.api import Index
from slice_os.errors import SliceOSError
from slice_os.options import MineOptions
from slice_os.server.bodies import MineBody, Texts, chosen
from slice_os.server.failures import failure
from slice_os.teaching.record import TaughtPhrase
from slice_os.types import Match

LINES = 500
"""Matches that are sent together at most."""
OFTEN = 0.25
"""Seconds after which what was found is sent, however little it is."""
EVERY = 1.0
"""Seconds between two lines on how far it is."""


class StoppedError(SliceOSError):
    """Mining was stopped before its end."""


class Stopping:
    """Whether the server is told to end: then what runs has some seconds more, and no second time.

    Attributes:
        seconds: How many.
    """

    seconds = 20.0

    def __init__(self) -> None:
        self._until = math.inf

    def begin(self) -> None:
        """Give what runs its last seconds; called again, none."""
        has_begun = self._until < math.inf
        self._until = time.monotonic() + (0 if has_begun else self.seconds)

    @property
    def is_over(self) -> bool:
        """Whether what still runs has to end."""
        return time.monotonic() > self._until


class Mining:
    """One mining: matches are taken in turns by a thread that is free between them.

    So who reads slowly, or not at all, holds no thread.

    Args:
        index: What is mined.
        body: What for.
        taught: Phrases that were taught, by name.
        seconds: How long it may take.
        stopping: Whether the server is told to end.
    """

    def __init__(
        self,
        index: Index,
        body: MineBody,
        taught: Mapping[str, TaughtPhrase],
        seconds: float,
        stopping: Stopping,
    ) -> None:
        self._index, self._body, self._taught = index, body, taught
        self._stopping = stopping
        self._deadline, self._seconds = time.monotonic() + seconds, seconds
        self._gone = Event()
        self._error: Exception | None = None
        self._share = 0.0
        self._unknown: list[str] = []
        self._counts: Counter[str] = Counter()
        self._matches: Iterator[Match] = iter(())

    def begin(self) -> None:
        """Encode the phrases; what is wrong with the request is raised here.

        Raises:
            QueryError: what `Index.mine` raises.
        """
        phrases = named(self._body.phrases)
        self._counts.update(dict.fromkeys([*self._taught, *phrases], 0))
        self._matches = self._index.mine(
            {**self._taught, **phrases},
            counter_examples=self._body.counter_examples,
            on_progress=self._progress,
            on_unknown=self._unknown.append,
            **chosen(self._body, MineOptions),
        )

    def _progress(self, share: float) -> None:
        self._share = share
        self._check()

    def _check(self) -> None:
        if self._gone.is_set():
            raise StoppedError("Whoever asked is gone.")
        if self._stopping.is_over:
            raise StoppedError("The server was stopped, what is above was found until then.")
        if time.monotonic() > self._deadline:
            raise StoppedError(
                f"Mining was stopped after {self._seconds:,.0f} seconds, what is above was found "
                "until then: mine with a filter, or for fewer phrases."
            )

    def _take(self) -> tuple[str, bool]:
        """Return the next lines, and whether there may be more; an error comes after them."""
        lines: list[str] = []
        until = time.monotonic() + OFTEN
        try:
            for match in islice(self._matches, LINES):
                self._check()
                self._counts[match.name] += 1
                lines.append(to_json(match.to_dict()) + "\n")
                if time.monotonic() > until:
                    return "".join(lines), True
        except Exception as exc:
            self._error = exc
            return "".join(lines), False
        return "".join(lines), len(lines) == LINES

    def close(self) -> None:
        """Let go of the index; not while matches are taken."""
        close: Callable[[], None] | None = getattr(self._matches, "close", None)
        if close:
            close()

    async def lines(self, executor: Executor) -> AsyncGenerator[str, None]:
        """Yield matches as they are found, and at last a line with the counts, or an error.

        Closing it, as when the client is gone, ends the mining.
        """
        loop = asyncio.get_running_loop()
        taking: asyncio.Future[tuple[str, bool]] | None = None
        try:
            more = True
            while more:
                taking = loop.run_in_executor(executor, self._take)
                while not (await asyncio.wait([taking], timeout=EVERY))[0]:
                    if self._body.progress:
                        yield to_json({"progress": round(self._share, 4)}) + "\n"
                found, more = taking.result()
                if found:
                    yield found
            error = failure(self._error) if self._error else {}
            yield to_json({"done": not error, **self._report(), **error}) + "\n"
        finally:
            self._gone.set()
            if taking is None or taking.done():
                self._let_go(executor)
            else:  # a generator cannot be closed while it runs
                taking.add_done_callback(lambda _: self._let_go(executor))

    def _let_go(self, executor: Executor) -> None:
        """Close what mines."""
        with suppress(RuntimeError):  # the server has ended, and so will the thread
            executor.submit(self.close)

    def _report(self) -> dict[str, Any]:
        return mining_report(self._body.min_degree, self._counts, self._unknown)


def named(phrases: Texts | Mapping[str, Texts]) -> dict[str, Texts]:
    """Return phrases by name; those without one are their own names."""
    if isinstance(phrases, Mapping):
        return dict(phrases)
    texts = (phrases,) if isinstance(phrases, str) else phrases
    return {text: text for text in texts}

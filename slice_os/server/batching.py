"""Queries that arrive together are searched together, and so encoded in one run.

There is no waiting for more: what arrives while a batch runs is the next batch. So a lone query is
as fast as the library, and many at once come near to what `Index.search_many` does.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from slice_os.answers import hit_rows, search_answer, to_json
from slice_os.api import TOGETHER, Index
from slice_os.options import SearchOptions
from slice_os.server.bodies import SearchBody, chosen
from slice_os.server.failures import OverloadedError
from slice_os.server.metrics import Metrics
from slice_os.types import Hit

MOST_WAITING = 1000
"""Searches that wait at most; more are refused, since they would wait too long."""


@dataclass(slots=True, eq=False)
class _Waiting:
    body: SearchBody
    answer: asyncio.Future[bytes]
    since: float


class SearchQueue:
    """The searches of one index, for one event loop.

    Args:
        index: What is searched.
        executor: Threads for it.
        workers: Batches that run at once.
        metrics: What counts them.
    """

    def __init__(self, index: Index, executor: Executor, workers: int, metrics: Metrics) -> None:
        self._index, self._executor, self._metrics = index, executor, metrics
        self._waiting: deque[_Waiting] = deque()
        self._idle = workers
        self._running: set[asyncio.Task[None]] = set()

    async def search(self, body: SearchBody) -> bytes:
        """Return the answer to a search, in JSON.

        Raises:
            OverloadedError: too many wait.
            QueryError: what `Index.search` raises.
        """
        if len(self._waiting) >= MOST_WAITING:
            raise OverloadedError(
                f"{MOST_WAITING:,} searches are waiting already: ask again in some seconds."
            )
        waiting = _Waiting(body, asyncio.get_running_loop().create_future(), time.perf_counter())
        self._waiting.append(waiting)
        self._metrics.waiting.inc()
        if self._idle:
            self._idle -= 1
            task = asyncio.create_task(self._work())
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        return await waiting.answer

    async def _work(self) -> None:
        """Search until nothing waits."""
        loop = asyncio.get_running_loop()
        try:
            while batch := self._next_batch():
                bodies = [waiting.body for waiting in batch]
                answers = await loop.run_in_executor(self._executor, self._searched, bodies)
                for waiting, answer in zip(batch, answers, strict=True):
                    if waiting.answer.done():  # who asked is gone
                        continue
                    if isinstance(answer, BaseException):
                        waiting.answer.set_exception(answer)
                    else:
                        waiting.answer.set_result(answer)
        finally:
            self._idle += 1

    def _next_batch(self) -> list[_Waiting]:
        """Take the search that has waited longest, and those that may run with it."""
        batch: list[_Waiting] = []
        others: deque[_Waiting] = deque()
        while self._waiting:
            waiting = self._waiting.popleft()
            if waiting.answer.done():
                self._metrics.waiting.dec()
            elif not batch or (len(batch) < TOGETHER and _alike(batch[0].body, waiting.body)):
                batch.append(waiting)
            else:
                others.append(waiting)
        self._waiting = others
        now = time.perf_counter()
        for waiting in batch:
            self._metrics.waiting.dec()
            self._metrics.stage("waiting", now - waiting.since)
        if batch:
            self._metrics.batch.observe(len(batch))
        return batch

    def _searched(self, bodies: Sequence[SearchBody]) -> list[bytes | BaseException]:
        """Return the answers to a batch; an error is that of its own query."""
        try:
            return [*self._together(bodies)]
        except Exception as exc:
            if len(bodies) == 1:
                return [exc]
        return [self._searched([body])[0] for body in bodies]

    def _together(self, bodies: Sequence[SearchBody]) -> list[bytes]:
        first, began = bodies[0], time.perf_counter()
        pages = self._index.search_many(
            [body.query or "" for body in bodies],
            liked=first.liked,
            disliked=first.disliked,
            **chosen(first, SearchOptions),
        )
        searched = time.perf_counter()
        self._metrics.stage("searching", searched - began)
        answers = [shown(self._index, hits, body) for hits, body in zip(pages, bodies, strict=True)]
        self._metrics.stage("showing", time.perf_counter() - searched)
        return answers


def shown(index: Index, hits: Sequence[Hit], body: SearchBody) -> bytes:
    """Return hits in JSON, with what stands around them if that was asked for."""
    excerpts = [
        index.show(hit.document, passage=hit.passage, context=body.context)
        if body.context
        else None
        for hit in hits
    ]
    rows = hit_rows(hits, excerpts, body.group)
    return to_json(search_answer(body.query or body.taught or "", rows, body.group)).encode()


def _alike(first: SearchBody, other: SearchBody) -> bool:
    """Tell whether two searches differ in nothing but the query and what is shown of a hit."""
    return all(
        getattr(first, name) == getattr(other, name)
        for name in (*SearchOptions.__struct_fields__, "liked", "disliked")
    )

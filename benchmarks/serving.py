"""Serving: what HTTP adds to a search, and many clients at once against `Index.search_many`."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import cycle
from pathlib import Path

import uvicorn

import slice_os
from benchmarks.text import EXAMPLES, phrases
from benchmarks.timing import seconds
from slice_os.server.app import create_app
from slice_os.server.process import listen
from slice_os.server.protocol import ImpatientProtocol

TITLE = "Serving"
LONE = int(os.environ.get("BENCHMARK_LONE", "300"))
CLIENTS = 32
SECONDS = float(os.environ.get("BENCHMARK_SECONDS", "60"))
STEADY = float(os.environ.get("BENCHMARK_STEADY", "420"))
"""Seconds in which clients ask nothing twice, while the server's memory is looked at."""
LOOKS = 12
TURNS = 4
"""Parts of the time in which clients ask, before and after each of which the library does."""
QUERIES = 300
"""Few, so that all is remembered that a server remembers, and memory grows only by a leak."""


def run(data: Path | None) -> list[str]:
    """Measure a lone client by turns with the library, then many clients."""
    queries = phrases(QUERIES)
    with tempfile.TemporaryDirectory() as temporary:
        location = str(Path(temporary) / "bench.slice")
        with slice_os.open(location) as index:
            index.add(slice_os.read(EXAMPLES))
            words = index.status().words
            with served(location) as (port, process):
                added = _lone(index, port, queries[:LONE])
                many = _many(index, port, process, queries)
            with served(location) as (port, process):
                memory = _memory(port, process)
            alone = _http_alone(index, queries)
    return [
        f"The examples, {words:,} words; hybrid searches as they are by default, 10 hits. The "
        "server is a process of its own; clients, server and library share the cores.",
        "",
        "| what | |",
        "|---|---:|",
        *(f"| {name} | {value} |" for name, value in (added | alone | many | memory).items()),
    ]


def _lone(index: slice_os.Index, port: int, queries: Sequence[str]) -> dict[str, str]:
    """Return what a client that asks one query after the other waits, and the library's time."""
    connection = _connection(port)
    ours: list[float] = []
    theirs: list[float] = []

    def timed(times: list[float], search: Callable[[str], object], query: str) -> None:
        began = time.perf_counter()
        search(query)
        times.append((time.perf_counter() - began) * 1e3)

    for query in [*queries[:10], *queries]:
        timed(ours, index.search, query)
        timed(theirs, partial(_ask, connection), query)
    ours, theirs = ours[10:], theirs[10:]  # the first load what is loaded when it is needed
    connection.close()
    library, server = statistics.median(ours), statistics.median(theirs)
    return {
        f"`index.search`, median of {len(ours)}": f"{library:.1f} ms",
        "the same over HTTP": f"{server:.1f} ms",
        "added": f"{server - library:.1f} ms",
    }


def _http_alone(index: slice_os.Index, queries: Sequence[str]) -> dict[str, str]:
    """Return what HTTP and JSON take by themselves, where the hits are there already."""
    hits = index.search(queries[0])
    index.search_many = lambda asked, **options: [hits] * len(asked)  # type: ignore
    listening = listen("127.0.0.1", 0)
    app = create_app({"bench": index})
    config = uvicorn.Config(app, http=ImpatientProtocol, lifespan="on", log_config=None)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    connection = _connection(listening.getsockname()[1])
    times = [seconds(partial(_ask, connection, query)) * 1e3 for query in queries][10:]
    connection.close()
    server.should_exit = True
    thread.join()
    listening.close()
    return {
        "a search over HTTP whose hits are there already, in one process with its client": (
            f"{statistics.median(times):.1f} ms"
        )
    }


def _many(index: slice_os.Index, port: int, process: int, queries: Sequence[str]) -> dict[str, str]:
    """Return throughput and waiting times of clients that ask without a pause."""
    rates: list[float] = []
    alone: list[float] = []
    together: list[float] = []
    waits: list[float] = []
    memory: list[int] = []
    asked, library, passed = iter(cycle(queries)), iter(cycle(queries)), 0.0

    index.search_many(queries)
    _clients(lambda: partial(_ask, _connection(port)), iter(queries), SECONDS)  # all of them once
    for _ in range(TURNS):
        before = time.process_time()
        count = len(_clients(lambda: index.search, library, SECONDS / TURNS / 4))
        alone.append((time.process_time() - before) / count)
        rate, processor = _search_many(index, library)
        rates.append(rate)
        together.append(processor)
        memory.append(_resident(process))
        began = time.perf_counter()
        waits += _clients(lambda: partial(_ask, _connection(port)), asked, SECONDS / TURNS)
        passed += time.perf_counter() - began
        memory.append(_resident(process))
    rates.append(_search_many(index, library)[0])
    rate, rate_of_library = len(waits) / passed, statistics.mean(rates)
    waits.sort()
    middle, late = (waits[int(share * len(waits))] * 1e3 for share in (0.5, 0.99))
    return {
        f"{CLIENTS} clients for {passed:.0f} s: answers, errors": f"{len(waits):,}, 0",
        "searches a second": f"{rate:.1f}",
        f"`search_many`, before, between and after, {TURNS + 1} times": f"{rate_of_library:.1f}",
        "share of that": f"{rate / rate_of_library:.2f}",
        f"processor's time a search: by {CLIENTS} threads of the library, `search_many`": (
            f"{statistics.mean(alone) * 1e3:.0f} ms, {statistics.mean(together) * 1e3:.0f} ms"
        ),
        "waiting time: median, 99 of 100, their quotient": f"{middle:.0f} ms, {late:.0f} ms, "
        f"{late / middle:.1f}",
        "memory of the server: first, last": f"{memory[0] >> 20} MB, {memory[-1] >> 20} MB",
    }


def _memory(port: int, process: int) -> dict[str, str]:
    """Return the memory of a fresh server, again and again while all its clients ask it."""
    asked, seen = iter(phrases(20_000)), [_resident(process)]
    for _ in range(LOOKS):
        _clients(lambda: partial(_ask, _connection(port), size=50), asked, STEADY / LOOKS)
        seen.append(_resident(process))
    return {
        f"memory of a fresh server and, as {CLIENTS} clients ask nothing twice and for 50 hits, "
        f"after each {STEADY / LOOKS:.0f} s": ", ".join(f"{size >> 20}" for size in seen) + " MB"
    }


def _connection(port: int) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", port)


def _search_many(index: slice_os.Index, queries: Iterator[str]) -> tuple[float, float]:
    """Return how many searches a second the library does, and the processor's time of each."""
    count, began, before = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - began < SECONDS / TURNS / 2:
        batch = [next(queries) for _ in range(64)]
        index.search_many(batch)
        count += len(batch)
    return count / (time.perf_counter() - began), (time.process_time() - before) / count


def _clients(
    connect: Callable[[], Callable[[str], object]], queries: Iterator[str], duration: float
) -> list[float]:
    """Return how long each answer took, in seconds, of clients that ask one after the other.

    They end after some seconds, or when there is no query left.
    """
    waits: list[float] = []
    lock = threading.Lock()
    failed: list[Exception] = []
    until = time.perf_counter() + duration

    def ask() -> None:
        try:
            search = connect()
            while time.perf_counter() < until:
                with lock:
                    query = next(queries, None)
                if query is None:
                    return
                began = time.perf_counter()
                search(query)
                waits.append(time.perf_counter() - began)
        except Exception as exc:
            failed.append(exc)

    threads = [threading.Thread(target=ask) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return waits


def _ask(connection: http.client.HTTPConnection, query: str, **options: int) -> None:
    body = json.dumps({"query": query, **options})
    connection.request("POST", "/api/search", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{answer.status}: {content[:200]!r}")


def _resident(process: int) -> int:
    """Return the bytes that a process has in memory."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def served(location: str, *more: str) -> Iterator[tuple[int, int]]:
    """Give the port and the process id of a server."""
    arguments = ["-m", "slice_os", "serve", "--index", location, "--port", "0", *more]
    server = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert server.stdout is not None
        found = re.search(r":(\d+)/", server.stdout.readline())
        if found is None:
            raise RuntimeError("the server did not start")
        yield int(found[1]), server.pid
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()

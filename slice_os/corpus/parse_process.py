"""A process in which files are parsed: what a hostile one does to it, it does to nobody else.

It may take `MEMORY` more than it began with and `SECONDS` of processor time, more for large files;
a parser that takes more, or breaks, costs its file. It is used again for the next file. Where
the system has no such limits (Windows), there is a deadline alone.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib import import_module
from threading import Timer
from typing import Any, BinaryIO

from slice_os.corpus.formats.base import Parsed, Row
from slice_os.errors import CorpusError, MissingExtraError

MEMORY = 512 << 20
"""Bytes."""
SECONDS = 5
"""Of processor time, and as many for each MiB of a file."""
_PATIENCE = 6
"""The deadline is so many times that: others may use the processor, too."""
_BATCH = 1 << 18
"""Characters of rows that are sent at once."""
_START = (
    "import sys; sys.path[:] = sys.argv[1:];"
    "from slice_os.corpus.parse_process import serve; serve()"
)
# One thread, and no arena of memory for each: they count as memory that is taken.
_ENVIRONMENT = {
    "MALLOC_ARENA_MAX": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
    "RUST_BACKTRACE": "0",
    "TOKIO_WORKER_THREADS": "1",
}

Parse = Callable[[bytes], Parsed]
ParseRows = Callable[[BinaryIO], Iterator[Row]]


def parse_apart(parse: Parse, data: bytes) -> Parsed:
    """Return what a function of a module, `parse`, returns in another process.

    Raises:
        CorpusError: it raised one, or took too much.
        MissingExtraError: it raised one.
    """
    (said,) = _ask(parse, data)
    return Parsed(**said)


def rows_apart(parse: ParseRows, data: bytes) -> Iterator[Row]:
    """Yield what a function of a module, `parse`, yields in another process; see `parse_apart`."""
    for said in _ask(parse, data):
        yield Row(**said)


def _ask(parse: Parse | ParseRows, data: bytes) -> Iterator[dict[str, Any]]:
    worker = _idle.pop() if _idle else _Worker()
    if worker.owner != os.getpid():  # it belongs to the process that this one was forked from
        worker = _Worker()
    try:
        yield from worker.ask(f"{parse.__module__}:{parse.__qualname__}", data)
    finally:
        if worker.is_free:
            _idle.append(worker)
        else:
            worker.close()


class _Worker:
    """One such process."""

    def __init__(self) -> None:
        self.owner, self.is_free = os.getpid(), True
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, *sys.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **_ENVIRONMENT},
        )

    def ask(self, parse: str, data: bytes) -> Iterator[dict[str, Any]]:
        self.is_free = False
        seconds = SECONDS * (1 + (len(data) >> 20))
        asked = {"parse": parse, "size": len(data), "seconds": seconds}
        pipe = self._process.stdin
        assert pipe is not None
        left = float(seconds * _PATIENCE)
        with contextlib.suppress(BrokenPipeError), self._deadline(left):
            pipe.write(json.dumps(asked).encode() + b"\n")
            pipe.write(data)
            pipe.flush()
        while True:
            with self._deadline(left):
                line = self._process.stdout.readline()  # type: ignore[union-attr]
            if not line.endswith(b"\n"):
                raise CorpusError(self._death(seconds))
            answer = json.loads(line)
            if "end" in answer:
                self.is_free = True
                return
            if "error" in answer:
                self.is_free = True
                raise _error(answer)
            yield from answer["items"]

    @contextlib.contextmanager
    def _deadline(self, seconds: float) -> Iterator[None]:
        timer = Timer(seconds, self._process.kill)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _death(self, seconds: int) -> str:
        ended = -self._process.wait()
        if ended in (signal.SIGKILL, getattr(signal, "SIGXCPU", None)):
            return f"is given up: reading it takes more than {seconds} s; save it in another format"
        return (
            "cannot be read: it breaks its reader, or takes more than "
            f"{MEMORY >> 20} MB of memory; save it in another format, or split it"
        )

    def close(self) -> None:
        """End the process, whatever it does."""
        if self.owner != os.getpid():
            return
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]
        self._process.wait()


_idle: list[_Worker] = []


@atexit.register
def _close_idle() -> None:
    while _idle:
        _idle.pop().close()


def _error(answer: dict[str, str]) -> Exception:
    if answer["extra"]:
        found = MissingExtraError("", answer["extra"])
        found.args = (answer["error"],)
        return found
    return CorpusError(answer["error"])


def serve() -> None:
    """Parse what comes by standard input, in a process that was made for it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asks ends this one
    asked, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # which libraries may use
        os.dup2(nothing, stream)
    while line := asked.readline():
        job = json.loads(line)
        data = asked.read(job["size"])
        if len(data) < job["size"]:
            return
        module, _, name = job["parse"].partition(":")
        for answer in _answers(getattr(import_module(module), name), data, job["seconds"]):
            answers.write(json.dumps(answer).encode() + b"\n")
            answers.flush()


def _answers(parse: Any, data: bytes, seconds: int) -> Iterator[dict[str, Any]]:
    _limit(seconds)
    whole = parse.__annotations__["return"] in (Parsed, "Parsed")
    try:
        if whole:
            yield {"items": [asdict(parse(data))]}
        else:
            yield from _batches(parse(io.BytesIO(data)))
    except MissingExtraError as exc:
        yield {"error": str(exc), "extra": exc.extra}
    except CorpusError as exc:
        yield {"error": str(exc), "extra": ""}
    except RecursionError:
        yield {"error": "is nested too deeply", "extra": ""}
    except MemoryError:
        yield {"error": f"takes more than {MEMORY >> 20} MB of memory: split it", "extra": ""}
    else:
        yield {"end": True}


def _batches(rows: Iterator[Row]) -> Iterator[dict[str, Any]]:
    batch: list[dict[str, Any]] = []
    size = 0
    failed: Exception | None = None
    try:
        for row in rows:
            batch.append(asdict(row))
            size += sum(map(len, map(str, row.values.values())))
            if size > _BATCH or len(batch) == 1000:
                yield {"items": batch}
                batch, size = [], 0
    except (CorpusError, MissingExtraError, RecursionError) as exc:
        failed = exc
    yield {"items": batch}  # what was read before an error is good
    if failed:
        raise failed


def _limit(seconds: int) -> None:
    """Limit what this process may take from now on."""
    try:
        import resource
    except ImportError:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = int(used.ru_utime + used.ru_stime) + 1 + seconds
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (most, hard))
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
            pages = int(file.read().split()[0])
    except OSError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, hard))

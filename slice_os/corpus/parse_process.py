"""A process in which files are parsed: what a hostile file does to it, it does to nobody else.

Each file may take `MEMORY` and `SECONDS` of processor time; one that takes more, or breaks its
parser, is rejected. The process is used again for the next file, and ends with the one that
started it. Limits of memory are Linux's; where there are none at all (Windows), a deadline holds.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from slice_os.corpus.formats.base import Parsed, Row
from slice_os.errors import CorpusError, MissingExtraError

MEMORY = 512 << 20
"""Bytes, more than the process began with."""
SECONDS = 5
"""Of processor time, and as many for each MiB of a file."""
_DEADLINE = 6
"""Times as many seconds may pass: others use the processor, too."""
_TIMED_OUT = 1
"""The exit status of a process that is past its deadline."""
_KILLED = [-getattr(signal, name) for name in ("SIGKILL", "SIGXCPU") if hasattr(signal, name)]
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

Process = subprocess.Popen[bytes]
Parse = Callable[[bytes], Parsed]
ParseRows = Callable[[BinaryIO], Iterator[Row]]

_idle: list[Process] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)


def parse_apart(parse: Parse, data: bytes) -> Parsed:
    """Return what a function of a module, `parse`, returns in another process.

    Raises:
        CorpusError: it raised one, lacks an extra, or took too much.
    """
    (fields,) = _run(parse, data, whole=True)
    return Parsed(**fields)


def rows_apart(parse: ParseRows, data: bytes) -> Iterator[Row]:
    """Yield what a function of a module, `parse`, yields in another process; see `parse_apart`."""
    for fields in _run(parse, data, whole=False):
        yield Row(**fields)


def _run(parse: Parse | ParseRows, data: bytes, *, whole: bool) -> Iterator[dict[str, Any]]:
    process = _idle.pop() if _idle else _started()
    assert process.stdin
    assert process.stdout
    seconds = SECONDS * (1 + (len(data) >> 20))
    job = {
        "module": parse.__module__,
        "function": parse.__qualname__,
        "whole": whole,
        "size": len(data),
        "seconds": seconds,
        "deadline": seconds * _DEADLINE,
    }
    done = False
    try:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(job).encode() + b"\n" + data)
            process.stdin.flush()
        while not done:
            line = process.stdout.readline()
            if not line.endswith(b"\n"):
                raise CorpusError(_death(process.wait(), seconds))
            answer = json.loads(line)
            yield from answer["items"]
            done = answer["done"]
        if answer["error"]:
            raise CorpusError(answer["error"])
    finally:
        if done:
            _idle.append(process)
        else:
            _close(process)


def _started() -> Process:
    return subprocess.Popen(
        [sys.executable, "-c", _START, *sys.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,  # nothing is written there; see `_end_with_reader_of`
        env={**os.environ, **_ENVIRONMENT},
    )


def _death(status: int, seconds: int) -> str:
    """Return why a process ended before it answered."""
    if status in (_TIMED_OUT, *_KILLED):
        return f"is given up: reading it takes more than {seconds} s; save it in another format"
    return (
        "cannot be read: it breaks its reader, or takes more than "
        f"{MEMORY >> 20} MB of memory; save it in another format, or split it"
    )


def _close(process: Process) -> None:
    process.kill()
    for pipe in (process.stdin, process.stdout, process.stderr):
        with contextlib.suppress(OSError):
            pipe.close()  # type: ignore[union-attr]
    process.wait()


@atexit.register
def _close_idle() -> None:
    while _idle:
        _close(_idle.pop())


def serve() -> None:
    """Parse what comes by standard input, in a process that was made for it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asks ends this one
    jobs, results = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    _end_with_reader_of(os.dup(2))
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # which libraries may use
        os.dup2(nothing, stream)
    while line := jobs.readline():
        job = json.loads(line)
        data = jobs.read(job["size"])
        if len(data) < job["size"]:
            return
        _limit(job["seconds"])
        answers, done = _answers(job, data), False
        while not done:
            faulthandler.dump_traceback_later(job["deadline"], exit=True, file=nothing)
            answer = next(answers)
            faulthandler.cancel_dump_traceback_later()  # who reads the answer may take long
            results.write(json.dumps(answer).encode() + b"\n")
            results.flush()
            done = answer["done"]


def _end_with_reader_of(pipe: int) -> None:
    """Have the kernel end this process, however busy, when nobody holds the other end of a pipe.

    Not by PR_SET_PDEATHSIG, which tells of the end of the thread that started this process.
    """
    if sys.platform == "linux":
        import fcntl

        fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)


def _answers(job: dict[str, Any], data: bytes) -> Iterator[dict[str, Any]]:
    """Yield what is parsed, in batches; what was read before an error is kept."""
    items: list[dict[str, Any]] = []
    size, error = 0, ""
    try:
        parse = getattr(import_module(job["module"]), job["function"])
        for item in [parse(data)] if job["whole"] else parse(io.BytesIO(data)):
            items.append(asdict(item))
            size += 0 if job["whole"] else sum(map(len, map(str, item.values.values())))
            if size > _BATCH or len(items) == 1000:
                yield {"items": items, "done": False}
                items, size = [], 0
    except (CorpusError, MissingExtraError) as exc:
        error = str(exc)
    except RecursionError:
        error = "is nested too deeply"
    except MemoryError:
        items, error = [], f"takes more than {MEMORY >> 20} MB of memory: split it"
    except Exception as exc:
        error = f"cannot be read: it breaks its reader ({type(exc).__name__}: {exc})"
    yield {"items": items, "error": error, "done": True}


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
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, hard))

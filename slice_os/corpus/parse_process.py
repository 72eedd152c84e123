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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from slice_os.corpus.formats.base import Parsed, Row
from slice_os.corpus.read_at import ReadAt
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
_AT_ONCE = 1 << 16
"""Bytes of a file that are asked for at least."""
_BATCH = 1 << 18
"""Characters of rows that are sent at once."""
_START = (
    "import sys; sys.path[:] = sys.argv[1:];"
    "from slice_os.corpus.parse_process import serve; serve()"
)
# One thread, and no arena of memory for each: they count as memory that is taken.
_ENVIRONMENT = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "ARROW_IO_THREADS": "1",
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
Ask = Callable[[int, int], bytes]
"""Returns the bytes of a file at an offset, as many as are asked for."""

_idle: list[Process] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)


def parse_apart(parse: Parse, data: bytes) -> Parsed:
    """Return what a function of a module, `parse`, returns in another process.

    Raises:
        CorpusError: it raised one, lacks an extra, or took too much.
    """
    (fields,) = _run(parse, io.BytesIO(data), whole=True)
    return Parsed(**fields)


def rows_apart(parse: ParseRows, file: BinaryIO) -> Iterator[Row]:
    """Yield what a function of a module, `parse`, yields in another process; see `parse_apart`.

    Of the file it is given what it asks for.
    """
    for fields in _run(parse, file, whole=False):
        yield Row(**fields)


def _run(parse: Parse | ParseRows, file: BinaryIO, *, whole: bool) -> Iterator[dict[str, Any]]:
    size = file.seek(0, io.SEEK_END)
    process = _idle.pop() if _idle else _started()
    assert process.stdout
    seconds = SECONDS * (1 + (size >> 20))
    job = {
        "module": parse.__module__,
        "function": parse.__qualname__,
        "whole": whole,
        "size": size,
        "seconds": seconds,
        "deadline": seconds * _DEADLINE,
    }
    done = False
    try:
        _send(process, json.dumps(job).encode() + b"\n")
        while not done:
            line = process.stdout.readline()
            if not line.endswith(b"\n"):
                raise CorpusError(_death(process.wait(), seconds))
            answer = json.loads(line)
            if "at" in answer:
                file.seek(answer["at"])
                data = file.read(answer["size"])
                if len(data) < answer["size"]:
                    raise CorpusError("has become shorter while it was read: run this again")
                _send(process, data)
                continue
            yield from answer["items"]
            done = answer["done"]
        if answer["error"]:
            raise CorpusError(answer["error"])
    finally:
        if done:
            _idle.append(process)
        else:
            _close(process)


def _send(process: Process, data: bytes) -> None:
    assert process.stdin
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(data)
        process.stdin.flush()


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
        _do(json.loads(line), jobs, results, nothing)


def _do(job: dict[str, Any], jobs: BinaryIO, results: BinaryIO, nothing: int) -> None:
    watch = partial(faulthandler.dump_traceback_later, job["deadline"], exit=True, file=nothing)

    def answer(item: Mapping[str, Any]) -> None:
        faulthandler.cancel_dump_traceback_later()  # who reads the answer may take long
        results.write(json.dumps(item).encode() + b"\n")
        results.flush()

    def ask(at: int, size: int) -> bytes:
        answer({"at": at, "size": size})
        data = jobs.read(size)
        if len(data) < size:  # nobody is there any more
            os._exit(0)
        watch()
        return data

    _limit(job["seconds"])
    watch()
    for item in _answers(job, ask):
        answer(item)
        watch()
    faulthandler.cancel_dump_traceback_later()


class _Asked(ReadAt):
    """A file of which another process gives what is asked for."""

    def __init__(self, ask: Ask, size: int) -> None:
        self._ask, self._size = ask, size

    def _read_at(self, at: int, size: int) -> bytes:
        return self._ask(at, size)


def _end_with_reader_of(pipe: int) -> None:
    """Have the kernel end this process, however busy, when nobody holds the other end of a pipe.

    Not by PR_SET_PDEATHSIG, which tells of the end of the thread that started this process.
    """
    if sys.platform == "linux":
        import fcntl

        fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)


def _answers(job: dict[str, Any], ask: Ask) -> Iterator[dict[str, Any]]:
    """Yield what is parsed, in batches; what was read before an error is kept."""
    items: list[dict[str, Any]] = []
    held, error = 0, ""
    try:
        parse = getattr(import_module(job["module"]), job["function"])
        size = job["size"]
        if job["whole"]:
            parsed = iter([parse(ask(0, size))])
        else:
            parsed = parse(io.BufferedReader(_Asked(ask, size), _AT_ONCE))
        for item in parsed:
            items.append(asdict(item))
            held += 0 if job["whole"] else sum(map(len, map(str, item.values.values())))
            if held > _BATCH or len(items) == 1000:
                yield {"items": items, "done": False}
                items, held = [], 0
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

"""BLAS kept to one thread while slice-os computes, pools of threads, and notes of processes.

For products as small as those of a search, BLAS's threads cost more than they save, and they spin
for a while afterwards, beside whatever else has work.
"""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any


@cache
def _libraries() -> Any:
    """Return the libraries that are loaded: to look for them takes longer than to limit them."""
    import numpy  # noqa: F401 - brings its BLAS
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _give_up_control() -> None:
    """Let any thread set the limit: threadpoolctl obeys only the one that set it first."""
    for library in _libraries().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


class _OneBlasThread:
    """The limit is set by the first block that is entered, and lifted when the last is left."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._blocks = 0
        self._limit: Any = None

    @contextmanager
    def block(self) -> Iterator[None]:
        """Keep BLAS to one thread in a block; afterwards it has as many as it had before."""
        with self._lock:
            if not self._blocks:
                self._limit = _libraries().limit(limits=1, user_api="blas")
            self._blocks += 1
        try:
            yield
        finally:
            with self._lock:
                self._blocks -= 1
                if not self._blocks:
                    _give_up_control()
                    self._limit.restore_original_limits()
                    _give_up_control()


one_blas_thread = _OneBlasThread().block


def thread_pool(threads: int, name: str) -> ThreadPoolExecutor:
    """Return an executor all of whose threads run.

    `submit` starts a thread and then notes it. An interrupt in between leaves a thread that nobody
    tells to end, and the interpreter waits for it at its exit. Only the main thread is
    interrupted, so another one starts them.
    """
    pool = ThreadPoolExecutor(threads, name)
    are_started = Event()

    def start() -> None:
        try:
            for _ in range(threads):  # each is busy until all run, so each takes a thread
                pool.submit(are_started.wait)
        except RuntimeError:  # the interpreter exits already
            pass
        finally:
            are_started.set()

    starter = Thread(target=start, name=f"{name}-starter", daemon=True)
    starter.start()
    starter.join()
    return pool


def this_process() -> dict[str, Any]:
    """Return what notes in an index say of the process that writes them: who, where, which."""
    process = os.getpid()
    by = f"{socket.gethostname()} (process {process})"
    with suppress(Exception):  # a user without a name
        by = f"{getpass.getuser()}@{by}"
    return {"by": by, **_where(), "process": process}


def _where() -> dict[str, str]:
    """Return where the numbers of processes count: containers of one host have their own."""
    pids = ""
    with suppress(OSError):  # not Linux
        pids = str(Path("/proc/self/ns/pid").readlink())
    return {"host": socket.gethostname(), "pids": pids}


def is_gone(noted: Mapping[str, Any]) -> bool:
    """Tell whether a process that was noted has ended, as far as can be told from here."""
    if os.name == "nt" or not noted.items() >= _where().items():
        return False
    try:
        os.kill(noted["process"], 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    with suppress(OSError):  # Linux also says whether its parent has yet to take note of its end.
        stat = Path(f"/proc/{noted['process']}/stat").read_bytes()
        return stat.rpartition(b")")[2].split()[0] in b"ZX"
    return False

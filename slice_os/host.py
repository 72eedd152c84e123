"""Threads, and the processes that are forked off a process that has some.

BLAS is kept to one thread: for products as small as those of a search, BLAS's threads cost more
than they save, and they spin for a while afterwards, beside whatever else has work.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Condition, Lock, local
from typing import Any
from weakref import WeakValueDictionary

FORK_WAIT = 10.0
"""Seconds that a fork waits for what other threads are within."""


@cache
def _libraries() -> Any:
    """Return the libraries that are loaded: to look for them takes longer than to limit them."""
    import numpy  # noqa: F401 - brings its BLAS
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _give_up_control() -> None:
    for library in _libraries().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


class Forkable:
    """What holds threads, locks or connections, which a forked process has to make anew.

    A subclass calls `watch_forks` once it is made.
    """

    def watch_forks(self) -> None:
        """Have the methods below called at every fork, as long as this exists."""
        _forkable[id(self)] = self

    def before_fork(self) -> None:
        """Let go of what must not be shared; in the parent, in the thread that forks."""

    def after_fork(self) -> None:
        """Go on in the parent."""

    def forked(self) -> None:
        """Make anew, in the child, what it cannot use of its parent's."""


_forkable: WeakValueDictionary[int, Forkable] = WeakValueDictionary()
_forking: list[Forkable] = []
_one_fork = Lock()


def _before_fork() -> None:
    _one_fork.acquire()
    # The references are listed in one step: another thread may be adding one.
    _forking[:] = [one for ref in _forkable.valuerefs() if (one := ref()) is not None]
    for one in _forking:
        one.before_fork()


def _after_fork() -> None:
    for one in _forking:
        one.after_fork()
    _forking.clear()
    _one_fork.release()


def _forked() -> None:
    for one in _forking:
        one.forked()
    _forking.clear()
    _one_fork.release()


class _Whole(Forkable):
    """Work that a fork does not cut: it waits until none is under way, and none begins meanwhile.

    For libraries whose own locks the child would find locked: SQLite, onnxruntime.
    """

    def __init__(self) -> None:
        self._own = local()
        self.forked()
        self.watch_forks()

    @contextmanager
    def work(self) -> Iterator[None]:
        """Keep forks out of a block, for `FORK_WAIT` seconds at most."""
        if self._is_within():
            yield
            return
        with self._gate, self._ended:
            self._inside += 1
        self._own.within = True
        try:
            yield
        finally:
            self._own.within = False
            with self._ended:
                self._inside -= 1
                self._ended.notify_all()

    def _is_within(self) -> bool:
        return getattr(self._own, "within", False)

    def before_fork(self) -> None:
        self._gate.acquire()
        with self._ended:
            self._ended.wait_for(lambda: self._inside <= self._is_within(), FORK_WAIT)

    def after_fork(self) -> None:
        self._gate.release()

    def forked(self) -> None:
        self._gate, self._ended = Lock(), Condition()
        self._inside = int(self._is_within())


whole_at_fork = _Whole().work


class _OneBlasThread(Forkable):
    """BLAS is limited for the whole process: by the first that is within, until the last is out."""

    def __init__(self) -> None:
        self._own = local()
        self._limit: Any = None
        self.forked()
        self.watch_forks()

    @contextmanager
    def work(self) -> Iterator[None]:
        """Keep BLAS to one thread in a block; afterwards it has as many as it had before."""
        if self._is_within():
            yield
            return
        with self._one:
            if not self._inside:
                self._limit = _libraries().limit(limits=1, user_api="blas")
            self._inside += 1
        self._own.within = True
        try:
            yield
        finally:
            self._own.within = False
            with self._one:
                self._inside -= 1
                self._restore()

    def _is_within(self) -> bool:
        return getattr(self._own, "within", False)

    def _restore(self) -> None:
        if self._limit is not None and not self._inside:
            _give_up_control()  # threadpoolctl takes orders from the thread of the first alone
            self._limit.restore_original_limits()
            _give_up_control()
            self._limit = None

    def before_fork(self) -> None:
        self._one.acquire()

    def after_fork(self) -> None:
        self._one.release()

    def forked(self) -> None:
        self._one = Lock()
        self._inside = int(self._is_within())  # other threads are not there
        self._restore()


one_blas_thread = _OneBlasThread().work

if hasattr(os, "register_at_fork"):
    # Hooks that were registered first run last: these two hold locks that a search may wait for.
    import concurrent.futures.thread  # noqa: F401
    import logging  # noqa: F401

    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_forked)

"""Who builds the next generation of an index: a note in it, renewed while it is built."""

from __future__ import annotations

import getpass
import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timezone
from threading import Event, Lock, Thread
from typing import Any
from uuid import uuid4

from slice_os.errors import IndexLockedError, SliceOSError
from slice_os.host import is_gone, this_process
from slice_os.storage import Backend
from slice_os.storage.contract import Generation

LEASE = 60.0
"""Seconds after which somebody who builds and has not said so is taken for dead.

They are counted by the clock of who waits for it, however the other's goes.
"""
BEATS = 6
"""How often it is said in that time."""


def find_build(live: Backend) -> Generation | None:
    """Return the generation that was begun and is not live.

    Where it cannot be told whether who builds it is dead, it takes up to `LEASE` seconds.

    Raises:
        IndexLockedError: somebody is building it, or making it live.
    """
    found = _begun(live)
    if found is None or _is_left(found.build):
        return found
    began = time.monotonic()
    while time.monotonic() - began < LEASE:
        time.sleep(LEASE / BEATS / 10)
        now = _begun(live)
        if now is None or now.build != found.build:
            build = (now or found).build
            raise IndexLockedError(
                f"The next generation of {live.location} is being built by {build.get('by')} since "
                f"{build.get('since')}, {build.get('done', 0):,} of {build.get('of', 0):,} "
                "documents: wait for it to end, or stop it."
            )
    return found


def _begun(live: Backend) -> Generation | None:
    found = [one for one in live.generations() if one.state in ("building", "ready")]
    return found[-1] if found else None


def _is_left(build: Mapping[str, Any]) -> bool:
    """Tell whether nobody is at it, as far as can be told at once and from here."""
    return not build.get("beat") or build.get("by") == _me() or is_gone(build)


def _me() -> str:
    with suppress(Exception):  # a user without a name
        return f"{getpass.getuser()}@{socket.gethostname()} (process {os.getpid()})"
    return f"{socket.gethostname()} (process {os.getpid()})"


class Lease:
    """The right to build a generation, or to make it live; a thread of its own renews it.

    Of two that take over from a dead one in the same moment, one gets it.

    Args:
        target: The generation.
        source: From what it is made.
        build: What was noted of it when it was found, if it was there.
        state: ``building``, or ``ready`` to be made live.
        noted: Whether there is a note at all: a copy elsewhere has none.

    Raises:
        IndexLockedError: somebody else has got it.
    """

    def __init__(
        self,
        target: Backend,
        source: str,
        build: Generation | None = None,
        *,
        state: str = "building",
        noted: bool = True,
    ) -> None:
        self._target, self._noted = target, noted
        self.number = build.number if build else target.generations()[-1].number
        self._said: dict[str, Any] = {
            "state": state,
            "by": _me(),
            **this_process(),
            "source": source,
            "since": datetime.now(tz=timezone.utc).isoformat(timespec="seconds"),
            "token": uuid4().hex,
            "beat": 0,
        }
        self._one, self._ended, self._lost = Lock(), Event(), False
        self._note(build.build.get("token") if build else None)
        self._thread = Thread(target=self._beat, name="slice-os-lease", daemon=True)

    def _note(self, token: str | None, **more: Any) -> None:
        """Renew the note if it is that of a token."""
        if not self._noted:
            return
        with self._one:
            said = {**self._said, "beat": self._said["beat"] + 1, **more}
            self._lost = self._lost or not self._target.note_build(said, token)
            if self._lost:
                raise IndexLockedError(
                    f"Somebody else has taken over the generation {self.number} of "
                    f"{self._target.location}: leave it to them."
                )
            self._said = said

    def _beat(self) -> None:
        while not self._ended.wait(LEASE / BEATS):
            try:
                self.check()
            except IndexLockedError:  # which whoever builds is told, too
                return
            except (SliceOSError, OSError):  # the cluster is away, say
                continue

    def _stop(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(1)

    def __enter__(self) -> Lease:
        if self._noted:
            self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._stop()
        if kind not in (None, IndexLockedError):
            with suppress(Exception):  # it may be taken over at once
                self._note(self._said["token"], beat=0)

    def check(self) -> None:
        """Renew the lease; raise IndexLockedError if somebody else has it."""
        self._note(self._said["token"])

    def renew(self, done: int, of: int) -> None:
        """Have the next renewal say how far it is; raise as `check` if the lease is lost."""
        if self._lost:
            self.check()
        self._said |= {"done": done, "of": of}

    def passed(self) -> None:
        """Say that it is whole and has passed its checks."""
        self._note(self._said["token"], state="ready")

    def release(self) -> None:
        """Leave it to whoever makes it live later on."""
        self._stop()
        self._note(self._said["token"], beat=0)

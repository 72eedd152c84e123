"""Who builds the next generation of an index: a note in it, renewed while it is built."""

from __future__ import annotations

import getpass
import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any

from slice_os.backends import Backend
from slice_os.backends.base import Generation, is_gone, this_process
from slice_os.errors import IndexLockedError

LEASE = 120.0
"""Seconds after which somebody who builds and has not said so is taken for dead."""


def find_build(live: Backend) -> Generation | None:
    """Return the generation that was begun and is not live.

    Raises:
        IndexLockedError: somebody is building it, or making it live.
    """
    found = [one for one in live.generations() if one.state in ("building", "ready")]
    if not found:
        return None
    build = found[-1].build
    if _is_alive(build):
        raise IndexLockedError(
            f"The next generation of {live.location} is being built by {build['by']} since "
            f"{build['since']}, {build.get('done', 0):,} of {build.get('of', 0):,} documents: wait "
            "for it to end, or stop it."
        )
    return found[-1]


def _is_alive(build: Mapping[str, Any]) -> bool:
    """Tell whether who builds a generation is still at it, as far as can be told from here."""
    if time.time() - build.get("renewed", 0) > LEASE or build["by"] == _me():
        return False
    return not is_gone(build)


def _me() -> str:
    with suppress(Exception):  # a user without a name
        return f"{getpass.getuser()}@{socket.gethostname()} (process {os.getpid()})"
    return f"{socket.gethostname()} (process {os.getpid()})"


class Lease:
    """The right to build a generation, or to make it live.

    Two that take over from a dead one in the same moment are told apart when they renew it: the
    last that wrote its name goes on.

    Args:
        target: The generation.
        source: From what it is made.
        build: What was noted of it when it was found, if it was there.
        state: ``building``, or ``ready`` to be made live.
        noted: Whether there is a note at all: a copy elsewhere has none.
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
        }
        self._note()

    def _note(self, **more: Any) -> None:
        self._said |= {"renewed": time.time(), **more}
        if self._noted:
            self._target.note_build(self._said)

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind not in (None, IndexLockedError):
            with suppress(Exception):  # it may be taken over at once
                self._note(renewed=0)

    def check(self) -> None:
        """Raise IndexLockedError if somebody else has taken the generation over."""
        if not self._noted:
            return
        noted = next(
            (one.build for one in self._target.generations() if one.number == self.number), {}
        )
        if noted.get("by") != self._said["by"]:
            raise IndexLockedError(
                f"{noted.get('by', 'Somebody else')} has taken over the generation {self.number} "
                f"of {self._target.location}: leave it to them."
            )

    def renew(self, done: int, of: int) -> None:
        """Say how far it is, now and then."""
        if time.time() - self._said["renewed"] > LEASE / 8:
            self.check()
            self._note(done=done, of=of)

    def passed(self) -> None:
        """Say that it is whole and has passed its checks."""
        self.check()
        self._note(state="ready")

    def release(self) -> None:
        """Leave it to whoever makes it live later on."""
        self._note(renewed=0)

"""Who builds the next generation of an index: a note in it, renewed while it is built."""

from __future__ import annotations

import time
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
"""Seconds after which a builder that has not renewed its note is taken for dead.

They are counted by the clock of who waits for it, however the other's goes.
"""
BEATS = 6
"""How often the note is renewed in that time."""


def find_build(live: Backend) -> Generation | None:
    """Return the generation that was begun and is not live.

    Where it cannot be told whether its builder is dead, it takes up to `LEASE` seconds.

    Raises:
        IndexLockedError: somebody is building it, or making it live.
    """
    found = _begun(live)
    if found is None or not found.build.get("beat") or is_gone(found.build):
        return found
    if found.build.items() >= this_process().items():
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
    begun = [one for one in live.generations() if one.state in ("building", "ready")]
    return begun[-1] if begun else None


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
        self._note: dict[str, Any] = {
            "state": state,
            **this_process(),
            "source": source,
            "since": datetime.now(tz=timezone.utc).isoformat(timespec="seconds"),
            "token": uuid4().hex,
            "beat": 0,
        }
        self._lock, self._ended, self._lost = Lock(), Event(), False
        self._renew(build.build.get("token") if build else None)
        self._thread = Thread(target=self._beat, name="slice-os-lease", daemon=True)

    def _renew(self, token: str | None, **changes: Any) -> None:
        """Renew the note if it is that of a token."""
        if not self._noted:
            return
        with self._lock:
            note = {**self._note, "beat": self._note["beat"] + 1, **changes}
            self._lost = self._lost or not self._target.note_build(note, token)
            if self._lost:
                raise IndexLockedError(
                    f"Somebody else has taken over the generation {self.number} of "
                    f"{self._target.location}: leave it to them."
                )
            self._note = note

    def _beat(self) -> None:
        while not self._ended.wait(LEASE / BEATS):
            try:
                self.check()
            except IndexLockedError:  # the builder meets it, too
                return
            except (SliceOSError, OSError):  # the cluster is away, say
                continue

    def __enter__(self) -> Lease:
        if self._noted:
            self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._stop()
        if kind not in (None, IndexLockedError):
            with suppress(Exception):  # it may be taken over at once
                self._renew(self._note["token"], beat=0)

    def _stop(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(1)

    def check(self) -> None:
        """Renew the lease; raise IndexLockedError if somebody else has it."""
        self._renew(self._note["token"])

    def renew(self, done: int, of: int) -> None:
        """Have the next renewal say how far it is; raise as `check` if the lease is lost."""
        if self._lost:
            self.check()
        self._note |= {"done": done, "of": of}

    def passed(self) -> None:
        """Note that the generation is whole and has passed its checks."""
        self._renew(self._note["token"], state="ready")

    def release(self) -> None:
        """Leave the generation to whoever makes it live later on."""
        self._stop()
        self._renew(self._note["token"], beat=0)

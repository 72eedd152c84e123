"""Holding writers off a generation while its name moves, and what writers do who meet that.

A generation that is held has a write block, a note of who holds it, which a thread renews, and an
alias of the holder's own. Who finds a holder dead takes that alias away, then the block; the name
is moved only together with the alias. So of the two one succeeds, and a holder that was only slow
moves nothing after others have written.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from threading import Event
from time import monotonic
from typing import Any
from uuid import uuid4

from slice_os.errors import BlockedError, GoneError, MovedError
from slice_os.host import is_gone, this_process
from slice_os.storage.cluster.beat import repeated
from slice_os.storage.cluster.cluster_errors import WRITE_RETRY_TIMEOUT
from slice_os.storage.cluster.requests import Cluster
from slice_os.storage.cluster.responses import IndexDescription, nested

LEASE = 20.0
"""Seconds after which a holder that has not renewed its note is taken for dead, by the clock of who
waits for it. If it was killed while it changed notes, that takes `requests.ABANDONED` more: so
nobody is held off for more than a minute."""
BEATS = 10
"""How often the note is renewed in that time."""
PAUSE = 0.5
"""Seconds between two looks at a block."""
_HELD = "{}-0held-{}"
"""The alias of a holder; as roles allow NAME-0*."""


@contextmanager
def hold(cluster: Cluster) -> Iterator[str]:
    """Have a generation take nothing in a block; yield the alias that says so.

    What is under way is in it, or refused, when the block begins.

    Raises:
        MovedError: somebody else holds it.
    """
    await_holder(cluster)
    since = datetime.now(tz=timezone.utc).isoformat(timespec="seconds")
    note = {**this_process(), "since": since, "token": uuid4().hex[:12], "beat": 0}
    alias = _HELD.format(cluster.address.name, note["token"])
    with cluster.alone():
        if cluster.notes().get("held"):
            raise _moving(cluster)
        cluster.change_alias("add", alias)
        cluster.note(held=note)

    def renew() -> None:
        with cluster.alone():
            if _token(cluster.notes().get("held")) == note["token"]:
                note["beat"] += 1
                cluster.note(held=dict(note))

    try:
        with repeated(renew, LEASE / BEATS):
            # To set index.blocks.write would not wait for what is under way.
            cluster.ask("PUT", "_block/write", retry_timeout=WRITE_RETRY_TIMEOUT)
            yield alias
    finally:
        release(cluster, note)


def release(cluster: Cluster, held: dict[str, Any]) -> None:
    """End what a note says is held, by whomever: the alias goes first, so that nobody moves it."""
    token = _token(held)
    with cluster.alone():
        if _token(cluster.notes().get("held")) not in (None, token):
            return  # somebody else holds it now
        cluster.change_alias("remove", _HELD.format(cluster.address.name, token))
        if is_live(cluster, cluster.describe()):
            lift_block(cluster)
        cluster.note(held=None)


def await_holder(cluster: Cluster, given_up: Event | None = None) -> IndexDescription:
    """Return what a generation is when nobody holds it: of a dead holder it is taken away.

    Raises:
        MovedError: somebody holds it, and is alive.
    """
    first: dict[str, Any] | None = None
    began, given_up = monotonic(), given_up or Event()
    while held := nested(
        description := cluster.describe(), "mappings", "_meta", "slice_os", "held"
    ):
        if first is not None and held != first:
            raise _moving(cluster)
        first = held
        if not is_live(cluster, description):
            return description
        if is_gone(held) or monotonic() - began > LEASE:
            release(cluster, held)
        elif given_up.wait(PAUSE):
            raise _moving(cluster)
    return description


def await_block(cluster: Cluster, refused: BlockedError, given_up: Event | None = None) -> None:
    """Return when the block is off that has refused a write.

    Raises:
        MovedError: the name is moving, or has moved to a newer generation.
        GoneError: it names another generation, or nothing.
        BlockedError: it is another's block.
    """
    if "index write (api)" not in str(refused):
        raise refused
    for _ in range(2):  # the name may move just after the first look
        description = await_holder(cluster, given_up)
        if not is_live(cluster, description):
            check_live(cluster)
        elif not is_blocked(description):
            return
    raise refused


def lift_block(cluster: Cluster) -> None:
    """Let a generation be written to."""
    cluster.put_settings({"blocks.write": None})


def is_blocked(description: IndexDescription) -> bool:
    """Tell whether a generation takes nothing more."""
    blocks = description["settings"]["index"].get("blocks", {})
    return blocks.get("write") not in (None, "false")


def is_live(cluster: Cluster, description: IndexDescription) -> bool:
    """Tell whether the name was that of a generation when it was described."""
    return cluster.address.name in description["aliases"]


def check_live(cluster: Cluster) -> None:
    """Raise unless the alias names a generation.

    Raises:
        MovedError: it names a newer one, which holds all that this one has acknowledged.
        GoneError: it names another, or nothing.
    """
    now = list(cluster.generations())
    if now == [cluster.index]:
        return
    if len(now) == 1 and now[0].startswith(f"{cluster.address.name}-0") and now[0] > cluster.index:
        with suppress(GoneError):
            # Else somebody else has moved it, who may not have taken over what was written.
            if is_blocked(cluster.describe()):
                number = int(now[0].rpartition("-")[2])
                raise MovedError(
                    f"{cluster.address} moved to generation {number}: run this again; what is done "
                    "is kept."
                )
    raise GoneError(
        f"{cluster.address} no longer names the index {cluster.index} that was opened, but "
        f"{', '.join(now) or 'nothing'}: run this again, or open it anew."
    )


def _token(held: Any) -> Any:
    return nested(held, "token")


def _moving(cluster: Cluster) -> MovedError:
    return MovedError(
        f"{cluster.address} is moving to another generation: run this again in a moment; what is "
        "done is kept."
    )

"""Writers that are held off while a name moves: nobody for long, whoever dies, and nothing lost.

SLICE_OS_KILLS sets how often a process is killed at the swap, by default twice and with a short
lease. Where that is allowed, it has process numbers and a host of its own, as on another machine.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import nullcontext, suppress

import pytest

import slice_os
from slice_os.errors import BlockedError, LocationError, MovedError
from slice_os.storage.cluster import hold

SERVERS = ("opensearch", "elasticsearch")
KILLS = int(os.environ.get("SLICE_OS_KILLS", "0"))
LEASE = hold.LEASE if KILLS else 3.0
SWAP = """
import os, signal, sys
import slice_os
from slice_os.storage.cluster import hold
from slice_os.storage.cluster.client import Client

location, at, hold.LEASE = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
await_holder, request, count = hold.await_holder, Client.request, None

def begin(*given):
    global count
    count = 0
    return await_holder(*given)

def counted(*given, **options):
    global count
    for does in (lambda: None, lambda: request(*given, **options)):
        if count is not None:
            if count == at:
                os.kill(os.getpid(), signal.SIGKILL)
            count += 1
        answer = does()
    if at < 0 and "_block" in given[2]:
        os.kill(os.getpid(), signal.SIGKILL)
    return answer

hold.await_holder, Client.request = begin, counted
slice_os.reindex(location)
print(count)
"""
"""Kills itself before, or after, one of the requests that move the name, or once the block is on;
prints how many moments that are."""
ELSEWHERE = ["unshare", "--pid", "--fork", "--mount-proc", "--uts", "sh", "-c"]


def elsewhere():
    """Return how a command begins that runs with its own process numbers and host, if it may."""
    script = 'hostname elsewhere; "$@"; exit $?'
    with suppress(OSError):
        if subprocess.run([*ELSEWHERE, "true"], capture_output=True, check=False).returncode == 0:
            return [*ELSEWHERE, script, "sh"]
    return []


@pytest.fixture
def place(cluster, name):
    place = f"{cluster.url}/{name}"
    documents = [slice_os.Document(f"d{n}", f"Order {n} never came.") for n in range(20)]
    slice_os.index(documents, place, cluster={"replicas": 0})
    return place


def swap(place, at, prefix):
    return subprocess.Popen(
        [*prefix, sys.executable, "-c", SWAP, place, str(at), str(LEASE)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def document(number):
    return slice_os.Document(f"w{number}", f"Written as number {number}.")


def test_killed_at_the_swap_it_blocks_nobody_for_longer_than_the_lease(place, monkeypatch):
    monkeypatch.setattr(hold, "LEASE", LEASE)
    prefix, rng, written, number, longest = elsewhere(), random.Random(3), set(), 0, 0.0
    steps = int(swap(place, 10**6, prefix).communicate(timeout=120)[0])
    assert steps > 20
    with slice_os.open(place) as index:
        for kill in range(KILLS or 2):
            child, went_on = swap(place, rng.randrange(steps) if kill else -1, prefix), False
            while not went_on:
                ended, number, began = child.poll(), number + 1, time.monotonic()
                with suppress(MovedError):
                    index.add([document(number)])
                    written.add(f"w{number}")
                    went_on = ended is not None
                longest = max(longest, time.monotonic() - began)
            assert ended in (-signal.SIGKILL, 128 + signal.SIGKILL), child.communicate()[1]
            child.communicate()
        assert slice_os.reindex(place).live
        assert index.holds(written) == written
        assert len(index) == 20 + len(written)
    told = f"{KILLS or 2} kills at the swap: a writer waited {longest:.1f} s at most\n"
    sys.stdout.write(told)
    assert LEASE < longest < 60


def test_a_holder_that_was_taken_for_dead_moves_nothing(place, monkeypatch):
    monkeypatch.setattr(hold, "LEASE", 1.0)
    monkeypatch.setattr(hold, "repeated", lambda *_: nullcontext())  # as if it was suspended
    with slice_os.open(place) as index, slice_os.open(place) as other:
        backend = index._backend
        backend.next_generation(backend.meta, {})

        def move():
            with backend.hold():
                assert other.add([document(1)]).documents == 1
                backend.swap(2)

        with pytest.raises(LocationError, match=r"taken for dead .* the name was not moved"):
            move()
        assert other.add([document(2)]).documents == 1
        assert "held" not in backend.cluster.notes()


def test_who_holds_for_longer_than_the_lease_is_not_taken_for_dead(place, monkeypatch):
    monkeypatch.setattr(hold, "LEASE", 2.0)
    with slice_os.open(place) as index, slice_os.open(place) as other, index._backend.hold():
        for _ in range(4):
            with pytest.raises(MovedError, match="is moving"):
                other.add([document(1)])
            time.sleep(1)
        assert hold.is_blocked(index._backend.cluster.describe())


def test_of_two_holders_the_second_is_told(place):
    with slice_os.open(place) as index, slice_os.open(place) as other, index._backend.hold():
        second = other._backend.hold()
        with pytest.raises(MovedError, match="is moving"):
            second.__enter__()


def test_the_doctor_names_who_holds_writers_off(place):
    with slice_os.open(place) as index, index._backend.hold():
        (told,) = [one for one in slice_os.doctor(place).findings if "held off" in one.what]
    assert f"(process {os.getpid()}) since 2" in told.what
    assert "a run that writes goes on within a minute" in told.advice
    assert not [one for one in slice_os.doctor(place).findings if "held off" in one.what]


def test_a_repair_and_a_deletion_go_on_after_a_dead_holder_too(place, client, name):
    gone = {**hold.this_process(), "process": 2**22 + 1, "token": "dead"}
    (hit, *_) = client.search(index=name, body={"size": 1, "_source": False})["hits"]["hits"]
    changed = {"doc": {"filters": ["by hand"]}}
    client.update(index=name, id=hit["_id"], body=changed, params={"refresh": "true"})
    with slice_os.open(place) as index:
        cluster = index._backend.cluster
        for work in (lambda: slice_os.doctor(place, repair=True), lambda: index.delete(["d1"])):
            with cluster.alone():
                cluster.note(held=gone)
            client.indices.put_settings(index=name, body={"index.blocks.write": True})
            assert work()
            assert not hold.is_blocked(cluster.describe())
        assert len(index) == 19
    assert slice_os.check(place, sample=None).healthy


def test_anothers_block_is_left_alone(place, client, name):
    client.indices.put_settings(index=name, body={"index.blocks.write": True})
    with slice_os.open(place) as index:
        with pytest.raises(BlockedError, match="'slice-os doctor'"):
            index.add([document(1)])
        assert hold.is_blocked(index._backend.cluster.describe())

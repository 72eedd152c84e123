"""Reindexing that is killed, taken over, or done while others search and write."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import slice_os
from slice_os.errors import IndexLockedError, LocationError
from slice_os.operate import copying, lease
from slice_os.operate import reindex as reindexing

from .reindexed import documents, found, states

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("SLICE_OS_KILLS", "2"))


@pytest.fixture
def location(new_location):
    location = new_location()
    fewer = {"tolerance": 0.6} if "://" in location else None  # fewer spans are soon written
    slice_os.index(documents(), location, cluster=fewer, passage_words=20)
    return location


def test_killed_it_goes_on_and_nobody_else_may(location, monkeypatch):
    class Killed(BaseException):
        pass

    def die(share):
        raise Killed

    monkeypatch.setattr(copying, "LOOKED_UP", 10)
    with pytest.raises(Killed):
        slice_os.reindex(location, on_progress=die)
    assert states(location) == [(1, "live"), (2, "building")]
    # As if it still ran, elsewhere.
    with slice_os.open(location) as index:
        target = index._backend.generation(2)
        note = {"state": "building", "by": "ann@there (process 7)", "since": "noon"}
        note |= {"done": 10, "of": 30, "beat": 1}
        target.note_build(note)
        sleep = time.sleep

        def renewed(seconds):
            note["beat"] += 1
            target.note_build(note)
            sleep(seconds)

        monkeypatch.setattr(lease, "LEASE", 3.0)
        with monkeypatch.context() as patch:
            patch.setattr(lease, "time", SimpleNamespace(monotonic=time.monotonic, sleep=renewed))
            with pytest.raises(IndexLockedError, match=r"by ann@there .* since noon, 10 of 30"):
                slice_os.reindex(location)
            with pytest.raises(IndexLockedError):
                slice_os.prune_generations(location, unfinished=True)
        # From here on it is not renewed, whatever its clock says.
    with pytest.raises(LocationError, match="was begun with other settings"):
        slice_os.reindex(location, store=["year"])
    report = slice_os.reindex(location)
    assert report.generation == 2
    assert report.copied < 30  # the first ten were there
    assert states(location) == [(1, "retired"), (2, "live")]


def test_killed_at_either_end_it_leaves_nothing_to_go_back_to_by_mistake(location, monkeypatch):
    class Killed(BaseException):
        pass

    def die(*_, **__):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(reindexing, "Lease", die)
        with pytest.raises(Killed):
            slice_os.reindex(location)
    assert states(location) == [(1, "live"), (2, "building")]
    assert slice_os.reindex(location).generation == 2
    # As if it was killed when the name was moved.
    moved = {"state": "ready", "by": "ann@there (process 7)", "since": "noon", "source": "words"}
    with slice_os.open(location) as index:
        index._backend.note_build(moved)
    assert slice_os.reindex(location).generation == 3
    assert states(location) == [(1, "retired"), (2, "retired"), (3, "live")]
    with slice_os.open(location) as index:
        index._backend.note_build(moved)
    assert slice_os.rollback(location).number == 2
    assert states(location) == [(1, "retired"), (2, "live"), (3, "rolled back")]
    assert slice_os.reindex(location).generation == 4
    assert slice_os.rollback(location).number == 2  # not the one that was gone back from
    assert [one.number for one in slice_os.prune_generations(location, 1)] == [3, 4]
    assert states(location) == [(1, "retired"), (2, "live")]


def test_killed_at_random_moments_by_signals(location):
    """A reader and a writer go on; after each kill the live generation answers, a rerun ends."""
    rng = random.Random(5)
    command = [str(Path(sys.executable).with_name("slice-os")), "reindex", "--index", location]
    started = time.monotonic()
    subprocess.run([*command, "--from", "text", "--json"], check=True, capture_output=True)
    longest = 1.2 * (time.monotonic() - started)
    version, written, killed = 1, 1, 0
    with slice_os.open(location) as index:
        index.add([slice_os.Document("d0", "Version 1 of the document.")])
        while killed < KILLS:
            source = ("text", "words")[killed % 2]
            child = subprocess.Popen([*command, "--from", source], stderr=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL)  # fmt: skip
            # A timer of its own: a writer may be held off until the child is done.
            timer = threading.Timer(rng.uniform(min(0.3, longest / 2), longest), child.kill)
            timer.start()
            while child.poll() is None:
                version += 1
                with contextlib.suppress(
                    slice_os.SliceOSError
                ):  # held off, or swapped in its midst
                    index.add([slice_os.Document("d0", f"Version {version} of the document.")])
                    written = version
                assert index.search("subscription")
                time.sleep(0.05)  # the child needs the processor too
            timer.cancel()
            if child.returncode == -signal.SIGKILL:
                killed += 1
            else:  # it was done before: on a machine that is less busy now than when it was timed
                longest *= 0.8
            said = index.get("d0").text
            assert said.startswith("Version ")
            assert written <= int(said.split()[1]) <= version
        subprocess.run(command, check=True, capture_output=True)
        assert [one.state for one in slice_os.generations(location)].count("live") == 1
        if written < version:  # the last was cut in two, and said so: to be run again
            index.add([slice_os.Document("d0", f"Version {version} of the document.")])
        assert len(index) == 30
        assert {name: index.get(name).text for name in ("d3", "d7")} == {
            one.id: one.text.replace("\n\n", "\n\n")
            for one in documents()
            if one.id in ("d3", "d7")
        }
        once = [(one.passage.document, one.passage.number) for one in index.passages()]
        assert len(once) == len({*once})


def test_searches_go_on_through_the_swap(location):
    wrong, right, stop = [], [], threading.Event()
    with slice_os.open(location) as index:
        wanted = found(index)

        def search():
            while not stop.wait(0.05):
                try:
                    (right if found(index) == wanted else wrong).append(1)
                except Exception as exc:
                    wrong.append(exc)

        threads = [threading.Thread(target=search) for _ in range(2)]
        for thread in threads:
            thread.start()
        slice_os.reindex(location)
        slice_os.reindex(location)
        time.sleep(0.5)
        stop.set()
        for thread in threads:
            thread.join()
    assert wrong == []
    assert len(right) > 5


def test_of_two_that_take_over_one_gets_it(location, monkeypatch):
    with slice_os.open(location) as index:
        live = index._backend
        target = live.next_generation(live.meta, {})
        found = lease.find_build(live)
        with lease.Lease(target, "words", found) as first:
            with pytest.raises(IndexLockedError, match="has taken over the generation 2"):
                lease.Lease(target, "words", found)
            first.check()
        target.close()


def test_who_builds_renews_though_nothing_is_told(location, monkeypatch):
    """A thread of its own does, however long the next document, or a write, takes."""
    monkeypatch.setattr(lease, "LEASE", 0.6)

    def slow():
        with slice_os.open(location) as index:
            beats = set()
            while len(beats) < 3:  # ends only if it is renewed meanwhile
                beats.add(index._backend.generations()[-1].build["beat"])
                time.sleep(0.02)
        yield slice_os.Document("0.txt", "Another text.")

    assert slice_os.reindex(location, corpus=slow(), least_overlap=0).live


def test_the_name_is_moved_only_from_where_it_is(location):
    with slice_os.open(location) as index:
        live = index._backend
        first, second = (live.next_generation(live.meta, {}) for _ in range(2))
        live.swap(2)
        with pytest.raises(LocationError, match="was made live meanwhile: run this again"):
            live.swap(3)
        assert [one.number for one in live.generations() if one.state == "live"] == [2]
        first.swap(1)
        for one in (first, second):
            one.close()

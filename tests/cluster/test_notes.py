"""What is noted of an index: who notes at the same time loses nothing of the other's."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import slice_os
from slice_os.storage.cluster import requests
from slice_os.storage.cluster.requests import Cluster

SERVERS = ("opensearch", "elasticsearch")


@pytest.fixture
def backend(cluster, name):
    place = f"{cluster.url}/{name}"
    slice_os.index([slice_os.Document("a", "Some text.")], place, cluster={"replicas": 1})
    with slice_os.open(place) as index:
        yield index._backend


def test_notes_of_several_at_once_are_all_kept(backend, monkeypatch):
    put = Cluster.put_mapping

    def slow(self, body):
        time.sleep(0.3)  # each has read before the first has written
        put(self, body)

    monkeypatch.setattr(Cluster, "put_mapping", slow)

    def remember():
        with backend.writer() as writer:
            writer.remember({"": "/somewhere"})

    work = (
        remember,
        lambda: backend.note_build({"state": "ready", "token": "x"}),
        lambda: backend.note_build({"state": "ready", "token": "y"}, "x"),
        lambda: backend.note_build({"state": "ready", "token": "z"}, "x"),
    )
    with ThreadPoolExecutor() as pool:
        done = [pool.submit(one) for one in work[:2]]
        assert [one.result(60) for one in done] == [None, True]
        taken = [pool.submit(one) for one in work[2:]]
        assert sorted(one.result(60) for one in taken) == [False, True]
    notes = backend.cluster.notes()
    assert notes["roots"] == {"": "/somewhere"}
    assert notes["build"]["token"] in ("y", "z")


def test_first_runs_that_start_together_leave_the_replicas(cluster, client, name):
    place = f"{cluster.url}/{name}"

    def run(number):
        slice_os.index([slice_os.Document(f"d{number}", "Some text.")], place)

    with ThreadPoolExecutor() as pool:
        list(pool.map(run, range(4)))
    with slice_os.open(place) as index:
        assert len(index) == 4
        assert "loading" not in index._backend.cluster.notes()
        (said,) = client.indices.get_settings(index=name).values()
        assert said["settings"]["index"]["number_of_replicas"] == "1"


def test_who_was_killed_while_it_noted_keeps_nobody_off_for_long(backend, monkeypatch):
    monkeypatch.setattr(requests, "ABANDONED", 0.2)
    backend.cluster.change_alias("remove", f"{backend.cluster.address.name}-0free")
    assert backend.note_build({"state": "ready"})
    assert backend.cluster.notes()["build"] == {"state": "ready"}

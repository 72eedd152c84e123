"""Runs side by side load one index of a cluster: nothing is lost, and the last puts back."""

from __future__ import annotations

import threading

import pytest

import slice_os
from support import faults


def settings(client, name):
    """Return refresh interval, replicas, and what is noted of a load and its partitions."""
    interval, replicas, noted = faults.settings(client, name)
    return interval, replicas, bool(noted)


def test_the_last_partition_puts_the_settings_back_once(client, cluster, name):
    location, corpus = f"{cluster.url}/{name}", faults.documents(count=12)
    for number in (2, 0):
        report = slice_os.index(corpus, location, partition=(number, 3))
        assert report.documents
        assert settings(client, name) == ("-1", 0, True)
    slice_os.index(corpus, location, partition=(0, 3))  # again: it counts once
    assert settings(client, name) == ("-1", 0, True)
    slice_os.index(corpus, location, partition=(1, 3))
    assert settings(client, name) == (None, 1, False)
    with slice_os.open(location) as index:
        assert len(index) == 12
        assert index.status().details["incomplete_documents"] == 0


def test_a_partition_that_is_broken_off_is_waited_for(client, cluster, name, caplog):
    location, corpus = f"{cluster.url}/{name}", faults.documents(count=12)
    slice_os.index(corpus, location, partition=(1, 2))

    def stop(report):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        slice_os.index(corpus, location, partition=(0, 2), on_progress=stop)
    assert "run --partition 0/2 again" in caplog.text
    assert settings(client, name) == ("-1", 0, True)
    slice_os.index(corpus, location, partition=(0, 2))
    assert settings(client, name) == (None, 1, False)


def test_a_run_alone_puts_back_what_partitions_have_left(client, cluster, name):
    location, corpus = f"{cluster.url}/{name}", faults.documents(count=6)
    slice_os.index(corpus, location, partition=(1, 2))
    slice_os.index(corpus, location)
    assert settings(client, name) == (None, 1, False)
    assert slice_os.index(corpus, location, partition=(0, 2)).unchanged
    assert settings(client, name) == (None, 1, False)


def test_partitions_at_the_same_time_lose_nothing(client, cluster, name):
    location, corpus = f"{cluster.url}/{name}", faults.documents(count=24)
    failed = []

    def work(number):
        try:
            slice_os.index(corpus, location, partition=(number, 4))
        except Exception as exc:
            failed.append(exc)

    runs = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert failed == []
    assert settings(client, name) == (None, 1, False)
    with slice_os.open(location) as index:
        assert len(index) == 24
        assert index.status().details["incomplete_documents"] == 0

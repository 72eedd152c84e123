"""What an open index asks a cluster: one request a search, and nobody waits for another's."""

from __future__ import annotations

import inspect
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from opensearchpy import OpenSearch

import slice_os
from slice_os.errors import QueryError
from slice_os.storage.cluster import read as backends
from slice_os.storage.cluster.client import Client
from slice_os.storage.cluster.cluster_errors import READ_TIMEOUT
from support.verbs import TEXTS


@pytest.fixture
def place(cluster, name):
    documents = [
        slice_os.Document(f"d{n}", text, metadata={"year": 2014 + n})
        for n, text in enumerate(TEXTS)
    ]
    slice_os.index(documents, f"{cluster.url}/{name}", cluster={"replicas": 0})
    return f"{cluster.url}/{name}"


@pytest.fixture
def asked(monkeypatch):
    """The paths of all requests, with their options."""
    found = []
    request = Client.request

    def noted(self, method, path, *more, **options):
        found.append((f"{method} {path}", options))
        return request(self, method, path, *more, **options)

    monkeypatch.setattr(Client, "request", noted)
    return found


def test_a_search_is_one_request(place, asked):
    with slice_os.open(place) as index:
        assert index.search("to cancel", filters=["year>=2014"])
        asked.clear()
        assert index.search("to cancel", filters=["year>2014"])
        assert [path for path, _ in asked] == [f"POST /{place.rpartition('/')[2]}-000001/_search"]
        assert all(options["soon"] for _, options in asked)
        assert READ_TIMEOUT < 60


def test_what_is_remembered_is_asked_for_again_where_nothing_is_found(place, asked):
    with slice_os.open(place) as index:
        assert index.search("to cancel", filters=["year>=2014"])
        asked.clear()
        assert index.search("to cancel", filters=["year>3000"]) == []
        paths = [path for path, _ in asked]
        assert f"GET /{place.rpartition('/')[2]}" in paths
        assert len(paths) > 2
        index.delete([f"d{n}" for n in range(len(TEXTS))])
        with pytest.raises(QueryError, match="no metadata"):
            index.search("to cancel", filters=["year>=2014"])


def test_another_process_s_swap_is_noticed_after_some_seconds(place, monkeypatch):
    monkeypatch.setattr(backends, "REMEMBERED", 600.0)
    with slice_os.open(place) as index:
        former = index._existing()
        slice_os.reindex(place)
        assert index._existing() is not former  # this process has done it
        former = index._existing()
        monkeypatch.setattr(backends, "_moves", backends.Counter())
        former._moves = 0  # type: ignore[attr-defined]
        slice_os.reindex(place)
        backends._moves.clear()  # as if another had done it
        assert index._existing() is former
        monkeypatch.setattr(backends, "REMEMBERED", 0.0)
        assert index._existing() is not former


def test_nobody_waits_for_what_another_asks(place, monkeypatch):
    monkeypatch.setattr(backends, "REMEMBERED", 0.0)
    request, both = Client.request, Barrier(2)

    def slow(self, method, path, *more, **options):
        if method == "GET" and path.count("/") == 1:
            both.wait(20)  # until the other asks too
        return request(self, method, path, *more, **options)

    with slice_os.open(place) as index:
        assert index.search("to cancel")
        monkeypatch.setattr(Client, "request", slow)
        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(index.search, ["to cancel"] * 2))
        assert found[0] == found[1] != []


def test_the_number_of_documents_is_counted_without_a_refresh(place, asked):
    with slice_os.open(place) as index:
        asked.clear()
        assert len(index) == len(TEXTS)
        assert [path.rpartition("/")[2] for path, _ in asked] == ["_search"]


FUNCTIONS = (
    slice_os.reindex, slice_os.swap, slice_os.rollback, slice_os.generations,
    slice_os.prune_generations, slice_os.doctor, slice_os.check, slice_os.read_index,
    slice_os.build_request, slice_os.apply_template,
)  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__name__)
def test_they_take_credentials_and_a_client(function):
    assert {"credentials", "client"} <= inspect.signature(function).parameters.keys()


def test_a_client_that_is_given_is_the_one_that_asks(place, cluster, tmp_path):
    seen = []

    class Watched(OpenSearch):
        pass

    with Watched(cluster.urls) as client:
        perform = client.transport.perform_request

        def watched(*args, **more):
            seen.append(args[1])
            return perform(*args, **more)

        client.transport.perform_request = watched
        nowhere = place.replace(cluster.url, "http://127.0.0.1:9")  # so nobody else can
        for use in (
            lambda: slice_os.generations(nowhere, client=client),
            lambda: slice_os.doctor(nowhere, client=client),
            lambda: slice_os.check(nowhere, client=client),
            lambda: list(slice_os.read_index(nowhere, client=client)),
            lambda: slice_os.reindex(nowhere, client=client),
            lambda: slice_os.reindex(nowhere, to=tmp_path / "copy.slice", client=client),
            lambda: slice_os.rollback(nowhere, client=client),
            lambda: slice_os.prune_generations(nowhere, keep=0, client=client),
        ):
            seen.clear()
            use()
            assert seen

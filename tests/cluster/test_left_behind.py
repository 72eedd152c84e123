"""What an operator finds: names of nothing, strangers' documents, blocks, answers cut off."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

import slice_os
from slice_os.errors import BlockedError, BusyError, ClusterError, GoneError, LocationError
from slice_os.storage.cluster import cluster_errors, searches
from slice_os.storage.cluster.client import Client
from support.proxy import closed, proxied
from support.verbs import request, run

SERVERS = ("opensearch", "elasticsearch")
LINES = ["I want to cancel order {}.", "Parcel {} never came.", "Seat {} is by the window."]


def documents(count=30):
    return [slice_os.Document(f"d{n}", LINES[n % 3].format(n)) for n in range(count)]


@pytest.fixture
def place(cluster, name):
    place = f"{cluster.url}/{name}"
    slice_os.index(documents(), place, cluster={"replicas": 0, "tolerance": 0.5})
    return place


def errors(place):
    return [one for one in slice_os.doctor(place).findings if one.severity == "error"]


def paste(command):
    """Send what a printed curl command sends."""
    words = shlex.split(command)
    assert words[:2] == ["curl", "-sS"]
    method, url = (words[3], words[4]) if words[2] == "-X" else ("GET", words[2])
    return request(method, url, words[words.index("-d") + 1] if "-d" in words else None)


def test_an_alias_that_was_removed_is_named_not_an_index_to_make(place, client, name):
    with slice_os.open(place) as index:
        client.indices.delete_alias(index=f"{name}-000001", name=name)
        told = rf"alias {name} names nothing.*{name}-000001 \(retired\) holds 30 documents"
        for work in (
            lambda: index.add(documents(1)),
            lambda: slice_os.open(place),
            lambda: slice_os.index(documents(1), place),
            lambda: slice_os.check(place),
            lambda: slice_os.reindex(place),
            lambda: slice_os.read_index(place),
            lambda: run("search", "cancel", "--index", place, ok=1) and slice_os.open(place),
        ):
            with pytest.raises(LocationError, match=told):
                work()
        (found,) = errors(place)
        paste(found.advice.partition("curl")[1] + found.advice.partition("curl")[2])
        assert index.add(documents()).unchanged == 30
    assert slice_os.doctor(place).healthy


def test_of_a_deleted_generation_the_one_before_is_named(place, client, name):
    slice_os.reindex(place)
    client.indices.delete(index=f"{name}-000002")
    with pytest.raises(LocationError, match=rf"names nothing.*{name}-000001 \(retired\) holds 30"):
        slice_os.open(place)
    client.indices.put_alias(index=f"{name}-000001", name=name)
    with slice_os.open(place) as index:
        client.indices.delete(index=f"{name}-000001")
        with pytest.raises(LocationError, match=r"no index .* any more, as it was deleted since"):
            index.delete(["d1"])
    with slice_os.open(place) as index, pytest.raises(LocationError, match=r"index at .*make one"):
        index.search("cancel")


def test_a_deleted_index_is_not_made_anew_by_who_writes_to_it(place, client, name):
    def delete(report):
        if report.documents == 1:
            client.indices.delete(index=f"{name}-000001")

    with slice_os.open(place) as index, pytest.raises(GoneError):
        index.add([slice_os.Document(f"e{n}", f"Other text {n}.") for n in range(50)],
                  on_progress=delete)  # fmt: skip
    assert client.indices.get(index=f"{name}*") == {}


def test_a_breaker_is_named_as_one(place, monkeypatch, cluster):
    monkeypatch.setattr(cluster_errors, "FIRST_RETRY_TIMEOUT", 0.2)
    reason = b'{"type":"circuit_breaking_exception","reason":"[parent] Data too large"}'
    refused = 429, "application/json", b'{"error":%s,"status":429}' % reason
    with proxied(cluster.url, lambda _: None) as proxy:
        behind, shut = place.replace(cluster.url, proxy.url), [""]
        passed = proxy.answer
        monkeypatch.setattr(
            proxy,
            "answer",
            lambda asked: refused if shut[0] and shut[0] in asked.path else passed(asked),
        )
        monkeypatch.setattr("slice_os.storage.cluster.client.with_retries", once)
        with slice_os.open(behind) as index:
            for shut[0] in ("_search", place.rpartition("/")[2]):
                with pytest.raises(BusyError, match="Data too large"):
                    index.search("cancel")
                with pytest.raises(BusyError, match="Data too large"):
                    slice_os.open(behind).search("cancel")


def once(work, url, timeout, given_up=None, effort=None):
    return cluster_errors.with_retries(work, url, 0.1, given_up, effort)


@contextmanager
def cut(cluster, monkeypatch, every):
    """Pass answers on; of `every` so many one is cut off in the middle."""
    with proxied(cluster.url, lambda _: None) as proxy:
        passed, count = proxy.answer, [0]

        def answer(asked):
            status, kind, body = passed(asked)
            count[0] += 1
            if count[0] % every == 0 and body[:1] in (b"{", b"["):
                body = body[: len(body) // 2]
            return status, kind, body

        monkeypatch.setattr(proxy, "answer", answer)
        yield proxy.url


def test_half_an_answer_is_asked_for_again(place, cluster, monkeypatch):
    with cut(cluster, monkeypatch, 3) as url:
        behind = place.replace(cluster.url, url)
        with slice_os.open(behind) as index:
            for mode in ("hybrid", "dense", "lexical"):
                assert len(index.search("cancel order", mode=mode, size=5)) == 5
            assert len(list(index.passages())) == 30
            assert index.add(documents(31)).documents == 1
    with cut(cluster, monkeypatch, 1) as url:
        with pytest.raises(ClusterError, match="broke its answer off: look at") as told:
            slice_os.open(place.replace(cluster.url, url))
        assert "neither" not in str(told.value)


STRANGE = {
    "x1": {"text": "I want to cancel order 5 of a stranger."},
    "x2": {"document": "d1", "text": "I want to cancel order 6 of a stranger."},
    "x3": {
        "document": "d1",
        "passage": 0,
        "text": "I want to cancel order 7.",
        "start": 0,
        "end": 9,
    },
}


def test_documents_of_strangers_are_left_out_and_named(place, client, name, caplog):
    for id_, body in STRANGE.items():
        client.index(index=f"{name}-000001", id=id_, body=body)
    client.indices.refresh(index=name)
    with slice_os.open(place) as index:  # before one is met that cannot be read
        assert index.get("d1").text == LINES[1].format(1)
        assert {one.passages for one in index.list(size=50)} == {1}
    with slice_os.open(place) as index:
        for options in ({}, {"mode": "dense"}, {"mode": "lexical"}, {"fusion": "rrf"}):
            hits = index.search("I want to cancel order", size=40, **options)
            assert {hit.document for hit in hits} >= {f"d{n}" for n in range(0, 30, 3)}
            assert not [hit for hit in hits if "stranger" in hit.text]
        assert f"{name}-000001 holds 3 documents that slice-os did not put there (x1" in caplog.text
        assert len(list(index.passages())) == 30
        assert {match.document for match in index.mine("cancel order", min_degree=0.8)} >= {"d3"}
        assert index.get("d1").text == LINES[1].format(1)
        assert len(index.list(size=50)) == 30
        assert index.add(documents(31)).documents == 1
    for examine in (slice_os.doctor, lambda place: slice_os.check(place, sample=None)):
        diagnosis = examine(place)
        (told,) = [one for one in diagnosis.findings if "did not put there" in one.what]
        assert told.what.startswith("Documents that slice-os did not put there: 3 (x")
        assert diagnosis.healthy
    assert slice_os.reindex(place).documents == 31
    slice_os.rollback(place)
    if "elasticsearch" not in slice_os.open(place).status().backend:  # the test's has no such API
        answer = paste(told.advice.partition("curl")[1] + told.advice.partition("curl")[2])
        assert answer["deleted"] == 3
        assert not [one for one in slice_os.doctor(place).findings if one.severity != "ok"]


@pytest.mark.parametrize(
    ("block", "told"), [("create_index", "make an index"), ("read_only", "write to the cluster")]
)
def test_a_block_of_the_cluster_is_named_and_lifted(place, client, name, cluster, block, told):
    setting = f"cluster.blocks.{block}"
    if cluster.server.name == "elasticsearch" and block == "create_index":
        pytest.skip("Elasticsearch has no such block")
    client.cluster.put_settings(body={"persistent": {setting: True}})
    try:
        with pytest.raises(BlockedError, match="'slice-os doctor' says how to lift"):
            slice_os.index(documents(1), f"{place}-new")
        (found,) = [one for one in errors(place) if setting in one.what]
        assert f"Nobody may {told}" in found.what
        paste(found.advice.partition("curl")[1] + found.advice.partition("curl")[2])
        slice_os.index(documents(1), f"{place}-new", cluster={"replicas": 0})
    finally:
        client.cluster.put_settings(body={"persistent": {setting: None}})


def test_prune_says_what_it_leaves(place):
    slice_os.reindex(place)
    slice_os.reindex(place, swap=False)
    told = run("generations", "prune", "--index", place)
    assert "0 generations deleted" in told.stdout
    assert "1 retired generation kept; --keep 0" in told.stderr
    assert "1 unfinished generation left; --unfinished" in told.stderr
    with pytest.raises(LocationError, match=r"generations prune --unfinished"):
        slice_os.reindex(place, passage_words=20)
    told = run("generations", "prune", "--index", place, "--keep", 0, "--unfinished")
    assert "2 generations deleted" in told.stdout
    assert told.stderr == ""


def test_what_the_doctor_prints_goes_to_a_host_that_answers(place, client, name, cluster):
    client.indices.put_settings(index=name, body={"index.blocks.write": True})
    dead, alive = (url.partition("://")[2] for url in (closed(), cluster.url))
    for hosts in (f"{dead},{alive}", f"{alive},{dead}", alive):
        (told,) = [one.advice for one in slice_os.doctor(f"http://{hosts}/{name}").findings
                   if "index.blocks.write" in one.what]  # fmt: skip
        assert f"http://{alive}/{name}-000001/_settings" in told
        assert dead not in told


READ = """
import sys, time
import slice_os
with slice_os.open(sys.argv[1]) as index:
    for passage in index.passages():
        print("reading", flush=True)
        time.sleep(600)
"""


@pytest.mark.servers("opensearch")
def test_a_killed_reader_pins_nothing_for_long(place, client):
    child = subprocess.Popen([sys.executable, "-c", READ, place], stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"reading\n"
    child.send_signal(signal.SIGKILL)
    child.communicate()
    (left,) = client.transport.perform_request("GET", "/_search/point_in_time/_all")["pits"]
    assert left["keep_alive"] <= 120_000
    client.transport.perform_request("DELETE", "/_search/point_in_time/_all")


def test_what_is_read_slowly_is_renewed(place, client, monkeypatch):
    monkeypatch.setattr(searches, "KEEP_ALIVE", 2)
    renewed, ask = [], Client.request

    def noted(self, method, path, body=None, *more, **options):
        if isinstance(body, dict) and body.get("size") == 0 and "pit" in body:
            renewed.append(body["pit"]["keep_alive"])
        return ask(self, method, path, body, *more, **options)

    monkeypatch.setattr(Client, "request", noted)
    with slice_os.open(place) as index:
        pages = index._backend.cluster.pages({"query": {"match_all": {}}}, dict, 10)
        assert len(next(pages)) == 10
        time.sleep(3)
        assert len(renewed) >= 3
        assert {*renewed} == {"2s"}
        assert [len(page) for page in pages] == [10, 10]
        count = len(renewed)
        time.sleep(1.5)
        assert len(renewed) == count  # closed, and renewed no longer

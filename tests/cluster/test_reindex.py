"""Reindexing in a cluster: settings that need no encoder, other programs, the alias."""

from __future__ import annotations

import json
import threading
import uuid

import pytest
from click.testing import CliRunner
from opensearchpy import OpenSearch

import slice_os
from slice_os.cli import main
from slice_os.lifecycle import reindex as reindexing

TEXTS = [
    "I want to cancel my subscription because it costs too much.",
    "The parcel never came, and nobody answers the telephone.",
    "Either party may end this agreement with thirty days of notice.",
]


@pytest.fixture
def name():
    return f"reindex-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def client(cluster):
    with OpenSearch(cluster.url) as client:
        yield client


@pytest.fixture
def location(cluster, client, name):
    location = f"{cluster.url}/{name}"
    documents = [
        slice_os.Document(f"d{n}", f"{TEXTS[n % 3]} Order {n}.", metadata={"a": {"b": n}})
        for n in range(90)
    ]
    slice_os.index(documents, location, cluster={"replicas": 0, "tolerance": 0.8})
    yield location
    client.indices.delete(index=f"{name}*")


def test_settings_change_without_an_encoder_and_metadata_stays_as_it_was(
    location, client, name, monkeypatch
):
    monkeypatch.setattr(reindexing, "open_encoder", lambda *_: pytest.fail("an encoder"))
    changed = {"analyzer": "standard", "shards": 2, "tolerance": 0.95, "vector_type": "float"}
    report = slice_os.reindex(location, cluster=changed)
    assert (report.source, report.copied, report.live) == ("words", 90, True)
    said = client.indices.get(index=f"{name}-000002")[f"{name}-000002"]
    assert list(said["aliases"]) == [name]
    assert said["settings"]["index"]["number_of_shards"] == "2"
    assert said["mappings"]["properties"]["text"]["analyzer"] == "standard"
    assert said["mappings"]["_meta"]["slice_os"]["tolerance"] == 0.95
    assert "build" not in said["mappings"]["_meta"]["slice_os"]
    assert said["settings"]["index"]["number_of_replicas"] == "0"
    blocks = client.indices.get_settings(index=f"{name}-000001", name="index.blocks*")
    assert not blocks or not blocks[f"{name}-000001"]["settings"]
    first, second = (
        {hit["_id"]: hit["_source"] for hit in client.search(
            index=f"{name}-00000{n}", body={"size": 100, "_source": {"excludes": ["spans"]}}
        )["hits"]["hits"]}
        for n in (1, 2)
    )  # fmt: skip
    same = ("words", "metadata", "filters", "content_hash", "document_hash", "start", "end")
    assert {id_: {key: one[key] for key in same} for id_, one in first.items()} == {
        id_: {key: one[key] for key in same} for id_, one in second.items()
    }


def test_another_program_that_writes_and_deletes_meanwhile(location, client, name):
    """By the alias, as it does: what it copies is taken over, what it deletes is gone."""

    def write(done, of):
        if done < 90:
            client.delete_by_query(
                index=name, body={"query": {"term": {"document": "d5"}}}, refresh=True
            )

    assert slice_os.reindex(location, on_progress=write).live
    with slice_os.open(location) as index:
        assert index.get("d5") is None
        assert len(index) == 89


def test_searches_by_the_alias_never_fail_and_are_never_empty(location, client, name):
    """Of an application that knows nothing of generations, through three swaps."""
    failed, count, stop = [], [0], threading.Event()
    body = slice_os.build_request("cancel my subscription", location)

    def search(own):
        while not stop.is_set():
            try:
                answer = own.search(index=name, body=body)
                if len(answer["hits"]["hits"]) != 10:
                    failed.append(answer)
                if len({hit["_index"] for hit in answer["hits"]["hits"]}) != 1:
                    failed.append("a mix of generations")
                count[0] += 1
            except Exception as exc:
                failed.append(exc)

    clients = [OpenSearch(client.transport.hosts) for _ in range(4)]
    threads = [threading.Thread(target=search, args=[one]) for one in clients]
    for thread in threads:
        thread.start()
    for _ in range(2):
        slice_os.reindex(location)
    slice_os.rollback(location)
    stop.set()
    for thread in threads:
        thread.join()
    assert failed == []
    assert count[0] > 100


def test_a_block_that_somebody_killed_has_left_is_lifted(location, client, name):
    slice_os.reindex(location)
    client.indices.put_settings(index=f"{name}-000001", body={"index.blocks.write": True})
    assert slice_os.rollback(location).number == 1
    client.indices.put_settings(index=f"{name}-000001", body={"index.blocks.write": True})
    slice_os.reindex(location)  # which only reads it
    slice_os.rollback(location)
    with slice_os.open(location) as index:
        assert (
            index.add([slice_os.Document("after", "Written after it was lifted.")]).documents == 1
        )


def test_the_verbs(location, name):
    def run(*args, code=0):
        done = CliRunner().invoke(main, [*map(str, args)])
        assert done.exit_code == code, done.output
        return done.stdout

    options = ["--index", location]
    assert "generation 2 would be made from stored words: 90 passages" in run(
        "reindex", *options, "--shards", 2, "--dry-run"
    )
    assert "it is ready: slice-os swap makes it live" in run(
        "reindex", *options, "--shards", 2, "--no-swap"
    )
    assert "generation 2 is live" in run("swap", *options)
    assert json.loads(run("rollback", *options, "--json"))["generation"] == 1
    listed = run("generations", *options).splitlines()
    assert [line.split()[:2] for line in listed[1:]] == [["1", "live"], ["2", "retired"]]
    assert "1 generation deleted" in run("generations", "prune", *options, "--keep", 0)
    assert [one["state"] for one in json.loads(run("generations", *options, "--json"))] == ["live"]
    assert "There is no index" in CliRunner().invoke(
        main, ["reindex", "--index", f"{location}-nothing"]
    ).output  # fmt: skip

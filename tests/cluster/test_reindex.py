"""Reindexing in a cluster: settings that need no encoder, other programs, the alias."""

from __future__ import annotations

import json
import threading

import pytest
from opensearchpy import OpenSearch

import slice_os
from slice_os.errors import EncoderMismatchError, GoneError, MovedError
from slice_os.ingest import run as ingest_run
from slice_os.operate import reindex as reindexing
from slice_os.operate.sample_checks import CheckError
from slice_os.storage.cluster import bulk, hold
from slice_os.storage.cluster.write import ClusterWriter
from support.trigrams import Trigrams
from support.verbs import run

TEXTS = [
    "I want to cancel my subscription because it costs too much.",
    "The parcel never came, and nobody answers the telephone.",
    "Either party may end this agreement with thirty days of notice.",
]


@pytest.fixture
def location(cluster, client, name):
    location = f"{cluster.url}/{name}"
    documents = [
        slice_os.Document(f"d{n}", f"{TEXTS[n % 3]} Order {n}.", metadata={"a": {"b": n}})
        for n in range(90)
    ]
    slice_os.index(documents, location, cluster={"replicas": 0, "tolerance": 0.6})
    yield location
    client.indices.delete(index=f"{name}*")


def blocked(client, index):
    settings = client.indices.get_settings(index=index)[index]["settings"]["index"]
    return "write" in settings.get("blocks", {})


def test_settings_change_without_an_encoder(location, client, name, monkeypatch):
    monkeypatch.setattr(reindexing, "open_encoder", lambda *_: pytest.fail("an encoder"))
    changed = {"analyzer": "standard", "shards": 2, "tolerance": 0.95, "vector_type": "float"}
    report = slice_os.reindex(location, cluster=changed)
    assert (report.source, report.copied, report.live) == ("words", 90, True)
    said = client.indices.get(index=f"{name}-000002")[f"{name}-000002"]
    assert list(said["aliases"]) == [name, f"{name}-000002-w", f"{name}-0free"]
    assert said["settings"]["index"]["number_of_shards"] == "2"
    assert said["mappings"]["properties"]["text"]["analyzer"] == "standard"
    assert said["mappings"]["_meta"]["slice_os"]["tolerance"] == 0.95
    assert "build" not in said["mappings"]["_meta"]["slice_os"]
    assert said["settings"]["index"]["number_of_replicas"] == "0"
    assert blocked(client, f"{name}-000001")  # a retired generation takes nothing more
    assert not blocked(client, f"{name}-000002")
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

    def write(share):
        if share < 1:
            client.delete_by_query(
                index=name, body={"query": {"term": {"document": "d5"}}}, refresh=True
            )

    assert slice_os.reindex(location, on_progress=write).live
    with slice_os.open(location) as index:
        assert index.get("d5") is None
        assert len(index) == 89


def test_a_run_ends_at_a_swap_and_the_next_keeps_what_is_done(location, name, monkeypatch):
    many = [
        slice_os.Document(f"e{n}", f"{TEXTS[n % 3]} Number {n}.", metadata={"n": n})
        for n in range(150)
    ]
    monkeypatch.setattr(ingest_run, "COMMIT_SECONDS", 0)
    monkeypatch.setattr(bulk, "BATCH_SECONDS", 0.05)
    moved = []

    def move(report):
        if report.documents > 50 and not moved:
            moved.append(slice_os.reindex(location))

    with slice_os.open(location) as index:
        with pytest.raises(MovedError, match="run this again"):
            index.add(many, on_progress=move)
        report = index.add(many)
        assert report.unchanged > 50
        assert (report.rejected, report.documents + report.unchanged) == (0, 150)
        assert len(index) == 240
    found = slice_os.check(location, sample=None)
    assert found.healthy, found.findings
    with slice_os.open(location) as index, pytest.raises(GoneError, match="no longer names"):
        index.add(
            [slice_os.Document("late", "Back."), *many],
            on_progress=lambda report: moved.pop() and slice_os.rollback(location) if moved else 0,
        )


def test_searches_by_the_alias_never_fail_and_are_never_empty(location, client, name):
    """Of an application that knows nothing of generations, through three swaps."""
    failed, count, stop = [], [0], threading.Event()
    body = slice_os.build_request("cancel my subscription", location)

    def search(own):
        while not stop.wait(0.01):
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


@pytest.mark.parametrize("words", [None, 30])
def test_documents_half_written_at_the_swap_are_whole_after_rollback(
    location, words, tmp_path, monkeypatch
):
    """Of which the new passages were in, and the deletion of the former ones was refused."""
    slice_os.reindex(location, passage_words=words, swap=False)
    written = [slice_os.Document(f"d{n}", f"Document {n} as it is now.") for n in (5, 6)]
    with slice_os.open(location) as index, monkeypatch.context() as patch:
        patch.setattr(ClusterWriter, "_complete", lambda writer: None)
        index.add(written)
        assert {one.hash for one in index._backend.stored(["d5", "d6"]).values()} == {None}
    slice_os.swap(location)
    with slice_os.open(location) as index:
        assert index.add(written).documents == 2  # as the writer does that was refused
        index.delete(["d6"])
    if words:  # the text is to be encoded anew
        (tmp_path / "trigrams.json").write_text('{"dimension": 384, "max_tokens": 512}')
        other = Trigrams(tmp_path, "cpu", None)
        with pytest.raises(EncoderMismatchError, match="give that encoder"):
            slice_os.rollback(location, encoder=other)
    assert slice_os.rollback(location).number == 1
    with slice_os.open(location) as index:
        assert index.get("d5").text == written[0].text
        assert index.get("d6") is None
        every = [(one.passage.document, one.passage.number) for one in index.passages()]
        assert len(every) == len(set(every)) == 89
    found = slice_os.check(location, sample=None)
    assert found.healthy, found.findings
    assert slice_os.generations(location)[0].build == {}


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


def test_the_name_is_moved_while_a_writer_asks_why_it_was_refused(
    location, client, name, monkeypatch
):
    client.indices.put_settings(index=f"{name}-000001", body={"index.blocks.write": True})
    await_holder, moved = hold.await_holder, []

    def before_a_move(cluster, *more):
        description = await_holder(cluster, *more)
        if not moved:
            moved.append(None)
            slice_os.reindex(location)
        return description

    monkeypatch.setattr(hold, "await_holder", before_a_move)
    document = slice_os.Document("late", "Written while it moved.")
    with slice_os.open(location) as index:
        with pytest.raises(MovedError, match="moved to generation 2"):
            index.add([document])
        index.add([document])
        assert index.get("late").text == "Written while it moved."


def test_the_verbs(location, name):
    options = ["--index", location]
    planned = run("reindex", *options, "--shards", 2, "--dry-run").stdout
    assert "generation 2 would be made from stored words: 90 passages" in planned
    made = run("reindex", *options, "--shards", 2, "--no-swap").stdout
    assert "it is ready: slice-os swap makes it live" in made
    assert "generation 2 is live" in run("swap", *options).stdout
    assert json.loads(run("rollback", *options, "--json").stdout)["generation"] == 1
    listed = run("generations", *options).stdout.splitlines()
    assert [line.split()[:2] for line in listed[1:]] == [["1", "live"], ["2", "rolled"]]
    assert "1 generation deleted" in run("generations", "prune", *options, "--keep", 0).stdout
    (left,) = json.loads(run("generations", *options, "--json").stdout)
    assert left["state"] == "live"
    refused = run("reindex", "--index", f"{location}-nothing", ok=1)
    assert "There is no index" in refused.stderr


def test_rejects_keep_the_next_generation_from_being_made_live(location, client):
    odd = slice_os.Document("odd", f"{TEXTS[0]} No order.", metadata={"a": {"b": "unknown"}})
    slice_os.index([odd], location)
    settings, rejected = {"fields": {"a.b": "integer"}}, []
    with pytest.raises(CheckError, match=r"rejected.*: 1 \('odd' for one\).*--accept-rejects"):
        slice_os.reindex(location, cluster=settings, on_reject=rejected.append)
    assert {one.document for one in rejected} == {"odd"}
    assert [one.state for one in slice_os.generations(location)] == ["live", "ready"]
    with pytest.raises(CheckError, match="'odd' for one"):
        slice_os.swap(location)
    done = run("reindex", "--index", location, "--fields", "a.b:integer", ok=1)
    assert "--accept-rejects" in done.stderr
    with slice_os.open(location) as index:
        assert index.get("odd") is not None
    settings = "--fields", "a.b:integer", "--accept-rejects"
    assert "1 rejected" in run("reindex", "--index", location, *settings, ok=3).stderr
    with slice_os.open(location) as index:
        assert index.get("odd") is None
        assert len(index) == 90
    to = f"{location}-copy"
    slice_os.rollback(location)
    done = run("reindex", "--index", location, "--to", to, "--fields", "a.b:integer", ok=3)
    assert f"{to} holds 90 documents" in done.stdout


def test_a_build_goes_on_after_its_replicas_were_taken_away(location, client, name):
    """A run that is killed while it loads leaves none, and all dimensions may be named."""
    settings = {"replicas": 1, "dimensions": 384}

    def stop(share):
        (index,) = client.indices.get_settings(index=f"{name}-000002").values()
        assert index["settings"]["index"]["number_of_replicas"] == "0"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        slice_os.reindex(location, cluster=settings, on_progress=stop)
    client.indices.put_settings(index=f"{name}-000002", body={"number_of_replicas": 0})
    note = {"number_of_replicas": 1, "refresh_interval": None}
    mapping = client.indices.get_mapping(index=f"{name}-000002")[f"{name}-000002"]["mappings"]
    mapping["_meta"]["slice_os"]["loading"] = note  # as kill -9 leaves it
    client.indices.put_mapping(index=f"{name}-000002", body={"_meta": mapping["_meta"]})
    assert slice_os.reindex(location, cluster=settings).live
    (index,) = client.indices.get_settings(index=name).values()
    assert index["settings"]["index"]["number_of_replicas"] == "1"

"""What others do to an index, or to its cluster, while slice-os works with it."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from opensearchpy import ConnectionError as NoConnection
from opensearchpy import NotFoundError, SSLError

import slice_os
from slice_os.errors import ClusterError, LocationError, MovedError
from slice_os.storage.cluster import bulk
from slice_os.storage.cluster.client import Client
from slice_os.storage.cluster.cluster_errors import WRITE_RETRY_TIMEOUT, with_retries
from slice_os.storage.cluster.opensearch import OpenSearch as Dialect
from slice_os.storage.cluster.requests import Cluster
from slice_os.storage.cluster.settings import parse_location
from support.faults import make_like, settings
from support.verbs import TEXTS, run

SERVERS = ("opensearch", "elasticsearch")

ONE = slice_os.ClusterSettings(replicas=0, tolerance=0.5)


@pytest.fixture
def name(name, client):
    yield name
    for kind in (client.indices.delete_index_template, client.cluster.delete_component_template):
        with suppress(NotFoundError):
            kind(name=f"{name}*")


@pytest.fixture
def place(cluster, name):
    place = f"{cluster.url}/{name}"
    slice_os.index([slice_os.Document("old", TEXTS[0])], place, cluster=ONE)
    return place


def documents(count=60):
    return [slice_os.Document(f"d{n}", f"{TEXTS[n % 3]} Order {n}.") for n in range(count)]


def test_an_index_that_is_deleted_under_a_run_is_no_success(client, place, name):
    deleted = []

    def delete(report):
        if report.documents and not deleted:
            deleted.append(client.indices.delete(index=f"{name}-000001"))

    with (
        slice_os.open(place) as index,
        pytest.raises(ClusterError, match=r"was deleted while|no longer names"),
    ):
        index.add(documents(), on_progress=delete)


def test_a_run_notices_an_alias_that_is_moved_and_what_is_open_follows_it(client, place, name):
    make_like(client, f"{name}-000002", f"{name}-000001")
    moves = [
        {"remove": {"index": f"{name}-000001", "alias": name}},
        {"add": {"index": f"{name}-000002", "alias": name}},
    ]

    def move(report):
        if name in client.indices.get(index=f"{name}-000001")[f"{name}-000001"]["aliases"]:
            client.indices.update_aliases(body={"actions": moves})

    with slice_os.open(place) as index:
        assert index.search("subscription")[0].document == "old"
        with pytest.raises(ClusterError, match=f"no longer names.*{name}-000002.*open it anew"):
            index.add(documents(2), on_progress=move)
        index.add(documents(2))
        client.indices.delete(index=f"{name}-000001")
        assert {hit.document for hit in index.search("subscription")} == {"d0", "d1"}
        client.indices.delete(index=f"{name}-000002")
        with pytest.raises(LocationError, match="There is no index"):
            index.search("subscription")


def test_a_run_ends_with_one_sentence_where_the_index_moves(place):
    is_moving = pytest.raises(MovedError, match=r"is moving .* what is done is kept\.$")
    with slice_os.open(place) as index, index._backend.hold(), is_moving:
        index.add(documents(2))
    moved = []

    def move(report):
        if report.documents and not moved:
            moved.append(slice_os.reindex(place))

    with slice_os.open(place) as index:
        with pytest.raises(MovedError, match=r"moved to generation 2: run this again; what"):
            index.add(documents(), on_progress=move)
        report = index.add(documents())
        assert report.documents + report.unchanged == 60
        assert index.search("Order 59", mode="lexical")[0].document == "d59"


def test_an_alias_with_a_filter_is_refused(client, place, name):
    term = {"filter": {"term": {"document": "old"}}}
    client.indices.put_alias(index=f"{name}-000001", name=name, body=term)
    with pytest.raises(LocationError, match=r"a setting that slice-os does not go by \(filter\)"):
        slice_os.open(place)


def test_the_replicas_asked_for_hold_after_a_load_that_was_killed(client, place, name):
    loading = {"refresh_interval": None, "number_of_replicas": 1}
    meta = client.indices.get(index=name)[f"{name}-000001"]["mappings"]["_meta"]
    meta["slice_os"]["loading"] = loading
    client.indices.put_mapping(index=name, body={"_meta": meta})
    slice_os.index(documents(2), place, cluster=ONE)
    assert settings(client, name) == (None, 0, None)


@pytest.mark.parametrize(
    ("block", "said"),
    [("write", "blocked by: .*'slice-os doctor'"), ("read_only_allow_delete", "free disk")],
)
def test_a_blocked_index_ends_a_run_at_once(client, place, name, block, said):
    client.indices.put_settings(index=name, body={"index": {f"blocks.{block}": True}})
    began = time.monotonic()
    try:
        with slice_os.open(place) as index:
            with pytest.raises(ClusterError, match=said):
                index.add(documents())
            if block == "write":
                with pytest.raises(ClusterError, match=said):
                    index.delete(["old"])
    finally:
        client.indices.put_settings(index=name, body={"index": {f"blocks.{block}": None}})
    assert time.monotonic() - began < WRITE_RETRY_TIMEOUT / 2


def test_a_closed_index_says_so(client, place, name):
    client.indices.close(index=f"{name}-000001")
    with slice_os.open(place) as index, pytest.raises(ClusterError, match="is closed: open it"):
        index.search("subscription")


def test_changed_metadata_reads_stored_words_page_by_page(place, monkeypatch):
    asked = []
    words = Cluster.words
    monkeypatch.setattr(
        Cluster, "words", lambda self, ids: asked.append(len(ids)) or words(self, ids)
    )
    with slice_os.open(place) as index:
        index.add(documents(150))
        again = [slice_os.Document(one.id, one.text, metadata={"n": 1}) for one in documents(150)]
        report = index.add(again)
        assert (report.documents, report.encoded_words) == (150, 0)
        assert asked == [100, 50]
        assert index.search("Order 149", filters=["n=1"], mode="lexical")[0].document == "d149"
        assert index.add(again).unchanged == 150


def test_somebody_who_leaves_does_not_wait_for_a_cluster_that_is_away(place, monkeypatch):
    monkeypatch.setattr(bulk, "LAST_RETRY_TIMEOUT", 0.5)
    began = time.monotonic()
    with Client(parse_location("http://127.0.0.1:1/nothing")) as client:
        with_retries(lambda: 1, client.url)  # one that has answered: it is waited for
        sender = bulk.BulkSender(Cluster(client, Dialect(), "nothing"), lambda reject: None)
        sender.send(bulk.Operation("d", "d#0", b"{}\n{}\n"))
        sender.stop_retrying()
        with pytest.raises(ClusterError, match="No cluster answers"):
            sender.close()
    assert time.monotonic() - began < WRITE_RETRY_TIMEOUT / 2


def test_a_cut_handshake_is_tried_again_where_tls_was_spoken_before():
    url, cut = "https://cut.test:9200", "[SSL: UNEXPECTED_EOF_WHILE_READING] EOF occurred"
    answers = [SSLError("N/A", cut, OSError(cut)), NoConnection("N/A", "x", OSError("x")), None]

    def work():
        if (answer := answers.pop(0)) is not None:
            raise answer
        return "here"

    with pytest.raises(ClusterError, match="does not speak TLS: write http://"):
        with_retries(work, url)
    answers.insert(0, SSLError("N/A", cut, OSError(cut)))
    with_retries(lambda: 1, url)
    assert with_retries(work, url) == "here"
    with pytest.raises(ClusterError, match="cuts the connection off"):
        with_retries(lambda: (_ for _ in ()).throw(SSLError("N/A", cut, OSError(cut))), url, 0.1)


def test_templates_of_others_are_named(cluster, client, name):
    place = f"{cluster.url}/{name}"
    client.cluster.put_component_template(name=f"{name}-x", body={"template": {"settings": {}}})
    of_parts = {"index_patterns": ["zzz*"], "composed_of": [f"{name}-x"]}
    client.indices.put_index_template(name=name, body=of_parts)
    slice_os.index(documents(1), place, cluster=None)  # theirs is not ours, nor for this index
    run("templates", "apply", "--index", f"{place}-b")
    over = {"index_patterns": [f"{name}-b-*"], "priority": 900, "template": {}}
    client.indices.put_index_template(name=f"{name}-over", body=over)
    with pytest.raises(LocationError, match=r"templates make .* another index than slice-os needs"):
        slice_os.index(documents(1), f"{place}-b")
    assert not client.indices.exists(index=f"{name}-b-000001")


def test_templates_of_names_that_begin_alike_live_together(cluster, client, name):
    run("templates", "apply", "--index", f"{cluster.url}/{name}", "--shards", 1)
    run("templates", "apply", "--index", f"{cluster.url}/{name}-07", "--shards", 2)
    slice_os.index(documents(1), f"{cluster.url}/{name}-07")
    found = client.indices.get_settings(index=f"{name}-07-000001")
    assert found[f"{name}-07-000001"]["settings"]["index"]["number_of_shards"] == "2"
    refused = run("templates", "show", "--alias", "Bad Name*", ok=1).stderr
    assert "names no index" in refused


def test_a_generation_is_not_named_itself(place, name):
    for verb in ("status", "doctor"):
        said = run(verb, "--index", f"{place}-000001", ok=1)
        assert f"one generation of an index: name its alias, {name}." in said.stderr + said.stdout

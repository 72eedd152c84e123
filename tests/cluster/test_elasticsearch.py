"""What only Elasticsearch has: its facts, its versions, the bodies of its page, the way between."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import regex
from opensearchpy import OpenSearch

import slice_os
from slice_os.errors import LocationError
from slice_os.operate import reindex as reindexing
from slice_os.query import query_value, read_hits, span_query
from slice_os.storage.cluster import candidates as retrieve
from slice_os.storage.cluster.dialect import dialect_of
from slice_os.storage.cluster.elasticsearch import Elasticsearch
from slice_os.storage.cluster.mining_scan import Scan
from slice_os.storage.cluster.settings import ClusterSettings, Layout
from slice_os.storage.contract import SearchQuery
from support.proxy import proxied
from support.verbs import request, run

from .elasticsearch import ELASTICSEARCH_8
from .launcher import Cluster, start_cluster

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "query-elasticsearch.md").read_text()
CONVERSATIONS = ROOT / "examples" / "conversations"
PHRASES = ["wants to cancel", "thank you", "talk to a manager", "my order has not arrived"]
FEWER = {"replicas": 0, "tolerance": 0.6}
"""Settings of copies: a graph of fewer spans is soon built, and misses no more."""
SERVERS = ("elasticsearch",)


@pytest.fixture(scope="module")
def older() -> Iterator[Cluster]:
    """A node of 8.19."""
    with start_cluster(server=ELASTICSEARCH_8) as one:
        yield one


@pytest.fixture(scope="module", params=["elasticsearch", "older"])
def node(request):
    """A node of each version that is promised, as far as it is to be had."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Every third conversation in an embedded index: graphs of all take minutes to build."""
    location = str(tmp_path_factory.mktemp("own") / "own.slice")
    slice_os.index(islice(slice_os.read(CONVERSATIONS), 0, None, 3), location)
    return location


def new(node):
    return f"{node.url}/elastic-{uuid.uuid4().hex[:12]}"


@pytest.fixture(scope="module")
def filled(node, folder):
    """The same in a node, copied without encoding."""
    location = new(node)
    slice_os.reindex(folder, to=location, cluster={"tolerance": 0.8})
    return location


def mined(location, **options):
    with slice_os.open(location) as index:
        found = index.mine(PHRASES, min_degree=0.8, **options)
        return {(m.phrase, m.document, m.passage, m.start): m.degree for m in found}


@pytest.mark.parametrize(
    ("mode", "fusion"),
    [("dense", None), ("hybrid", "saturation"), ("hybrid", "rrf"), ("lexical", None)],
)
def test_each_version_finds_what_a_folder_does(filled, folder, mode, fusion):
    options = {"mode": mode, "size": 10, "rescore": 0, **({"fusion": fusion} if fusion else {})}
    for filters in (None, ["domain=media"], ["domain!=airline"]):
        with slice_os.open(folder) as ours, slice_os.open(filled) as theirs:
            for phrase in PHRASES:
                wanted = ours.search(phrase, filters=filters, **options)
                found = theirs.search(phrase, filters=filters, **options)
                assert len(found) == len(wanted)
                degrees = {(h.document, h.passage): h.degree for h in wanted}
                same = [h for h in found if (h.document, h.passage) in degrees]
                assert len(same) >= len(wanted) - 1
                for hit in same:
                    own = degrees[hit.document, hit.passage]
                    assert hit.degree == pytest.approx(own, abs=1e-6)


def test_what_only_the_text_matches_ranks_as_deep_as_is_asked_for(filled, monkeypatch):
    monkeypatch.setattr(retrieve, "NEAREST", 10)
    vector = np.random.default_rng(0).normal(size=384).astype(np.float32)
    asked = SearchQuery("thank you for your help with my order", vector, range(4, 12))
    asked = replace(asked, ranks=range(40), reach=10)
    with slice_os.open(filled) as index:
        (found,) = index._backend.candidates([asked])
        (matched,) = index._backend.candidates([replace(asked, mode="lexical")])
    assert len(found) == len(matched) == 40
    scores = [one.score for one in found]
    assert scores == sorted(scores, reverse=True)
    bm25 = {(c.stored.passage.document, c.stored.passage.number): c.score for c in matched}
    known = [c for c in found if (c.stored.passage.document, c.stored.passage.number) in bm25]
    assert len(known) >= 34
    for one in known:
        key = one.stored.passage.document, one.stored.passage.number
        assert one.bm25 == pytest.approx(bm25[key], rel=1e-5)


@pytest.mark.parametrize("windows", [(1_000, 10_000), (5, 10_000), (5,)])
def test_mining_misses_nothing_however_short_its_lists_are(filled, folder, windows, monkeypatch):
    monkeypatch.setattr(Scan, "graph_pays", lambda self: True)
    monkeypatch.setattr(Elasticsearch, "windows", windows)
    if len(windows) == 1:  # full at once: every word is read
        monkeypatch.setattr("slice_os.storage.cluster.mining_scan.WINDOW", 5)
    found, wanted = mined(filled), mined(folder)
    assert len(wanted) > 5
    assert found.keys() == wanted.keys()


def test_the_graph_is_searched_to_its_end(node, filled):
    """Newer versions give it up early unless told not to, on nested vectors far too early."""
    with slice_os.open(filled) as index:
        cluster = index._backend.cluster
        body = {"query": {"match_all": {}}, **cluster.dialect.whole_source}
        stored = {
            hit["_id"]: np.array([one["vector"] for one in hit["_source"]["spans"]], np.float32)
            for page in cluster.pages(body, dict, 50)
            for hit in page
        }
        for seed in range(5):
            vector = np.random.default_rng(seed).normal(size=384) + stored[next(iter(stored))][seed]
            query = np.array(query_value(vector), np.float32)
            cosines = {
                id_: float((some @ query / np.linalg.norm(some, axis=1)).max())
                for id_, some in stored.items()
            }
            nearest = set(sorted(cosines, key=lambda id_: -cosines[id_])[:40])
            body = span_query(vector, size=40, spans=0, source=(), dialect="elasticsearch")
            found = {hit["_id"] for hit in cluster.search(body, list[dict])}
            assert len(found & nearest) >= 38


def test_a_filter_on_spans_within_knn_finds_nothing_as_the_page_says(filled):
    """Whoever upgrades may look whether it still does."""
    body = span_query(np.ones(384), spans=0, source=(), dialect="elasticsearch")
    inside = {"nested": {"path": "spans", "query": {"range": {"spans.start": {"gte": 0}}}}}
    body["query"]["nested"]["query"]["knn"]["filter"] = inside
    assert request("POST", f"{filled}/_search", body)["hits"]["hits"] == []


def sound(location, before, monkeypatch):
    """Its vectors are what they were: those that are stored and those that are searched."""
    for graph in (True, False):
        monkeypatch.setattr(Scan, "graph_pays", lambda self, graph=graph: graph)
        assert mined(location) == before
    found = slice_os.doctor(location, deep=True).findings
    assert not any("not those of their words" in one.what for one in found)


@pytest.fixture
def copied(node, folder):
    """A copy of its own, its index and a client."""
    location = new(node)
    slice_os.reindex(folder, to=location, cluster=FEWER)
    with OpenSearch(node.url, timeout=60) as client:
        (index,) = client.indices.get_alias(name=location.rpartition("/")[2])
        yield location, index, client


def test_updates_and_merges_leave_vectors_alone(copied, monkeypatch):
    location, index, client = copied
    before = mined(location)
    assert len(before) > 5
    body = {"size": 1000, "_source": False}
    for hit in client.search(index=index, body=body)["hits"]["hits"]:
        client.update(index=index, id=hit["_id"], body={"doc": {"title": "other"}})
    client.indices.refresh(index=index)
    sound(location, before, monkeypatch)
    client.indices.forcemerge(index=index, max_num_segments=1)
    sound(location, before, monkeypatch)
    with slice_os.open(location) as opened:
        assert {hit.title for hit in opened.search("thank you")} == {"other"}


@pytest.mark.parametrize("kind", ["byte", "float"])
@pytest.mark.parametrize("kept", [True, False], ids=["kept in _source", "left out of it"])
def test_vectors_that_came_as_base64_are_what_arrays_make(cluster, folder, kind, kept, monkeypatch):
    places = []
    for packed in (True, False):
        place = new(cluster)
        name = place.rpartition("/")[2]
        settings: ClusterSettings = {"tolerance": 0.6, "replicas": 0, "vector_type": kind}
        body = slice_os.show_template("elasticsearch/passages", alias=name, cluster=settings)
        if kept:
            body["template"]["settings"]["index"]["mapping"]["exclude_source_vectors"] = False
        request("PUT", f"{cluster.url}/_index_template/{name}", body)
        with monkeypatch.context() as patch:
            if not packed:
                patch.setattr(Elasticsearch, "packed_vectors", lambda self, vectors: list(vectors))
            slice_os.reindex(folder, to=place)
        places.append(place)
        findings = slice_os.doctor(place, deep=True).findings
        assert any("spans that were looked at are those" in finding.what for finding in findings)
        with slice_os.open(place) as index:
            whole = {"query": {"match_all": {}}, **index._backend.cluster.dialect.whole_source}
            hits = index._backend.cluster.search({**whole, "size": 1}, list[dict])
            (hit,) = hits
            vector = hit["_source"]["spans"][0]["vector"]
            assert isinstance(vector, str) == (packed and kept)
    query = span_query(np.ones(384), vector_type=kind, source=["document"], dialect="elasticsearch")
    first, second = (request("POST", f"{place}/_search", query)["hits"]["hits"] for place in places)
    assert [hit["_score"] for hit in first] == [hit["_score"] for hit in second]
    run("doctor", "--repair", "--index", places[0])


@pytest.mark.parametrize("node", ["older"], indirect=True)
def test_a_snapshot_is_restored_under_another_name(node, folder, monkeypatch):
    location = new(node)
    slice_os.reindex(folder, to=location, cluster=FEWER)
    alias, before = location.rpartition("/")[2], mined(location)
    with OpenSearch(node.url, timeout=60) as client:
        where = {"type": "fs", "settings": {"location": str(node.snapshots)}}
        client.snapshot.create_repository(repository="here", body=where)
        body = {"indices": f"{alias}-000001"}
        client.snapshot.create(
            repository="here", snapshot="one", body=body, wait_for_completion=True
        )
        # Elasticsearch renames no alias: it is left out, and put on what was restored.
        body |= {
            "rename_pattern": "(.+)", "rename_replacement": "restored-$1", "include_aliases": False,
        }  # fmt: skip
        client.snapshot.restore(
            repository="here", snapshot="one", body=body, wait_for_completion=True
        )
        client.indices.put_alias(index=f"restored-{alias}-000001", name=f"restored-{alias}")
        client.snapshot.delete(repository="here", snapshot="one")
    sound(f"{node.url}/restored-{alias}", before, monkeypatch)


@pytest.mark.parametrize("engine", ["int8_hnsw", "bbq_hnsw"])
def test_indexes_of_codes_find_every_match_too(node, folder, engine):
    settings = {**FEWER, "engine": engine, "vector_type": "float"}
    location = new(node)
    slice_os.reindex(folder, to=location, cluster=settings)
    with slice_os.open(location) as index:
        assert index.status().details["engine"] == engine
        for hit in index.search("the customer wants to cancel", size=3, rescore=0):
            assert hit.degree > 0.6
    assert mined(location).keys() == mined(folder).keys()
    advice = slice_os.doctor(location).to_dict()["findings"]
    assert any(f"searches codes of its vectors ({engine})" in one["what"] for one in advice)
    with pytest.raises(LocationError, match="makes codes of floats"):
        Elasticsearch().check(Layout(engine=engine))  # type: ignore[arg-type]


def test_an_index_on_disk_is_refused_by_name(node):
    """Before 9.2 there is none, and it takes a licence, which the nodes of tests do not have."""
    place, refused = new(node), []
    settings = {"engine": "bbq_disk", "vector_type": "float", "replicas": 0}
    document = slice_os.Document("a", "I want to cancel my plan, please.")
    if node.server is ELASTICSEARCH_8:
        with pytest.raises(LocationError, match=r"8\.19 has no engine bbq_disk: choose bbq_hnsw"):
            slice_os.index([document], place, cluster=settings)
        return
    report = slice_os.index([document], place, cluster=settings, on_reject=refused.append)
    assert (report.documents, report.rejected) == (0, 1)
    assert "license is non-compliant for [bbq_disk]" in refused[0].reason


def test_the_bodies_of_the_page(cluster):
    index = f"{cluster.url}/page-{uuid.uuid4().hex[:12]}"
    shown = json.loads(run("templates", "show", "elasticsearch/passages").stdout)["template"]
    shown["mappings"]["properties"]["spans"]["properties"]["vector"]["dims"] = 4
    request("PUT", index, shown)
    spans = [{"start": 0, "end": 4, "vector": [32, -127, 64, 16]}]
    for number, text in enumerate(["she wants to cancel", "to cancel", "a book"]):
        body = {
            "document": f"d{number}", "passage": 0, "text": text, "start": 0, "end": len(text),
            "filters": ["kind\0tbook"], "tolerance": 0.95, "spans": spans,
        }  # fmt: skip
        request("PUT", f"{index}/_doc/{number}?refresh=true", body)
    sent = 0
    licensed = PAGE.index("## With a licence"), PAGE.index("## Mining")
    for found in regex.finditer(r"```json\n(.*?)```", PAGE, regex.S):
        value = json.loads(found[1])
        for body in value if isinstance(value, list) else [value]:
            if isinstance(body, dict) and "size" in body:
                if licensed[0] < found.start() < licensed[1]:
                    assert "retriever" in body
                    continue
                hits = read_hits(request("POST", f"{index}/_search", body))
                assert {hit.document for hit in hits} >= {"d0", "d1"}, body
                sent += 1
    assert sent == 4
    request("DELETE", index)


def test_between_servers_words_are_handed_over(cluster, opensearch, folder, monkeypatch):
    monkeypatch.setattr(reindexing, "open_encoder", lambda *_: pytest.fail("an encoder"))
    first, second, third = f"{opensearch.url}/way-{uuid.uuid4().hex[:12]}", new(cluster), ""
    slice_os.reindex(folder, to=first, cluster=FEWER)
    assert slice_os.reindex(first, to=second, cluster=FEWER).source == "words"
    third = f"{opensearch.url}/way-{uuid.uuid4().hex[:12]}"
    slice_os.reindex(second, to=third, cluster=FEWER)
    bodies = []
    for place in (first, second, third):
        with slice_os.open(place) as index:
            ask = index._backend.cluster
            body = {"query": {"match_all": {}}, **ask.dialect.whole_source}
            found = {
                hit["_id"]: hit["_source"] for page in ask.pages(body, dict, 50) for hit in page
            }
            bodies.append(found)
    assert bodies[0] == bodies[1] == bodies[2]
    assert len(bodies[0]) > 25
    assert slice_os.reindex(first, to=third).copied == 0


def test_a_plain_index_is_read_and_its_vectors_left_out(cluster):
    old, taken = new(cluster), new(cluster)
    vector = {"type": "dense_vector", "dims": 2}
    request("PUT", old, {"mappings": {"properties": {"body": {"type": "text"}, "v": vector}}})
    text = "I would like to end my subscription."
    request("PUT", f"{old}/_doc/a?refresh=true", {"body": text, "v": [1, 2], "year": 2020})
    run("index", "--from-index", old, "--index", taken)
    with slice_os.open(taken) as index:
        (hit,) = index.search("cancel the subscription", filters={"year": 2020})
        assert (hit.document, hit.metadata) == ("a", {"year": 2020})


def test_a_server_is_known_by_how_it_refuses(filled):
    said = {
        "type": "security_exception",
        "reason": "action [cluster:monitor/main] is unauthorized for user [ann] with effective "
        "roles [search], this action is granted by the cluster privileges [monitor,manage,all]",
    }
    body = json.dumps({"error": {"root_cause": [said], **said}, "status": 403}).encode()
    with proxied(filled.rpartition("/")[0], lambda _: None) as proxy:
        passed = proxy.answer
        refused = (403, "application/json", body)
        proxy.answer = lambda asked: refused if asked.path == "/" else passed(asked)
        with slice_os.open(f"{proxy.url}/{filled.rpartition('/')[2]}") as index:
            assert index.status().backend == "elasticsearch"
            assert index.search("cancel the subscription")


def test_before_8_15_a_knn_query_has_no_k(filled):
    older = Elasticsearch((8, 14))
    body = {"query": {"bool": {"must": [span_query([1, 2], dialect="elasticsearch")["query"]]}}}
    knn = older.adapt(body)["query"]["bool"]["must"][0]["nested"]["query"]["knn"]
    assert knn == {"field": "spans.vector", "query_vector": [64, 127], "num_candidates": 100}
    assert Elasticsearch((8, 15)).adapt(body) is body
    assert older.settings() == {}
    assert Elasticsearch().settings() != {}


def test_the_doctor_says_what_hurts(node, filled):
    with OpenSearch(node.url) as client:
        name = filled.rpartition("/")[2]
        healthy = slice_os.doctor(filled)
        assert healthy.healthy
        assert "gives its graph up" not in str(healthy)
        if node.server is ELASTICSEARCH_8:
            return
        setting = "index.dense_vector.hnsw_enable_early_termination"
        client.indices.put_settings(index=name, body={setting: None})
        (advice,) = (
            one.advice for one in slice_os.doctor(filled).findings if "up early" in one.what
        )
        assert "hnsw_enable_early_termination" in advice
        client.indices.put_settings(index=name, body={setting: False})
    with slice_os.open(filled) as index:
        assert isinstance(dialect_of(index._backend.cluster.client), Elasticsearch)

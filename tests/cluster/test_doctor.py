"""The doctor: on a real node, on a folder, and on answers that no test cluster would give."""

from __future__ import annotations

import json
import uuid

import pytest
from opensearchpy import OpenSearch

import slice_os
from slice_os.errors import ClusterError, LocationError
from slice_os.operate.cluster_health import check_heap, check_shards
from slice_os.operate.cluster_index import check_settings, seconds
from slice_os.operate.doctor import doctor
from slice_os.operate.findings import Notes, complete, size_of
from slice_os.storage import IndexMeta, backend_for
from slice_os.storage.cluster.opensearch import OpenSearch as Dialect
from slice_os.storage.cluster.opensearch import _fusions, _graphs
from support.local import put
from support.proxy import closed, proxied
from support.verbs import run

GB = 10**9
NODE = {
    "name": "n1", "data": True, "heap_bytes": 4 * GB, "heap_used_percent": 50,
    "memory_bytes": 16 * GB, "disk_bytes": 100 * GB, "disk_available_bytes": 50 * GB,
}  # fmt: skip


@pytest.fixture(scope="module")
def client(cluster):
    with OpenSearch(cluster.url) as client:
        yield client


@pytest.fixture
def place(cluster, client):
    place = f"{cluster.url}/doctor-{uuid.uuid4().hex[:12]}"
    settings = slice_os.ClusterSettings(replicas=0)
    slice_os.index([slice_os.Document("a", "Please cancel my plan.")], place, cluster=settings)
    yield place
    client.indices.delete(index=f"{place.rpartition('/')[2]}-000001")


def said(diagnosis, *severities):
    return {f.what: f.advice for f in diagnosis.findings if f.severity in severities}


def only(notes):
    """Return the one finding of some notes, as (severity, what and advice)."""
    (finding,) = notes.findings
    return finding.severity, f"{finding.what}: {finding.advice}"


def test_a_healthy_index(place, client):
    found = doctor(place)
    assert found.healthy
    assert said(found, "warning", "error") == {}
    assert any("encoder slice-english-v2 fits" in what for what in said(found, "ok"))
    facts = found.facts
    assert facts["version"] == "3.6.0"
    assert facts["plugins"] == ["opensearch-knn"]
    assert facts["fusions"].startswith("saturation: one request; rrf, min_max: two searches")
    assert facts["knn_breaker"] == "ok"
    (node,) = client.nodes.info(metric="jvm")["nodes"].values()
    assert facts["nodes"][0]["heap_bytes"] == node["jvm"]["mem"]["heap_max_in_bytes"]
    assert facts["generation"] == f"{place.rpartition('/')[2]}-000001"
    assert (facts["documents"], facts["passages"], facts["words"]) == (1, 1, 4)
    assert (facts["tolerance"], facts["engine"]) == (0.9, "lucene")
    shown = run("doctor", "--index", place)
    assert "heap" in shown.stdout
    assert "ok       Every document is complete." in shown.stdout


def test_a_passage_that_is_missing_in_the_middle_is_found(place, client):
    text = "\n".join(f"This is sentence number {n}, of some length." for n in range(60))
    slice_os.index([slice_os.Document("long", text)], place)
    assert doctor(place).healthy
    client.delete_by_query(
        index=place.rpartition("/")[2],
        body={"query": {"bool": {"must": [
            {"term": {"document": "long"}}, {"term": {"passage": 1}},
        ]}}},
        refresh=True,
    )  # fmt: skip
    (what,) = said(doctor(place), "error")
    passages = doctor(place).facts["passages"]
    assert f"should have {passages + 1} passages, and there are {passages}" in what
    slice_os.index([slice_os.Document("long", text)], place)
    assert doctor(place).healthy


def test_an_index_that_cannot_answer_is_diagnosed_all_the_same(place, client):
    index = f"{place.rpartition('/')[2]}-000001"
    client.indices.put_settings(index=index, body={"index.blocks.read": True})
    found = doctor(place)
    assert any("index.blocks.read" in what for what in said(found, "error"))
    assert any("_search is not answered now" in what for what in said(found, "warning"))
    client.indices.put_settings(index=index, body={"index.blocks.read": None})
    made = client.indices.get(index=index)[index]
    settings = made["settings"]["index"]
    for name in ("uuid", "creation_date", "provided_name", "version"):
        del settings[name]
    settings["routing"] = {"allocation": {"require": {"_name": "nowhere"}}}
    client.indices.delete(index=index)
    client.indices.create(index=index, body=made, params={"wait_for_active_shards": 0})
    found = doctor(place)
    assert not found.healthy
    red = [what for what in said(found, "error") if "part of it cannot be searched" in what]
    assert len(red) == 1
    assert "allocation/explain" in said(found, "error")[red[0]]


def test_the_cluster_alone(cluster):
    found = doctor(cluster.url)
    assert found.facts["health"] in ("green", "yellow")
    assert "index" not in found.facts
    assert json.loads(run("doctor", "--index", f"{cluster.url}/", "--json").stdout)["healthy"]


def test_what_a_killed_run_and_bad_settings_leave(place, client):
    name = place.rpartition("/")[2]
    client.indices.put_settings(
        index=name,
        body={
            "index": {"refresh_interval": "100ms", "number_of_replicas": 1, "blocks.write": True}
        },
    )
    found = said(doctor(place), "warning")
    (refresh,) = (advice for what, advice in found.items() if "refresh_interval is 100ms" in what)
    assert f"curl -sS -X PUT {place.rpartition('/')[0]}/{name}-000001/_settings -H" in refresh
    assert any("takes 2 data nodes; there are 1" in what for what in found)
    assert any("index.blocks.write" in what for what in found)
    client.indices.put_settings(index=name, body={"index": {"blocks.write": None}})
    meta = client.indices.get_mapping(index=name)[f"{name}-000001"]["mappings"]["_meta"]
    meta["slice_os"]["loading"] = {"refresh_interval": None, "number_of_replicas": 0}
    client.indices.put_mapping(index=name, body={"_meta": meta})
    client.update_by_query(
        index=name,
        body={
            "query": {"term": {"passage": 0}},
            "script": {"source": "ctx._source.remove('document_hash')"},
        },
        params={"refresh": "true"},
    )
    found = said(doctor(place), "warning")
    assert any("set for loading" in what for what in found)
    assert any("Incomplete documents: 1 " in what for what in found)


def test_an_index_that_is_not_there_or_not_ours(cluster, client, place):
    missing = run("doctor", "--index", f"{cluster.url}/nowhere", ok=1)
    assert "ERROR    There is no index nowhere" in missing.stdout
    name = f"plain-{uuid.uuid4().hex[:12]}"
    body = {"aliases": {name: {}}, "settings": {"number_of_replicas": 0}}
    client.indices.create(index=f"{name}-1", body=body)
    try:
        (what,) = said(doctor(f"{cluster.url}/{name}"), "error")
        assert "was not made by slice-os" in what
        (what,) = said(doctor(f"{cluster.url}/{name}-1"), "error")
        assert "was not made by slice-os" in what
    finally:
        client.indices.delete(index=f"{name}-1")
    client.indices.close(index=place.rpartition("/")[2])
    assert "The index is closed" in said(doctor(place), "error")


def test_an_index_of_another_encoder(cluster, client):
    place = f"{cluster.url}/other-{uuid.uuid4().hex[:12]}"
    meta = IndexMeta("big", "f" * 32, 8)
    with_it = backend_for(place).create(place, meta, settings={"replicas": 0})
    with_it.close()
    try:
        (what,) = said(doctor(place), "error")
        assert "made by the encoder big (weights_hash ffffffffffff, 8 dimensions)" in what
    finally:
        client.indices.delete(index=f"{place.rpartition('/')[2]}-000001")


@pytest.mark.parametrize(
    ("version", "what"),
    [
        ('"number":"8.13.4","build_flavor":"default"', "Elasticsearch 8.13.4 at http"),
        ('"number":"2.18.0","distribution":"opensearch"', "OpenSearch 2.18.0 at http"),
        ('"number":"8.11.0","build_flavor":"serverless"', "but version 8.11.0 of something else"),
    ],
)
def test_what_is_too_old_or_something_else(cluster, version, what):
    body = f'{{"version":{{{version}}},"tagline":"You Know"}}'.encode()
    with proxied(cluster.url, lambda _: (200, "application/json", body)) as proxy:
        found = run("doctor", "--index", f"{proxy.url}/x", ok=1)
        with pytest.raises(ClusterError, match=what.partition(" at ")[0]):
            slice_os.open(f"{proxy.url}/x")
    assert what in found.stdout.replace("\n", " ")
    with pytest.raises(ClusterError, match="No cluster answers"):
        doctor(f"{closed()}/x")
    with pytest.raises(LocationError, match="not known"):
        doctor("ftp://h/x")


def test_one_who_may_not_see_everything(cluster, place, monkeypatch):
    forbidden = ("/_nodes/plugins", "/_nodes/stats", "/_plugins", "/_cluster")

    with proxied(cluster.url, lambda _: None) as proxy:
        passed = proxy.answer

        def answer(request):
            if request.path.startswith(forbidden) or request.path == "/":
                return 403, "application/json", b'{"error":{"reason":"no permissions"}}'
            return passed(request)

        monkeypatch.setattr(proxy, "answer", answer)
        found = doctor(f"{proxy.url}/{place.rpartition('/')[2]}")
    assert found.healthy
    assert found.facts["documents"] == 1
    assert "/_nodes/plugins is not allowed to these credentials" in said(found, "notice")


def test_a_folder(tmp_path):
    folder = tmp_path / "i.slice"
    run("doctor", "--index", folder, ok=1)
    slice_os.index([slice_os.Document("a", "Please cancel my plan.")], folder)
    found = doctor(folder)
    assert found.healthy
    assert (found.facts["documents"], found.facts["words"]) == (1, 4)
    other = tmp_path / "other.slice"
    with backend_for("").create(str(other), IndexMeta("big", "f" * 32, 32)).writer() as writer:
        put(writer, "a", ["some words"])
    assert any("made by the encoder big" in what for what in said(doctor(other), "error"))


@pytest.mark.parametrize(
    ("number", "severity", "what"),
    [
        ((3, 2), "warning", "_shard_doc"),
        ((3, 5), "notice", "older than 3.6"),
        ((3, 6), "ok", "3.6 can do all"),
        ((4, 0), "ok", "4.0 can do all"),
    ],
)
def test_versions(number, severity, what):
    notes = Notes()
    Dialect(number).check_version(notes)
    assert only(notes)[0] == severity
    assert what in only(notes)[1]


def test_plugins_and_graphs():
    notes = Notes()
    _fusions(notes, [], 2)
    assert notes.facts["fusions"] == "saturation, rrf, min_max: one request each"
    _fusions(notes, ["n2"], 2)
    assert "not on n2" in only(notes)[1]
    notes = Notes()
    nodes = {"x": {"graph_memory_usage": 7, "cache_capacity_reached": True}}
    _graphs({"circuit_breaker_triggered": True, "nodes": nodes}, notes)
    assert notes.facts == {"knn_cache_kb": 7, "knn_breaker": "triggered"}
    assert "the Lucene engine does not use it" in only(notes)[1]


def test_heaps():
    notes = Notes()
    check_heap(notes, NODE)
    assert not notes.findings
    check_heap(notes, {**NODE, "heap_used_percent": 93})
    assert only(notes)[0] == "warning"
    assert "93 % of its heap of 4 GB" in only(notes)[1]


@pytest.mark.parametrize(
    ("settings", "nodes", "severity", "what"),
    [
        ({"refresh_interval": "-1"}, 1, "warning", "not seen"),
        ({"refresh_interval": "0.5s"}, 1, "warning", "many small segments"),
        ({"refresh_interval": "30s"}, 1, None, ""),
        ({"number_of_replicas": "0"}, 3, "warning", "no replicas on 3 nodes"),
        ({"blocks": {"read_only_allow_delete": "true"}}, 1, "error", "a disk was too full"),
    ],
)
def test_settings(settings, nodes, severity, what):
    notes = Notes()
    check_settings(notes, settings, None, "curl", nodes)
    assert [one.severity for one in notes.findings] == ([severity] if severity else [])
    if severity:
        assert what in only(notes)[1]


def shard(docs=1000, deleted=0, size=2 * GB, segments=1):
    return [
        {
            "routing": {"primary": True},
            "docs": {"count": docs, "deleted": deleted},
            "store": {"size_in_bytes": size},
            "segments": {"count": segments},
        }
    ]


@pytest.mark.parametrize(
    ("shards", "severity", "what"),
    [
        ([shard()], "ok", "good sizes"),
        ([shard(segments=12)], "notice", "_forcemerge?max_num_segments=1"),
        ([shard(deleted=600)], "warning", "_forcemerge?only_expunge_deletes=true"),
        ([shard(size=60 * GB)], "warning", "--shards 3"),
        ([shard(size=GB // 10)] * 3, "notice", "3 shards hold 300 MB together"),
        ([shard(docs=1_700_000_000)], "warning", "that Lucene can hold"),
        ([shard(docs=2_140_000_000)], "error", "more --shards"),
        ([shard(size=30 * GB)], "notice", "read from the disk"),
    ],
)
def test_shards(shards, severity, what):
    notes = Notes()
    nodes = [{**NODE, "memory_bytes": 200 * GB if "--shards" in what else 24 * GB}]
    check_shards(notes, {str(n): one for n, one in enumerate(shards)}, str, nodes)
    assert only(notes)[0] == severity
    assert what in only(notes)[1]


def test_small_things():
    assert [seconds(text) for text in (None, "-1", "1s", "500ms", "2m", "soon")] == [
        None, -0.001, 1, 0.5, 120, None,
    ]  # fmt: skip
    assert [size_of(n) for n in (12, 1500, 3.2e9, 5e15)] == [
        "12 bytes",
        "1.5 kB",
        "3.2 GB",
        "5 PB",
    ]
    notes = Notes()
    complete(notes, 0, 0)
    assert only(notes)[0] == "notice"

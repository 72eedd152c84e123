"""The doctor: on a real node, on a folder, and on answers that no test cluster would give."""

from __future__ import annotations

import json
import uuid

import pytest

import slice_os
from slice_os.errors import ClusterError, LocationError
from slice_os.storage import IndexMeta, backend_for
from slice_os.storage.cluster.opensearch import OpenSearch as Dialect
from slice_os.storage.cluster.opensearch import check_graph_memory, check_plugins
from slice_os.storage.findings import Diagnosis
from support.local import put
from support.proxy import closed, proxied
from support.verbs import run


@pytest.fixture
def place(cluster, client):
    place = f"{cluster.url}/doctor-{uuid.uuid4().hex[:12]}"
    settings = slice_os.ClusterSettings(replicas=0)
    slice_os.index([slice_os.Document("a", "Please cancel my plan.")], place, cluster=settings)
    yield place
    client.indices.delete(index=f"{place.rpartition('/')[2]}-000001")


def said(diagnosis, *severities):
    return {f.what: f.advice for f in diagnosis.findings if f.severity in severities}


def only(diagnosis):
    """Return the one finding, as (severity, what and advice)."""
    (finding,) = diagnosis.findings
    return finding.severity, f"{finding.what}: {finding.advice}"


def test_a_healthy_index(place, client):
    found = slice_os.doctor(place)
    assert found.healthy
    assert said(found, "warning", "error") == {}
    assert any("encoder slice-english-v2 fits" in what for what in said(found, "ok"))
    facts = found.facts
    assert facts["version"] == "3.6.0"
    assert facts["plugins"] == ["opensearch-knn", "opensearch-neural-search"]
    assert facts["fusions"] == "saturation, rrf, min_max: one request each"
    assert facts["knn_breaker"] == "ok"
    assert facts["generation"] == f"{place.rpartition('/')[2]}-000001"
    assert (facts["documents"], facts["passages"], facts["words"]) == (1, 1, 4)
    assert (facts["tolerance"], facts["engine"]) == (0.8, "lucene")
    shown = run("doctor", "--index", place)
    assert "ok       Every document is complete." in shown.stdout


def test_a_passage_that_is_missing_in_the_middle_is_found(place, client):
    text = "\n".join(f"This is sentence number {n}, of some length." for n in range(60))
    slice_os.index([slice_os.Document("long", text)], place)
    assert slice_os.doctor(place).healthy
    client.delete_by_query(
        index=place.rpartition("/")[2],
        body={"query": {"bool": {"must": [
            {"term": {"document": "long"}}, {"term": {"passage": 1}},
        ]}}},
        refresh=True,
    )  # fmt: skip
    (what,) = said(slice_os.doctor(place), "error")
    passages = slice_os.doctor(place).facts["passages"]
    assert f"should have {passages + 1} passages, and there are {passages}" in what
    slice_os.index([slice_os.Document("long", text)], place)
    assert slice_os.doctor(place).healthy


def test_an_index_that_cannot_answer_is_diagnosed_all_the_same(place, client):
    index = f"{place.rpartition('/')[2]}-000001"
    client.indices.put_settings(index=index, body={"index.blocks.read": True})
    found = slice_os.doctor(place)
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
    found = slice_os.doctor(place)
    assert not found.healthy
    red = [what for what in said(found, "error") if "part of it cannot be searched" in what]
    assert len(red) == 1
    assert "allocation/explain" in said(found, "error")[red[0]]


def test_the_cluster_alone(cluster):
    found = slice_os.doctor(cluster.url)
    assert found.facts["version"] == "3.6.0"
    assert "index" not in found.facts
    assert json.loads(run("doctor", "--index", f"{cluster.url}/", "--json").stdout)["healthy"]


def test_what_a_killed_run_leaves(place, client):
    name = place.rpartition("/")[2]
    client.indices.put_settings(index=name, body={"index": {"blocks.write": True}})
    ((what, advice),) = said(slice_os.doctor(place), "warning").items()
    assert "index.blocks.write" in what
    assert f"curl -sS -X PUT {place.rpartition('/')[0]}/{name}-000001/_settings -H" in advice
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
    found = said(slice_os.doctor(place), "warning")
    assert any("set for loading" in what for what in found)
    assert any("Incomplete documents: 1 " in what for what in found)


def test_an_index_that_is_not_there_or_not_ours(cluster, client, place):
    missing = run("doctor", "--index", f"{cluster.url}/nowhere", ok=1)
    assert f"ERROR    There is no index at {cluster.url}/nowhere" in missing.stdout
    name = f"plain-{uuid.uuid4().hex[:12]}"
    body = {"aliases": {name: {}}, "settings": {"number_of_replicas": 0}}
    client.indices.create(index=f"{name}-1", body=body)
    try:
        (what,) = said(slice_os.doctor(f"{cluster.url}/{name}"), "error")
        assert "was not made by slice-os" in what
        (what,) = said(slice_os.doctor(f"{cluster.url}/{name}-1"), "error")
        assert "was not made by slice-os" in what
    finally:
        client.indices.delete(index=f"{name}-1")
    client.indices.close(index=place.rpartition("/")[2])
    assert "The index is closed" in said(slice_os.doctor(place), "error")


def test_an_index_of_another_encoder(cluster, client):
    place = f"{cluster.url}/other-{uuid.uuid4().hex[:12]}"
    meta = IndexMeta("big", "f" * 32, 8)
    with_it = backend_for(place).create(place, meta, settings={"replicas": 0})
    with_it.close()
    try:
        (what,) = said(slice_os.doctor(place), "error")
        assert "made by the encoder big (weights ffffffffffff, 8 dimensions)" in what
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
        slice_os.doctor(f"{closed()}/x")
    with pytest.raises(LocationError, match="not known"):
        slice_os.doctor("ftp://h/x")


def test_one_who_may_not_see_everything(cluster, place, monkeypatch):
    forbidden = ("/_nodes/plugins", "/_nodes/stats", "/_plugins", "/_cluster")

    with proxied(cluster.url, lambda _: None) as proxy:
        passed = proxy.answer

        def answer(request):
            if request.path.startswith(forbidden) or request.path == "/":
                return 403, "application/json", b'{"error":{"reason":"no permissions"}}'
            return passed(request)

        monkeypatch.setattr(proxy, "answer", answer)
        found = slice_os.doctor(f"{proxy.url}/{place.rpartition('/')[2]}")
    assert found.healthy
    assert found.facts["documents"] == 1
    assert "/_nodes/plugins is not allowed to these credentials" in said(found, "notice")


def test_a_folder(tmp_path):
    folder = tmp_path / "i.slice"
    run("doctor", "--index", folder, ok=1)
    slice_os.index([slice_os.Document("a", "Please cancel my plan.")], folder)
    found = slice_os.doctor(folder)
    assert found.healthy
    assert (found.facts["documents"], found.facts["words"]) == (1, 4)
    other = tmp_path / "other.slice"
    with backend_for("").create(str(other), IndexMeta("big", "f" * 32, 32)).writer() as writer:
        put(writer, "a", ["some words"])
    assert any("made by the encoder big" in what for what in said(slice_os.doctor(other), "error"))


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
    diagnosis = Diagnosis()
    Dialect(number).check_version(diagnosis)
    assert only(diagnosis)[0] == severity
    assert what in only(diagnosis)[1]


def nodes(*plugins):
    return [
        {"name": f"n{n}", "plugins": [{"name": f"opensearch-{name}"} for name in names.split()]}
        for n, names in enumerate(plugins)
    ]


@pytest.mark.parametrize(
    ("plugins", "fusions", "what"),
    [
        (("knn neural-search",), "saturation, rrf, min_max: one request each", ""),
        (("knn",), "saturation: one request; rrf, min_max: two searches fused by slice-os", ""),
        (("knn neural-search", "knn"), "saturation: one request; ", "and not on n1: it is not"),
        (("knn", ""), "saturation: one request; ", "The k-NN plugin is missing on n1"),
    ],
)
def test_plugins(plugins, fusions, what):
    diagnosis = Diagnosis()
    check_plugins(nodes(*plugins), diagnosis)
    assert diagnosis.facts["fusions"].startswith(fusions)
    assert [what in finding.what for finding in diagnosis.findings] == [True] * bool(what)


def test_the_memory_of_faiss_graphs():
    diagnosis, node = Diagnosis(), {"cache_capacity_reached": True}
    check_graph_memory({"circuit_breaker_triggered": True, "nodes": {"x": node}}, diagnosis)
    assert diagnosis.facts == {"knn_breaker": "triggered"}
    assert "the Lucene engine does not use it" in only(diagnosis)[1]

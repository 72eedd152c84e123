"""What a cluster adds to the command line and the library, on a real node."""

from __future__ import annotations

import json
import shlex

import pytest

import slice_os
from slice_os.engine.search_request import as_curl
from slice_os.errors import ClusterError, LocationError, QueryError
from slice_os.query import read_fused, read_hits
from slice_os.storage.cluster import candidates as retrieve
from slice_os.storage.cluster import mining_scan as scan
from slice_os.storage.cluster.mining_scan import Scan
from support.retrieval_set import QUERIES, write_beir
from support.verbs import TEXTS, request, run

SERVERS = ("opensearch", "elasticsearch")


@pytest.fixture
def filled(cluster, name):
    place = f"{cluster.url}/{name}"
    documents = [slice_os.Document(f"d{n}", text) for n, text in enumerate(TEXTS)]
    slice_os.index(documents, place, cluster=slice_os.ClusterSettings(replicas=0))
    return place


@pytest.mark.servers("elasticsearch")
def test_two_searches_paste_into_curl_too(filled):
    command = run("query", "I wish to move seat", "--index", filled, "--curl").stdout
    words = shlex.split(command)
    assert "/_msearch?include_named_queries_score=true" in words[2]
    answer = request("POST", words[2], words[words.index("--data-binary") + 1])
    (hit, *others) = read_fused(answer)
    assert (hit.document, len(others)) == ("d2", 2)
    with slice_os.open(filled) as index:
        (own, *_) = index.search("I wish to move seat", rescore=0, late=0)
    assert hit.score == pytest.approx(own.score, abs=0.05)
    for options in (["dense"], ["mining"], ["lexical"]):
        words = shlex.split(
            run("query", "seat", "--index", filled, "--curl", "--mode", *options).stdout
        )
        assert read_hits(request("POST", words[2], json.loads(words[words.index("-d") + 1])))
    lines = run("query", "I wish to move seat", "--index", filled).stdout.splitlines()
    assert [sorted(json.loads(line)) for line in lines] == [["_source", "query", "size"]] * 2
    for fusion, kind in (("rrf", "rrf"), ("min_max", "linear")):
        printed = run("query", "x", "--fusion", fusion, "--dialect", "elasticsearch").stdout
        assert kind in json.loads(printed)["retriever"]


@pytest.mark.servers("opensearch")
def test_the_printed_request_pastes_into_curl(filled):
    for options in (["--curl"], ["--mode", "dense", "--curl"], ["--mode", "mining", "--curl"],
                    ["--mode", "exact", "--curl"], ["--mode", "lexical", "--curl"]):  # fmt: skip
        command = run("query", "I wish to move seat", "--index", filled, *options).stdout
        words = shlex.split(command)
        assert words[:2] == ["curl", "-sS"]
        body = json.loads(words[words.index("-d") + 1])
        hits = read_hits(request("POST", words[2], body))
        assert options[:2] == ["--mode", "mining"] or hits[0].document == "d2"
        for span in (span for hit in hits for span in hit.spans):
            assert 0.5 < span.degree <= 1
    body = json.loads(run("query", "cancel", "--fusion", "rrf").stdout)
    assert "score-ranker-processor" in json.dumps(body["search_pipeline"])
    assert body["query"]["hybrid"]["pagination_depth"] == 100
    deep = json.loads(run("query", "cancel", "--size", 1500, "--fusion", "min_max").stdout)
    assert deep["query"]["hybrid"]["pagination_depth"] == 1500
    assert '"k": 1500' in json.dumps(deep)


def test_curl_takes_secrets_from_the_environment(monkeypatch):
    monkeypatch.delenv("SLICE_OS_USER", raising=False)
    plain = as_curl({}, "http://first,second:9201/some/where/calls/")
    assert shlex.split(plain)[2].startswith("http://first:9200/some/where/calls/_search?")
    monkeypatch.setenv("SLICE_OS_USER", "ann")
    assert ' -u "$SLICE_OS_USER:$SLICE_OS_PASSWORD" ' in as_curl({}, "https://host:9200/calls")
    for name in ("API_KEY", "CA_CERTS", "CLIENT_CERT", "CLIENT_KEY"):
        monkeypatch.setenv(f"SLICE_OS_{name}", "secret")
    monkeypatch.setenv("SLICE_OS_VERIFY_CERTS", "false")
    assert as_curl({}, "https://host:9200/calls").startswith(
        'curl -sS -H "Authorization: ApiKey $SLICE_OS_API_KEY" --cacert "$SLICE_OS_CA_CERTS"'
        ' --cert "$SLICE_OS_CLIENT_CERT" --key "$SLICE_OS_CLIENT_KEY" -k '
    )


def test_pages_beyond_the_window_of_a_cluster(filled, monkeypatch):
    monkeypatch.setattr(retrieve, "WINDOW", 2)
    with slice_os.open(filled) as index:
        whole = index.search("the", mode="lexical", size=2) or index.search(
            "I card", mode="lexical"
        )
        deep = [index.search("I card", mode="lexical", size=1, offset=n) for n in range(4)]
        assert [hits[0].document for hits in deep if hits] == [h.document for h in whole]
        with pytest.raises(QueryError, match="reaches the first 2 passages"):
            index.search("card", mode="dense", size=2, offset=1)


def test_what_does_not_fit_is_refused_with_both_sides(cluster, name, filled):
    hand = f"{cluster.url}/{name}-hand"
    request("PUT", hand, {"mappings": {"properties": {"text": {"type": "text"}}}})
    with pytest.raises(LocationError, match="was not made by slice-os"):
        slice_os.open(hand)
    request("PUT", f"{cluster.url}/{name}-2", {"aliases": {name: {}}})
    with pytest.raises(LocationError, match=f"names 2 indexes .*{name}-000001.*let it name one"):
        slice_os.open(filled)
    request("DELETE", f"{cluster.url}/{name}-2")
    mapping = request("GET", f"{cluster.url}/{name}-000001")[f"{name}-000001"]["mappings"]

    def says(**changed):
        meta = {"slice_os": {**mapping["_meta"]["slice_os"], **changed}}
        request("PUT", f"{cluster.url}/{name}-000001/_mapping", {"_meta": meta})

    says(format=3)
    with pytest.raises(LocationError, match="has format 3, this slice-os reads 2"):
        slice_os.open(filled)
    says(vector={"type": "float", "dimension": 384})
    with pytest.raises(
        LocationError, match="has byte vectors of 384 dimensions, its _meta says float"
    ):
        slice_os.open(filled)
    says(encoder={"name": "x"})
    with pytest.raises(LocationError, match="not the one that slice-os makes"):
        slice_os.open(filled)
    says()
    request("POST", f"{cluster.url}/_aliases", {
        "actions": [{"remove": {"index": f"{name}-000001", "alias": name}}]})  # fmt: skip
    with pytest.raises(LocationError, match=rf"alias {name} names nothing"):
        slice_os.index([slice_os.Document("a", "text")], filled)


def test_a_refused_replacement_leaves_the_former_document(cluster, name, filled):
    index = f"{cluster.url}/{name}-000001"
    request("PUT", f"{index}/_settings", {"index.mapping.nested_objects.limit": 1})
    rejects = []
    slice_os.index([slice_os.Document("d1", TEXTS[0])], filled, on_reject=rejects.append)
    assert "limit" in rejects[0].reason
    with slice_os.open(filled) as opened:
        assert opened.search("shoes", mode="lexical")[0].document == "d1"
    request("PUT", f"{index}/_settings", {"index.mapping.nested_objects.limit": None})
    slice_os.index([slice_os.Document("d1", TEXTS[0])], filled)
    with slice_os.open(filled) as opened:
        assert opened.search("shoes", mode="lexical") == []


def test_metadata_of_every_shape_is_taken(filled):
    deep = "leaf"
    for _ in range(300):
        deep = [deep]
    metadata = {"big": 10**30, "deep": deep, "long": "x" * 50_000, "": 1, "nan": float("nan")}
    report = slice_os.index([slice_os.Document("m", TEXTS[0], metadata=metadata)], filled)
    assert (report.documents, report.rejected) == (1, 0)
    with slice_os.open(filled) as index:
        (hit,) = index.search("subscription", filters={"big": 10**30})
        assert hit.metadata["big"] == str(10**30)
        assert hit.metadata["long"] == "x" * 50_000


def test_only_the_settings_that_are_given_must_fit(cluster, name):
    place = f"{cluster.url}/{name}"
    documents = [slice_os.Document("a", TEXTS[0])]
    slice_os.index(documents, place, cluster={"tolerance": 0.8, "dimensions": 384, "replicas": 0})
    slice_os.index(documents, place, cluster={"shards": 1, "dimensions": 384})
    for settings, message in {
        ("tolerance", 0.9): r"has tolerance 0\.8, 0\.9 was asked for",
        ("shard", 3): "There is no setting 'shard': choose from tolerance",
    }.items():
        with pytest.raises(LocationError, match=message):
            slice_os.open(place, cluster=dict([settings]))
    slice_os.open(place, cluster={"replicas": 1}).close()
    with slice_os.open(place) as index:
        assert index._backend.layout.replicas == 1
    for engine in {"opensearch": ("faiss", "hnsw"), "elasticsearch": ("int8_hnsw", "lucene")}[
        cluster.server.name
    ]:
        with pytest.raises(LocationError, match=f"engine {engine}.*: choose "):
            slice_os.index(documents, f"{place}-f", cluster={"engine": engine})


def test_a_lexical_request_needs_no_encoder(filled, client):
    options = {"mode": "lexical", "encoder": "nowhere"}
    body = slice_os.build_request("window seat", filled, client=client, **options)
    hits = read_hits(request("POST", f"{filled}/_search", body))
    assert [hit.document for hit in hits] == ["d2"]


def test_a_folder_takes_no_settings_of_a_cluster_and_no_request(tmp_path):
    done = run("index", "-", "--index", tmp_path / "i.slice", "--shards", 2, ok=1)
    assert "leave out the settings that are for a cluster" in done.stderr
    slice_os.index([slice_os.Document("a", "text")], tmp_path / "i.slice")
    assert "a request is for an index in a cluster" in run(
        "query", "x", "--index", tmp_path / "i.slice", ok=1).stderr  # fmt: skip


def test_an_unwritable_cluster_is_an_error_not_a_loss(cluster, name, filled):
    index = f"{cluster.url}/{name}-000001"
    request("PUT", f"{index}/_settings", {"index.blocks.write": True})
    rejects = []
    try:
        slice_os.index([slice_os.Document("new", TEXTS[0])], filled, on_reject=rejects.append)
    except ClusterError as exc:
        rejects.append(exc)
    assert "block" in str(rejects[0]).lower()
    request("PUT", f"{index}/_settings", {"index.blocks.write": None})
    report = slice_os.index([slice_os.Document("new", TEXTS[0])], filled)
    assert (report.documents, report.unchanged) == (1, 0)


def test_mining_asks_the_graph_where_it_names_few(cluster, name, monkeypatch):
    place = f"{cluster.url}/{name}"
    settings = slice_os.ClusterSettings(tolerance=0.98, replicas=0)
    documents = [
        slice_os.Document(f"d{n}", text, metadata={"n": n}) for n, text in enumerate(TEXTS)
    ]
    documents += [slice_os.Document(f"e{n}", text) for n, text in enumerate(QUERIES.values())]
    slice_os.index(documents, place, cluster=settings)
    monkeypatch.setattr(scan, "SEARCHED", 0.0)  # as if there were many more passages
    ways = []
    for way in ("by_graph", "every_word"):
        real = getattr(Scan, way)
        monkeypatch.setattr(
            Scan, way, lambda self, way=way, real=real: ways.append(way) or real(self)
        )
    with slice_os.open(place) as index:

        def mine(phrases, degree, **options):
            ways.clear()
            asked = {"min_degree": degree, "graph": True, "rescore": False, **options}
            found = {m.document for m in index.mine(phrases, **asked)}
            return found, ways[:]

        assert mine(["a seat by the window"], 0.88) == ({"d2"}, ["by_graph"])
        assert mine(["a seat by the window"], 0.88, graph=False) == ({"d2"}, ["every_word"])
        low, way = mine(["a seat by the window"] * 40, 0.6)
        assert way == ["every_word"]
        assert low == mine(["a seat by the window"], 0.6, graph=False)[0]
        assert mine(["a seat by the window"], 0.88, filters=["n=none"])[0] == set()


def test_a_collection_is_measured_in_a_cluster_as_in_one_file(cluster, name, tmp_path):
    folder = write_beir(tmp_path / "set")
    place = f"{cluster.url}/{name}"
    settings = ("lexical", "dense", "hybrid:saturation:0.3", "hybrid:min_max:0.4", "hybrid:rrf")
    asked = [word for setting in settings for word in ("--setting", setting)]
    report = json.loads(
        run("evaluate", "retrieval", folder, "--index", place, "--json", *asked).stdout
    )
    here = json.loads(run("evaluate", "retrieval", folder, "--json", *asked).stdout)
    assert report["queries"] == len(QUERIES)
    for setting in settings:
        for measure in ("nDCG@10", "MRR"):
            there = report["systems"][setting]["measures"][measure]
            assert there == pytest.approx(here["systems"][setting]["measures"][measure], abs=0.02)
            assert there > 0.5
    again = json.loads(
        run("evaluate", "retrieval", folder, "--index", place, "--json", *asked).stdout
    )
    assert again["systems"] == report["systems"]  # the index is used as it is
    broken = run("evaluate", "retrieval", folder, "--index", "http://127.0.0.1:9/none", ok=1)
    assert "http://127.0.0.1:9" in broken.stderr

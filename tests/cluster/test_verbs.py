"""What a cluster adds to the command line and the library, on a real node."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import urllib.request
import uuid
from pathlib import Path

import pytest

import slice_os
from slice_os.backends.opensearch import retrieve
from slice_os.backends.opensearch.scan import Scan
from slice_os.errors import ClusterError, EncoderMismatchError, PlaceError, QueryError
from slice_os.query import read_hits
from slice_os.request import as_curl
from support.retrieval_set import QUERIES, write_beir

SLICE_OS = Path(sys.executable).with_name("slice-os")
TEXTS = [
    "Good morning. I would like to end my subscription today, please.",
    "The money was sent back to her card, as the shoes were torn.",
    "Could you move me to a seat by the window? I do not like the aisle.",
]


def request(method, url, body=None):
    data = json.dumps(body).encode() if body is not None else None
    headers = {"Content-Type": "application/json"}
    asked = urllib.request.Request(url, data, headers, method=method)
    with urllib.request.urlopen(asked) as answer:
        return json.load(answer)


def run(*arguments, ok=0):
    done = subprocess.run([SLICE_OS, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == ok, done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def name():
    return f"verbs-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def filled(cluster, name):
    place = f"{cluster.url}/{name}"
    documents = [slice_os.Document(f"d{n}", text) for n, text in enumerate(TEXTS)]
    slice_os.index(documents, place, cluster=slice_os.ClusterSettings(replicas=0))
    return place


def test_the_templates_make_an_index_with_curl_alone(cluster, name):
    place = f"{cluster.url}/{name}"
    assert "opensearch/passages" in run("templates", "list").stdout
    shown = json.loads(run("templates", "show", "--alias", name, "--shards", 2).stdout)
    assert shown["template"]["settings"]["index"]["number_of_shards"] == 2
    run("templates", "apply", "--index", place, "--replicas", 0, "--analyzer", "standard")
    request("PUT", f"{cluster.url}/{name}-000001", {"aliases": {name: {}}})
    slice_os.index([slice_os.Document("a", TEXTS[0])], place)
    with slice_os.open(place) as index:
        assert index.search("cancel my subscription")[0].document == "a"
        assert index.status().details["generation"] == f"{name}-000001"
    with pytest.raises(PlaceError, match="has analyzer standard, english was asked for"):
        slice_os.open(place, cluster=slice_os.ClusterSettings())


def test_an_applied_template_shapes_the_index_that_is_made(cluster, name):
    place = f"{cluster.url}/{name}"
    run("templates", "apply", "--index", place, "--replicas", 0, "--shards", 2,
        "--vector-type", "float", "--tolerance", 0.5)  # fmt: skip
    slice_os.index([slice_os.Document("a", TEXTS[0])], place)
    with slice_os.open(place) as index:
        details = index.status().details
        assert details["vectors"].startswith("float")
        assert details["tolerance"] == 0.5
        assert index.search("cancel my subscription")[0].document == "a"
        assert [m.document for m in index.mine(["cancel my subscription"], degree=0.6)]
    assert request("GET", f"{place}/_settings")[f"{name}-000001"]["settings"]["index"][
        "number_of_shards"
    ] == "2"  # fmt: skip
    run("index", "--index", place, Path(__file__).parents[2] / "README.md", "--replicas", 1)
    settings = request("GET", f"{place}/_settings")[f"{name}-000001"]["settings"]["index"]
    assert settings["number_of_replicas"] == "1"
    template = request("GET", f"{cluster.url}/_index_template/{name}")
    body = template["index_templates"][0]["index_template"]
    body["template"]["mappings"]["_meta"]["slice_os"]["encoder"]["family"] = "another"
    body["index_patterns"] = [f"{name}b-0*"]
    request("PUT", f"{cluster.url}/_index_template/{name}b", body)
    with pytest.raises(EncoderMismatchError, match=rf"template {name}b is for .*apply one for it"):
        slice_os.index([slice_os.Document("a", TEXTS[0])], f"{place}b")
    for one in (name, f"{name}b"):
        request("DELETE", f"{cluster.url}/_index_template/{one}")


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (["spans", "properties", "vector", "space_type"], "l2", "space type l2 .* spans.vector"),
        (["document", "type"], "text", "type text for the field document, not keyword"),
        (["spans", "type"], "object", "type object for the field spans, not nested"),
        (["words", "type"], "keyword", "type keyword for the field words, not binary"),
    ],
)
def test_a_mapping_made_by_hand_is_refused(cluster, name, path, value, said):
    shown = json.loads(run("templates", "show", "--alias", name, "--replicas", 0).stdout)
    body = {**shown["template"], "aliases": {name: {}}}
    field = body["mappings"]["properties"]
    for key in path[:-1]:
        field = field[key]
    field[path[-1]] = value
    request("PUT", f"{cluster.url}/{name}-000001", body)
    with pytest.raises(PlaceError, match=said):
        slice_os.open(f"{cluster.url}/{name}")


def test_the_file_itself_works_with_curl_alone(cluster):
    (file,) = slice_os.list_templates().values()
    body = json.loads(Path(file).read_text())
    request("PUT", f"{cluster.url}/_index_template/passages", body)
    request("PUT", f"{cluster.url}/passages-000001", {"aliases": {"passages": {}}})
    with pytest.raises(PlaceError, match="names no encoder"):
        slice_os.open(f"{cluster.url}/passages")
    request("DELETE", f"{cluster.url}/passages-000001")
    request("DELETE", f"{cluster.url}/_index_template/passages")


def test_plain_documents_get_spans_without_losing_a_field(cluster, name):
    old, new = f"{cluster.url}/{name}", f"{cluster.url}/{name}-new"
    rows = [
        {"body": text, "title": f"Call {n}", "n": n, "id": f"own-{n}", "tags": ["a", f"t{n}"],
         "customer": {"name": "Ann", "since": 1999.5, "ok": True}, "note": "long " * 4000}
        for n, text in enumerate(TEXTS)
    ]  # fmt: skip
    for n, row in enumerate(rows):
        request("PUT", f"{old}/_doc/call-{n}?refresh=true", row)
    request("PUT", f"{old}/_doc/none?refresh=true", {"n": 4})
    done = run("index", "--from-index", old, "--index", new, ok=3)
    assert "3 documents indexed" in done.stdout
    rejected = Path(f"{name}-new.rejects.jsonl").read_text()
    assert "_doc/none" in rejected
    assert "has no field text or" in rejected
    with slice_os.open(new) as index:
        (hit, *_) = index.search("she wants her subscription ended", size=1)
        assert (hit.document, hit.title) == ("call-0", "Call 0")
        assert {h.document for h in index.search("seat", filters={"customer.since": 1999.5})}
        assert [h.document for h in index.search("seat", filters={"tags": "t2"})] == ["call-2"]
        assert hit.metadata == {
            "n": 0, "id": "own-0", "tags": ["a", "t0"], "customer.name": "Ann",
            "customer.since": 1999.5, "customer.ok": True, "note": rows[0]["note"],
        }  # fmt: skip
    assert request("GET", f"{old}/_count")["count"] == 4
    again = run("index", "--from-index", old, "--index", new, "--json", ok=3)
    assert json.loads(again.stdout)["unchanged"] == 3
    run("index", "--from-index", new, "--index", old, ok=1)
    run("index", "--from-index", f"{cluster.url}/nothing", "--index", new, ok=1)
    run("index", "--index", new, ok=2)


def test_documents_that_lack_a_field_are_taken_over_too(cluster, name):
    old = f"{cluster.url}/{name}"
    rows = [
        {"summary": TEXTS[0], "description": TEXTS[1]},
        {"summary": TEXTS[2]},
        {"inner": {"description": TEXTS[1]}, "description": None},
        {"title": "A window seat"},
        {"n": 4},
    ]
    for n, row in enumerate(rows):
        request("PUT", f"{old}/_doc/{n}?refresh=true", row)
    named = ("--text-field", "summary", "--text-field", "description")
    done = run("index", "--from-index", old, "--index", f"{old}-new", *named, ok=3)
    assert "3 documents indexed" in done.stdout
    with slice_os.open(f"{old}-new") as index:
        assert index.search("a seat at the window")[0].document in ("1", "3")
        assert index.search("a seat at the window")[0].text in (TEXTS[2], "A window seat")
    unknown = run("index", "--from-index", old, "--index", f"{old}-none", ok=1).stderr
    assert "--text-field" in unknown
    assert "description, inner, n, summary, title" in unknown
    assert request("GET", f"{cluster.url}/_cat/indices/{name}-none*?format=json") == []


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
    assert body["query"]["hybrid"]["pagination_depth"] == 1000
    refused = run("query", "cancel", "--fusion", "rrf", "--index", filled, ok=1).stderr
    assert "neural-search plugin" in refused
    deep = json.loads(run("query", "cancel", "--size", 1500, "--fusion", "min_max").stdout)
    assert deep["query"]["hybrid"]["pagination_depth"] == 1500
    assert '"k": 1500' in json.dumps(deep)


def test_curl_asks_one_host_as_the_library_does_and_takes_secrets_from_the_environment(monkeypatch):
    monkeypatch.delenv("SLICE_OS_USER", raising=False)
    plain = as_curl({}, "http://first,second:9201/some/where/calls/")
    assert shlex.split(plain)[2].startswith("http://first:9200/some/where/calls/_search?")
    monkeypatch.setenv("SLICE_OS_USER", "ann")
    assert ' -u "$SLICE_OS_USER:$SLICE_OS_PASSWORD" ' in as_curl({}, "https://host:9200/calls")


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
    with pytest.raises(PlaceError, match="was not made by slice-os"):
        slice_os.open(hand)
    request("PUT", f"{cluster.url}/{name}-2", {"aliases": {name: {}}})
    with pytest.raises(PlaceError, match=f"names 2 indexes .*{name}-000001.*let it name one"):
        slice_os.open(filled)
    request("DELETE", f"{cluster.url}/{name}-2")
    mapping = request("GET", f"{cluster.url}/{name}-000001")[f"{name}-000001"]["mappings"]

    def says(**changed):
        meta = {"slice_os": {**mapping["_meta"]["slice_os"], **changed}}
        request("PUT", f"{cluster.url}/{name}-000001/_mapping", {"_meta": meta})

    says(format=2)
    with pytest.raises(PlaceError, match="has format 2, this slice-os reads up to 1"):
        slice_os.open(filled)
    says(vector={"type": "float", "dimension": 384})
    with pytest.raises(
        PlaceError, match="has byte vectors of 384 dimensions, its _meta says float"
    ):
        slice_os.open(filled)
    says(encoder={"name": "x"})
    with pytest.raises(PlaceError, match="not the one that slice-os makes"):
        slice_os.open(filled)
    says()
    request("POST", f"{cluster.url}/_aliases", {
        "actions": [{"remove": {"index": f"{name}-000001", "alias": name}}]})  # fmt: skip
    with pytest.raises(PlaceError, match=r"exists and the alias .* does not"):
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
    with pytest.raises(PlaceError, match=r"has tolerance 0\.8, 0\.9 was asked for"):
        slice_os.open(place, cluster={"tolerance": 0.9})
    with pytest.raises(PlaceError, match="choose the engine lucene, or the vector type float"):
        slice_os.index(documents, f"{place}-f", cluster={"engine": "faiss"})


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


def test_mining_asks_the_graph_where_it_names_few_and_reads_all_where_it_names_most(
    cluster, name, monkeypatch
):
    place = f"{cluster.url}/{name}"
    settings = slice_os.ClusterSettings(tolerance=0.98, replicas=0)
    documents = [slice_os.Document(f"d{n}", text) for n, text in enumerate(TEXTS)]
    documents += [slice_os.Document(f"e{n}", text) for n, text in enumerate(QUERIES.values())]
    slice_os.index(documents, place, cluster=settings)
    ways = []
    for way in ("by_graph", "every_word"):
        real = getattr(Scan, way)
        monkeypatch.setattr(
            Scan, way, lambda self, way=way, real=real: ways.append(way) or real(self)
        )
    with slice_os.open(place) as index:

        def mine(phrases, degree, **options):
            ways.clear()
            found = {m.document for m in index.mine(phrases, degree=degree, **options)}
            return found, ways[:]

        assert mine(["a seat by the window"], 0.88) == ({"d2"}, ["by_graph"])
        assert mine(["a seat by the window"], 0.88, exact=True) == ({"d2"}, ["every_word"])
        low, way = mine(["a seat by the window"] * 40, 0.6)
        assert way == ["every_word"]
        assert low == mine(["a seat by the window"], 0.6, exact=True)[0]
        assert mine(["a seat by the window"], 0.88, filters=["nothing=here"])[0] == set()


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

"""How an index comes to be: from a template, made by hand, from an index that somebody has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import slice_os
from slice_os.errors import EncoderMismatchError, LocationError
from support.verbs import TEXTS, request, run

SERVERS = ("opensearch", "elasticsearch")


def test_the_templates_make_an_index_with_curl_alone(cluster, name):
    place = f"{cluster.url}/{name}"
    own = f"{cluster.server.name}/passages"
    assert own in run("templates", "list").stdout
    other = {"opensearch/passages", "elasticsearch/passages"} - {own}
    refused = run("templates", "apply", *other, "--index", place, ok=1).stderr
    assert f"choose {own}" in " ".join(refused.split())
    shown = json.loads(run("templates", "show", own, "--alias", name, "--shards", 2).stdout)
    assert shown["template"]["settings"]["index"]["number_of_shards"] == 2
    run("templates", "apply", "--index", place, "--replicas", 0, "--analyzer", "standard")
    request("PUT", f"{cluster.url}/{name}-000001", {"aliases": {name: {}}})
    slice_os.index([slice_os.Document("a", TEXTS[0])], place)
    with slice_os.open(place) as index:
        assert index.search("cancel my subscription")[0].document == "a"
        assert index.status().details["generation"] == f"{name}-000001"
    with pytest.raises(LocationError, match="has analyzer standard, english was asked for"):
        slice_os.open(place, cluster=slice_os.ClusterSettings(analyzer="english"))


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
        assert [m.document for m in index.mine(["cancel my subscription"], min_degree=0.6)]
    assert request("GET", f"{place}/_settings")[f"{name}-000001"]["settings"]["index"][
        "number_of_shards"
    ] == "2"  # fmt: skip
    run("index", "--index", place, Path(__file__).parents[2] / "README.md", "--replicas", 1)
    settings = request("GET", f"{place}/_settings")[f"{name}-000001"]["settings"]["index"]
    assert settings["number_of_replicas"] == "1"
    template = request("GET", f"{cluster.url}/_index_template/{name}")
    made = template["index_templates"][0]["index_template"]
    body = {part: made[part] for part in ("index_patterns", "priority", "template")}
    body["template"]["mappings"]["_meta"]["slice_os"]["encoder"]["weights_hash"] = "another"
    body["index_patterns"] = [f"{name}b-0*"]
    request("PUT", f"{cluster.url}/_index_template/{name}b", body)
    with pytest.raises(EncoderMismatchError, match=rf"template {name}b is for .*apply one for it"):
        slice_os.index([slice_os.Document("a", TEXTS[0])], f"{place}b")
    for one in (name, f"{name}b"):
        request("DELETE", f"{cluster.url}/_index_template/{one}")


def test_what_a_template_says_otherwise_is_told(cluster, name):
    place = f"{cluster.url}/{name}"
    run("templates", "apply", "--index", place, "--replicas", 0)
    with (
        slice_os.open(place, passage_words=60) as index,
        pytest.raises(LocationError, match="has passages of 110 words, 60 were asked for"),
    ):
        index.add([slice_os.Document("a", TEXTS[0])])
    folder = f"{name}.slice"
    slice_os.index([slice_os.Document("a", TEXTS[0])], folder, passage_words=60)
    request("DELETE", f"{cluster.url}/{name}-000001")
    with pytest.raises(LocationError, match="is made otherwise"):
        slice_os.reindex(folder, to=place)
    request("DELETE", f"{cluster.url}/_index_template/{name}")


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
    if path[-1] == "space_type" and cluster.server.name == "elasticsearch":
        path, value = [*path[:-1], "similarity"], "l2_norm"
        said = "similarity l2_norm .* spans.vector"
    own = f"{cluster.server.name}/passages"
    shown = json.loads(run("templates", "show", own, "--alias", name, "--replicas", 0).stdout)
    body = {**shown["template"], "aliases": {name: {}}}
    field = body["mappings"]["properties"]
    for key in path[:-1]:
        field = field[key]
    field[path[-1]] = value
    request("PUT", f"{cluster.url}/{name}-000001", body)
    with pytest.raises(LocationError, match=said):
        slice_os.open(f"{cluster.url}/{name}")


def test_the_file_itself_works_with_curl_alone(cluster):
    file = slice_os.list_templates()[f"{cluster.server.name}/passages"]
    body = json.loads(Path(file).read_text())
    request("PUT", f"{cluster.url}/_index_template/passages", body)
    request("PUT", f"{cluster.url}/passages-000001", {"aliases": {"passages": {}}})
    with pytest.raises(LocationError, match="names no encoder"):
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


def test_an_index_of_our_own_is_taken_over(cluster, name):
    """For another encoder, say: its text is there, the corpus may not be."""
    old, new = f"{cluster.url}/{name}", f"{cluster.url}/{name}-new"
    texts = ["\n\n".join(f"{text} ({n}.{k})" for text in TEXTS for k in range(9)) for n in range(3)]
    documents = [
        slice_os.Document(f"d{n}", text, f"Title {n}", {"n": n, "long": "x" * 9000, "a": {"b": n}})
        for n, text in enumerate(texts)
    ]
    slice_os.index(documents, old, passage_words=30)
    with slice_os.open(old) as index:
        body = {
            "query": {"bool": {"must": [{"term": {"document": "d1"}}, {"term": {"passage": 1}}]}}
        }
        cluster_of = index._backend.cluster
        (hit,) = cluster_of.search(body, list[dict])
        cluster_of.ask("DELETE", f"_doc/{hit['_id']}", refresh="true")
    done = run("index", "--from-index", old, "--index", new, "--passage-words", 30, ok=3)
    assert "2 documents indexed" in done.stdout
    assert "d1" in Path(f"{name}-new.rejects.jsonl").read_text()
    with slice_os.open(old) as before, slice_os.open(new) as after:
        assert {one.document for one in after.list()} == {"d0", "d2"}
        for one in after.list():
            said, taken = before.show(one.document), after.show(one.document)
            assert taken.text.split() == said.text.split()  # but for white space
            assert len(taken.text) == len(said.text)
            (known,) = (other for other in before.list() if other.document == one.document)
            assert (one.title, one.words, one.metadata) == (
                known.title,
                known.words,
                known.metadata,
            )
        hit = after.search("she wants her subscription ended")[0]
        assert "end my subscription" in hit.text


def test_an_empty_generation_beside_a_full_one_is_named(cluster, name):
    place = f"{cluster.url}/{name}"
    run("templates", "apply", "--index", place, "--replicas", 0)
    slice_os.index([slice_os.Document("a", TEXTS[0])], place)
    request("POST", f"{place}/_rollover", {})
    with slice_os.open(place) as index:
        for ask in (index.search, lambda text: list(index.mine([text]))):
            with pytest.raises(
                LocationError, match=f"names the empty {name}-000002.*{name}-000001"
            ):
                ask("cancel my subscription")
    advice = run("doctor", "--index", place, ok=1).stdout
    assert f"{name} names the empty {name}-000002" in advice
    actions = json.loads(advice.split("-d '")[1].split("'")[0])
    request("POST", f"{cluster.url}/_aliases", actions)
    with slice_os.open(place) as index:
        assert index.search("cancel my subscription")[0].document == "a"
    request("DELETE", f"{cluster.url}/_index_template/{name}")


FIELDS = "year:integer,status:keyword,at.day:date"


def test_fields_of_their_own_type(cluster, name):
    place = f"{cluster.url}/{name}"
    corpus = Path(f"{name}.jsonl")
    rows = [
        {"id": f"d{n}", "text": TEXTS[n % 3], "year": 2010 + n, "status": ("shut", "open")[n % 2],
         "at": {"day": f"2020-01-{n + 1:02}"}, "other": n}
        for n in range(5)
    ]  # fmt: skip
    rows.append({"id": "bad", "text": TEXTS[0], "year": "long ago"})
    rows.append({"id": "none", "text": TEXTS[0], "year": "", "status": None})
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run("index", corpus, "--id-global", "--index", place, "--fields", FIELDS, ok=3)
    assert "6 documents indexed" in done.stdout
    assert (
        "[fields.year] of type [integer]: For input string"
        in Path(f"{name}.rejects.jsonl").read_text()
    )

    def by_year():
        request("POST", f"{place}/_refresh")
        body = {
            "query": {"range": {"fields.at.day": {"gte": "2020-01-02"}}},
            "sort": [{"fields.year": "desc"}],
            "aggs": {
                "by": {"terms": {"field": "fields.status"}},
                "m": {"avg": {"field": "fields.year"}},
            },
            "_source": ["document", "fields"],
        }
        found = request("POST", f"{place}/_search", body)
        assert found["aggregations"]["m"]["value"] == 2012.5
        assert {b["key"]: b["doc_count"] for b in found["aggregations"]["by"]["buckets"]} == {
            "open": 2, "shut": 2,
        }  # fmt: skip
        return [hit["_source"]["document"] for hit in found["hits"]["hits"]]

    assert by_year() == ["d4", "d3", "d2", "d1"]
    rows[2]["other"] = "changed"  # metadata alone: written anew with the vectors that it has
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    again = json.loads(run("index", corpus, "--id-global", "--index", place, "--json", ok=3).stdout)
    assert again["documents"] == 1
    assert again["encoded_words"] == len(TEXTS[0].split())  # of the bad one, again
    assert by_year() == ["d4", "d3", "d2", "d1"]
    with slice_os.open(place, cluster={"fields": {
        "year": "integer", "status": "keyword", "at.day": "date"}}) as index:  # fmt: skip
        assert [h.document for h in index.search("seat", filters=["year>=2014"])] == ["d4"]
    refused = run(
        "index", corpus, "--id-global", "--index", place, "--fields", "year:long", ok=1
    ).stderr
    assert "has fields" in refused
    assert "choose one of" in run("templates", "show", "--fields", "year:number", ok=1).stderr
    assert "NAME:TYPE" in run("templates", "show", "--fields", "year", ok=2).stderr


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

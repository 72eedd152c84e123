"""What the endpoints answer: the library's own, in the form that the command line prints."""

from __future__ import annotations

import base64
import json
import threading
import time

import numpy as np
import openai
import pyarrow.parquet
import pytest
from openapi_spec_validator import validate
from prometheus_client.parser import text_string_to_metric_families

import slice_os
from slice_os.options import MineOptions, SearchOptions, described, fields
from slice_os.query import field_vectors
from slice_os.server import batching
from support.serving import serving
from support.verbs import run


def as_printed(location, *arguments):
    return json.loads(run(*arguments, "--index", location, "--json").stdout)


def test_a_search_answers_as_the_command_line_prints(server, location):
    printed = as_printed(
        location, "search", "wants to cancel", "--size", 3, "--filter", "number<6", "--context", 1
    )
    options = {"size": 3, "filters": ["number<6"], "context": 1}
    assert server.post("/api/search", query="wants to cancel", **options) == printed
    printed = as_printed(location, "search", "wants to cancel", "--group", "--sort", "degree")
    assert server.post("/api/search", query="wants to cancel", group=True, sort="degree") == printed


def test_mining_streams_what_the_command_line_prints(server, location):
    phrases = ["wants to cancel", "the ship went down"]
    given = [word for phrase in phrases for word in ("--phrase", phrase)]
    printed = as_printed(location, "mine", *given, "--min-degree", 0.6)
    matches, report = server.mine(phrases=phrases, min_degree=0.6)
    assert matches == printed["matches"]
    assert len(matches) > 2
    assert report == {"done": True, "min_degree": 0.6, "counts": printed["counts"]}


def test_mining_takes_names_and_counter_examples(server, index):
    asked = {
        "phrases": {"leave": ["wants to cancel", "end the contract"], "odd": "\U0001f600"},
        "counter_examples": {"leave": "I do not want to cancel"},
        "min_degree": 0.7,
    }
    matches, report = server.mine(**asked)
    assert matches == [match.to_dict() for match in index.mine(**asked)]
    assert {match["name"] for match in matches} == {"leave"}
    assert report["counts"] == {"leave": len(matches), "odd": 0}
    assert report["unknown"] == ["\U0001f600"]


def test_documents_and_status_answer_as_the_command_line_prints(server, location):
    assert server.get("/api/status") == as_printed(location, "status")
    printed = as_printed(location, "list", "--size", 2, "--filter", "number>3")
    assert server.get("/api/documents?size=2&filter=number%3E3") == printed
    printed = as_printed(location, "show", "calls/1#a", "--at", 3, "--context", 0)
    assert server.get("/api/documents/calls%2F1%23a?at=3&context=0") == printed
    assert server.get("/api/documents/calls/2")["text"].startswith("The money")


def test_every_option_is_described_as_in_its_record(server):
    schemas = server.get("/openapi.json")["components"]["schemas"]
    for record, body in ((SearchOptions, "SearchBody"), (MineOptions, "MineBody")):
        for field in fields(record):
            told = schemas[body]["properties"][field.name]
            assert told["description"] == described(field)
            assert told["default"] == json.loads(json.dumps(field.default))
    size = schemas["SearchBody"]["properties"]["size"]
    assert (size["minimum"], size["type"]) == (1, "integer")


def test_a_validator_accepts_the_description(server):
    made = server.get("/openapi.json")
    validate(made)
    assert made["openapi"].startswith("3.1")
    assert {"/api/search", "/api/mine", "/api/teach", "/v1/embeddings"} <= made["paths"].keys()


@pytest.mark.parametrize(
    ("path", "body", "status", "sentence"),
    [
        ("/api/search", {}, 400, "Give a query or taught"),
        ("/api/search", {"query": " "}, 400, "The query is empty"),
        ("/api/search", {"query": "a", "siz": 3}, 400, "did you mean 'size'"),
        ("/api/search", {"query": "a", "size": 0}, 400, "'size' must be a whole number from 1"),
        ("/api/search", {"query": "a", "size": 5000}, 400, "size is 1 to 1,000 here, not 5,000"),
        ("/api/search", {"query": "a", "offset": 10**6}, 400, "offset is 100,000 here"),
        ("/api/search", {"query": "a", "size": 900, "rescore": 900}, 400, "rescore times size"),
        ("/api/search", {"query": "a", "must": 7}, 400, "'must' must be a text, or several"),
        ("/api/search", {"query": "a", "filters": 7}, 400, "A filter must be a text"),
        ("/api/search", {"query": "a", "filters": "colour=1"}, 400, "has a field 'colour'"),
        ("/api/search", {"query": "a", "index": "laws"}, 404, "no index 'laws' here"),
        ("/api/search", {"query": "a " * 9000}, 400, "18,000 characters is too long"),
        ("/api/search", {"taught": "../../x"}, 400, "cannot name a taught phrase"),
        ("/api/search", {"taught": "nothing"}, 404, "no taught phrase 'nothing'"),
        ("/api/mine", {"phrases": []}, 400, "nothing to mine for"),
        ("/api/mine", {"phrases": "a", "min_degree": 2}, 400, "a number from 0 to 1, not 2"),
        ("/api/mine", {"phrases": ["a"] * 1001}, 400, "1,001 texts are too many"),
        ("/api/mine", {"phrases": {"x": ""}}, 400, "nothing to mine for"),
        ("/api/mine", {"phrases": "a", "counter_examples": {"b": "c"}}, 400, "for 'b'"),
        ("/api/teach", {}, 422, "no phrase to teach"),
        ("/api/teach", {"phrases": "a b", "labels": [1]}, 400, "objects with document, start"),
    ],
)  # fmt: skip
def test_a_wrong_request_is_one_sentence(server, path, body, status, sentence):
    said = server.post(path, status, **body)
    assert sentence in said["error"]
    assert set(said) == {"error", "hint"}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/documents/nobody", 404),
        ("GET", "/api/documents/calls/1%23a?at=x", 400),
        ("GET", "/api/documents/calls/1%23a?at=999999", 400),
        ("GET", "/api/documents?size=0", 400),
        ("GET", "/nothing", 404),
        ("PUT", "/api/search", 405),
        ("GET", "/..%2f..%2fapp.py", 404),
        ("GET", "/%00", 400),
        ("POST", "/nothing", 405),
    ],
)
def test_what_is_not_there_is_said_in_json(server, method, path, status):
    code, headers, content = server.ask(method, path, {})
    assert (code, headers["content-type"]) == (status, "application/json")
    assert json.loads(content)["error"]


def test_an_index_is_chosen_by_its_name(index, tmp_path):
    with slice_os.open(tmp_path / "laws.slice", encoder=index.encoder) as laws:
        laws.add([("law-1", "Whoever cancels has to say so in writing.")])
        with serving({"calls": index, "laws": laws}) as server:
            assert server.get("/api/server")["indexes"] == ["calls", "laws"]
            found = server.post("/api/search", query="cancel", index="laws")
            assert [hit["document"] for hit in found["hits"]] == ["law-1"]
            assert len(server.post("/api/search", query="cancel")["hits"]) > 1
            assert server.get("/api/documents/law-1?index=laws")["start"] == 0
            assert server.get("/api/status?index=laws")["documents"] == 1


def test_queries_that_arrive_together_are_encoded_together(index, monkeypatch):
    sizes, search_many = [], index.search_many

    def slow(queries, **options):
        sizes.append(len(queries))
        time.sleep(0.3)
        return search_many(queries, **options)

    monkeypatch.setattr(index, "search_many", slow)
    with serving({"calls": index}) as server:
        answers = {}

        def ask(text, status):
            answers[text] = server.post("/api/search", status, query=text, size=2)

        texts = [f"wants to cancel {n}" for n in range(12)]
        asked = [(text, 200) for text in texts] + [(" ", 400)]
        threads = [threading.Thread(target=ask, args=pair) for pair in asked]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        text = server.ask("GET", "/metrics")[2].decode()
    assert max(sizes) > 4
    for text_ in texts:
        (hits,) = search_many([text_], size=2)
        assert [hit["document"] for hit in answers[text_]["hits"]] == [hit.document for hit in hits]
    assert "empty" in answers[" "]["error"]  # and it spoils no other's answer
    samples = {
        sample.name: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.labels
    }
    assert samples["slice_os_batch_queries_sum"] == 13
    assert samples["slice_os_waiting_searches"] == 0


def test_too_many_searches_at_once_are_refused(index, monkeypatch):
    monkeypatch.setattr(batching, "MOST_WAITING", 0)
    with serving({"calls": index}) as server:
        status, headers, content = server.ask("POST", "/api/search", {"query": "a"})
    assert (status, headers["retry-after"]) == (429, "5")
    assert "waiting already" in json.loads(content)["error"]


def test_teaching_answers_with_estimates_and_questions(server, workspace, index):
    phrase, labels = "wants to cancel", []
    for right in (True, False):
        for name in ("1#a", "4", "5") if right else ("2", "3", "7", "8"):
            text = index.get(f"calls/{name}").text
            labels.append(
                {"document": f"calls/{name}", "start": 0, "end": len(text), "right": right}
            )
    first = server.post("/api/teach", phrases=phrase)
    assert first["estimate"] is None
    assert len(first["questions"]) == 5
    one_sided = server.post("/api/teach", phrases=phrase, labels=labels[:2])
    assert one_sided["labels"] == 2  # the first answers may all say the same
    taught = server.post("/api/teach", phrases=phrase, labels=labels, save="leave", ask=2)
    assert taught["labels"] == 7
    assert taught["saved"] == "leave"
    assert len(taught["questions"]) <= 2
    assert taught["estimate"]["right"] == 3
    assert [point["estimate"]["probability"] for point in taught["curve"]][:2] == [0.05, 0.1]
    assert [file.name for file in workspace.iterdir()] == ["leave.json"]
    assert server.get("/api/taught") == {"taught": ["leave"]}
    assert server.get("/api/taught/leave")["labels"][0]["document"] == "calls/1#a"
    found = slice_os.read_taught(workspace / "leave.json")
    matches, report = server.mine(taught=["leave"], min_probability=0.4)
    mined = index.mine(found, min_probability=0.4)
    assert matches == [match.to_dict() for match in mined]
    assert matches
    assert report["counts"] == {phrase: len(matches)}
    hits = server.post("/api/search", taught="leave", size=2)["hits"]
    assert hits[0]["probability"] == index.search_taught(found)[0].probability


def test_labels_that_contradict_each_other_and_other_phrases_are_refused(server, workspace):
    label = {"document": "calls/2", "start": 0, "end": 9, "right": True}
    said = server.post(
        "/api/teach", 422, phrases="a refund", labels=[label, {**label, "right": False}]
    )
    assert "keep one of them" in said["error"]
    server.post("/api/teach", phrases="a refund", save="money")
    said = server.post("/api/teach", 409, phrases="a payment", save="money")
    assert "under another name" in said["error"]
    server.post("/api/teach", phrases="a refund", save="money")  # the same may be saved again


def test_without_a_workspace_nothing_is_kept(index):
    with serving({"calls": index}) as server:
        assert server.get("/api/taught") == {"taught": []}
        said = server.post("/api/teach", 400, phrases="a refund", save="money")
        assert said["hint"] == "start it with --workspace FOLDER."
        assert server.post("/api/teach", phrases="a refund")["saved"] is None


def test_the_client_of_openai_gets_the_vectors_of_the_encoder(server, index):
    texts = ["wants to cancel", "the ship sank"]
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        made = client.embeddings.create(model="slice-english-v2", input=texts)
        floats = client.embeddings.create(
            model="slice-english-v2", input=texts[0], encoding_format="float"
        )
        assert [model.id for model in client.models.list()] == ["slice-english-v2"]
        with pytest.raises(openai.NotFoundError, match="ask for 'slice-english-v2'"):
            client.embeddings.create(model="text-embedding-3-small", input=texts)
        with pytest.raises(openai.BadRequestError, match="has 384 dimensions, not 385"):
            client.embeddings.create(model="slice-english-v2", input=texts, dimensions=385)
        with pytest.raises(openai.BadRequestError, match="input"):
            client.embeddings.create(model="slice-english-v2", input=[[1, 2]])
    vectors = np.array([row.embedding for row in made.data], np.float32)
    np.testing.assert_array_equal(vectors, index.encoder.encode(texts))
    np.testing.assert_array_equal(np.array(floats.data[0].embedding, np.float32), vectors[0])
    assert made.usage.prompt_tokens == 6
    asked = {"model": "slice-english-v2", "input": "a", "encoding_format": "base64"}
    (row,) = server.post("/v1/embeddings", **asked)["data"]
    assert len(base64.b64decode(row["embedding"])) == 384 * 4
    asked |= {"input": texts, "encoding_format": "int8", "dimensions": 192}
    rows = server.post("/v1/embeddings", **asked)["data"]
    expected = field_vectors(vectors, "byte", 192).tolist()
    assert [row["embedding"] for row in rows] == expected


def test_a_table_comes_back_as_parquet(server):
    columns = {
        "name": ["caf\u00e9", None, ""], "degree": [1, 0.5, 0.75], "start": [1, 2, None],
        "metadata": [{"year": 2020}, {"tags": ["a", 1]}, "x"], "probability": [None, None, None],
    }  # fmt: skip
    status, headers, content = server.ask("POST", "/api/parquet", {"columns": columns})
    assert (status, headers["content-type"]) == (200, "application/vnd.apache.parquet")
    table = pyarrow.parquet.read_table(pyarrow.BufferReader(content))
    assert [str(field.type) for field in table.schema] == [
        *("string", "double", "int64", "string", "double")
    ]
    metadata = ['{"year": 2020}', '{"tags": ["a", 1]}', "x"]
    assert table.to_pydict() == {**columns, "metadata": metadata}
    for wrong in ({"name": ["a"], "text": []}, {"degree": ["x"]}, {"degree": 3}, None):
        assert server.post("/api/parquet", 400, columns=wrong)["error"]


def test_a_table_may_be_larger_than_other_bodies(index):
    with serving({"calls": index}, max_body=1000) as server:
        texts = ["match"] * 2000
        assert server.ask("POST", "/api/parquet", {"columns": {"text": texts}})[0] == 200
        assert server.ask("POST", "/api/parquet", {"columns": {"text": texts * 2}})[0] == 413
        assert server.ask("POST", "/api/search", {"query": "x" * 2000})[0] == 413


def test_an_unexpected_error_shows_nothing_of_itself(index, monkeypatch, caplog):
    def broken(queries, **options):
        raise ZeroDivisionError(f"secret {queries}")

    monkeypatch.setattr(index, "search_many", broken)
    with serving({"calls": index}) as server:
        said = server.post("/api/search", 500, query="my words")
    assert said["error"] == "Unexpected ZeroDivisionError: this is a bug."
    ours = [record for record in caplog.records if record.name == "slice_os.server"]
    assert any("test_endpoints.py" in record.getMessage() for record in ours)
    assert not any("my words" in record.getMessage() for record in ours)


def test_an_error_amid_mining_is_its_last_line(index, monkeypatch):
    real = index.mine

    def breaks(phrases, **options):
        yield next(real(phrases, **options))
        raise slice_os.SliceOSError("The disk is gone", hint="find it.")

    monkeypatch.setattr(index, "mine", breaks)
    with serving({"calls": index}) as server:
        matches, report = server.mine(phrases="wants to cancel", min_degree=0.5)
    assert len(matches) == 1
    assert report["done"] is False
    assert report["counts"] == {"wants to cancel": 1}
    assert (report["error"], report["hint"]) == ("The disk is gone", "find it.")


def test_hits_that_are_liked_draw_the_query(server, index):
    options = {"size": 3, "liked": ["the ship sank"], "disliked": ["refund"]}
    hits = server.post("/api/search", query="the night", **options)["hits"]
    drawn = index.search("the night", **options)
    assert [hit["score"] for hit in hits] == [hit.score for hit in drawn]

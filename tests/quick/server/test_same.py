"""What a request is "the same as" is run, and gives what the request gives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import slice_os
from slice_os.server.same import NO_QUERY
from support.serving import serving
from support.verbs import run

PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
ODD = 'it\'s "$HOME" `id` \\n !x\n%s caf\u00e9 \u732b \U0001f600 to cancel'
SEARCHES = [
    {"query": ODD, "literal": True, "size": 2},
    {"query": "-the $5 'order'", "literal": True, "mode": "dense", "rescore": 0, "late": 0.0},
    {"query": "-subscription cancel", "group": True, "filters": ["number<7", "number>=1"]},
    {"query": "to cancel", "liked": ["don't like it"], "disliked": ['-"seat"\n$x'], "offset": 1},
    {"query": "cancel", "must": ["my subscription"], "must_not": ["-like it"], "sort": "degree"},
    {"query": "cancel", "filters": {"number": [1, 6]}, "index": "calls", "context": 1},
    {"taught": "leave it", "size": 3, "min_probability": 0.1},
]
MININGS = [
    {"phrases": [ODD, "-wants to cancel"], "literal": True, "min_degree": 0.65},
    {"phrases": {"a='b'": ["wants to cancel", f"x,\"y\" {ODD}"], "z": "the 'ship' sank"},
     "counter_examples": {"a='b'": "do not want to\ncancel"}, "literal": True, "min_degree": 0.7},
    {"phrases": ["wants to cancel"], "counter_examples": {"wants to cancel": ["$x's = 'no'"]},
     "rescore": False, "per_document": True, "top": 3, "sort": "degree", "min_degree": 0.7},
    {"phrases": "stop the delivery", "taught": ["leave it"], "min_probability": 0.2},
    {"taught": ["leave it"], "filters": ["number<5"]},
]  # fmt: skip


@pytest.fixture(scope="module")
def taught(server, index):
    labels = [
        {"document": name, "start": 0, "end": 20, "right": name in ("calls/1#a", "calls/4")}
        for name in ("calls/1#a", "calls/2", "calls/3", "calls/4", "calls/7", "calls/8")
    ]
    server.post("/api/teach", phrases=["to cancel"], name="le'ave", labels=labels, save="leave it")


def shell(command, folder):
    done = subprocess.run(
        ["bash", "-ec", command], capture_output=True, cwd=folder, text=True, timeout=120,
        env={**os.environ, "PATH": PATH},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def forms_of(server, verb, body):
    return server.post(f"/api/same/{verb}?url={server.url}/", **body)


def as_json(command):
    """Return a command of slice-os with --json."""
    return command.replace("slice-os search ", "slice-os search --json ").replace(
        "slice-os mine ", "slice-os mine --json "
    )


def printed(found):
    return "".join(f"{each['degree']} {each['text']}\n" for each in found)


@pytest.mark.parametrize("body", SEARCHES, ids=range(len(SEARCHES)))
def test_a_search_is_the_same_in_every_form(server, taught, tmp_path, body, location):
    answer = server.post("/api/search", **body)
    hits = answer.get("hits") or [hit for each in answer["documents"] for hit in each["hits"]]
    assert hits
    told = forms_of(server, "search", body)
    assert json.loads(shell(told["curl"], tmp_path)) == answer
    by_command = json.loads(shell(as_json(told["command"]), tmp_path))
    by_command["query"] = answer["query"]  # of a taught phrase the file
    assert by_command == answer
    program = tmp_path / "program.py"
    program.write_text(told["python"], "utf-8")
    assert shell(f"{sys.executable} {program}", tmp_path) == printed(hits)


@pytest.mark.parametrize("body", MININGS, ids=range(len(MININGS)))
def test_a_mining_is_the_same_in_every_form(server, taught, tmp_path, body):
    matches, report = server.mine(**body)
    assert matches
    told = forms_of(server, "mine", body)
    lines = [json.loads(line) for line in shell(told["curl"], tmp_path).splitlines()]
    assert lines == [*matches, report]
    by_command = json.loads(shell(as_json(told["command"]), tmp_path))
    assert by_command["matches"] == matches
    assert by_command["counts"] == report["counts"]
    program = tmp_path / "program.py"
    program.write_text(told["python"], "utf-8")
    assert shell(f"{sys.executable} {program}", tmp_path) == printed(matches)


def test_the_query_of_a_cluster_is_what_the_verb_query_prints(server, taught):
    told = forms_of(server, "search", {"query": ODD, "literal": True, "filters": ["number>2"]})
    options = ("--literal", "--filter", "number>2", "--curl")
    assert told["dsl"] == run("query", ODD, *options).stdout.rstrip("\n")
    assert "default settings" in told["note"]
    told = forms_of(server, "mine", {"phrases": ["wants to cancel", "the ship"], "min_degree": 0.9})
    assert told["dsl"].count('"min_score"') == 2
    told = forms_of(server, "mine", {"taught": ["leave it"]})
    assert (told["dsl"], told["note"]) == ("", NO_QUERY)


def test_a_server_with_a_token_and_no_judge_says_so(location, tmp_path):
    with (
        slice_os.open(location, judge=None) as index,
        serving({"calls": index}, token="secret") as server,
    ):
        headers = {"Content-Type": "application/json", "Authorization": "Bearer secret"}
        body = {"query": "I want to cancel my subscription"}
        _, _, told = server.ask("POST", f"/api/same/search?url={server.url}", body, headers)
        _, _, answer = server.ask("POST", "/api/search", body, headers)
        forms, found = json.loads(told), json.loads(answer)
        asked = f"export SLICE_OS_TOKEN=secret\n{forms['curl']}"
        assert json.loads(shell(asked, tmp_path)) == found
        assert json.loads(shell(as_json(forms["command"]), tmp_path)) == found
        assert "judge=None" in forms["python"]


@pytest.mark.parametrize("verb", ["search", "mine"])
def test_a_wrong_request_is_the_same_as_none(server, verb):
    assert server.post(f"/api/same/{verb}", 400)["error"]

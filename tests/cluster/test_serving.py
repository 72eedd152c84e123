"""A server before a cluster: it answers as the library does, and says what that refuses."""

from __future__ import annotations

import json
import subprocess

import slice_os
from slice_os.query import read_hits
from support.proxy import proxied
from support.serving import serving
from support.verbs import TEXTS

FORBIDDEN = (403, "application/json", b'{"error": {"type": "security_exception"}, "status": 403}')


def test_a_cluster_is_served_and_what_it_refuses_is_said(cluster, name):
    documents = [slice_os.Document(f"d{n}", text) for n, text in enumerate(TEXTS)]
    refused = []
    with proxied(cluster.url, lambda _: refused[0] if refused else None) as proxy:
        location = f"{proxy.url}/{name}"
        slice_os.index(documents, location, cluster=slice_os.ClusterSettings(replicas=0))
        with slice_os.open(location) as index, serving({"calls": index}) as server:
            hits = server.post("/api/search", query="end my subscription", size=2)["hits"]
            found = index.search("end my subscription", size=2)
            assert [hit["document"] for hit in hits] == [hit.document for hit in found]
            matches, report = server.mine(phrases="end my subscription", min_degree=0.7)
            mined = index.mine("end my subscription", min_degree=0.7)
            assert matches == [match.to_dict() for match in mined]
            assert report["done"]
            assert server.get("/api/documents/d1")["text"] == TEXTS[1]
            assert server.get("/api/status")["documents"] == len(TEXTS)
            refused.append(FORBIDDEN)
            assert server.post("/api/search", 502, query="another thing")["error"]
            matches, report = server.mine(phrases="another thing")
            assert (matches, report["done"]) == ([], False)
            assert report["error"]


def test_the_query_that_a_request_is_the_same_as_finds_the_same(cluster, name):
    odd = 'it\'s "$5" `x` \U0001f600\nmy subscription'
    documents = [
        slice_os.Document(f"d{n}", text) for n, text in enumerate([*TEXTS, f"I end {odd}."])
    ]
    location = f"{cluster.url}/{name}"
    fine = slice_os.ClusterSettings(tolerance=0.99, replicas=0)  # a cluster orders by stored spans
    slice_os.index(documents, location, cluster=fine)

    def asked(told):
        answers, said = [], subprocess.check_output(["bash", "-ec", told["dsl"]], text=True)
        while said:
            answer, end = json.JSONDecoder().raw_decode(said)
            answers, said = [*answers, answer], said[end:].lstrip()
        return answers

    with slice_os.open(location) as index, serving({"calls": index}) as server:
        for more in ({}, {"mode": "dense", "size": 2}, {"mode": "lexical"}):
            body = {"query": odd, "literal": True, "late": 0.0, "rescore": 0, **more}
            hits = server.post("/api/search", **body)["hits"]
            told = server.post("/api/same/search", **body)
            (answer,) = asked(told)
            found = read_hits(answer)
            assert [hit.document for hit in found] == [hit["document"] for hit in hits], body
            assert "default settings" not in told["note"]
        phrases = [odd, "end my subscription", "window seat"]
        matches, _ = server.mine(phrases=phrases, literal=True, min_degree=0.7)
        answers = asked(
            server.post("/api/same/mine", phrases=phrases, literal=True, min_degree=0.7)
        )
        assert len(answers) == len(phrases)
        for phrase, answer in zip(phrases, answers, strict=True):
            named = {match["document"] for match in matches if match["phrase"] == phrase}
            assert named <= {hit.document for hit in read_hits(answer)}
            assert named

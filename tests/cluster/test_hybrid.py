"""The neural-search plugin of a real node: `hybrid` queries and their pipelines."""

from __future__ import annotations

import json
import shlex

import pytest
from opensearchpy.exceptions import RequestError

import slice_os
from slice_os.errors import QueryError
from slice_os.query import (
    hybrid_query,
    lexical_query,
    normalization_pipeline,
    read_hits,
    rrf_pipeline,
    span_query,
)
from slice_os.storage.fusion import FUSIONS
from slice_os.text.filters import Filter
from support.proxy import proxied
from support.retrieval_set import DOCUMENTS, QUERIES
from support.verbs import request, run

DEPTH = 5
PIPELINES = {
    "rrf": (None, rrf_pipeline()),
    "rrf-weighted": (0.2, rrf_pipeline(weight=0.2)),
    "min_max": (0.5, normalization_pipeline()),
    "min_max-weighted": (0.3, normalization_pipeline(0.3)),
}


@pytest.fixture(scope="module")
def encoder():
    with slice_os.load_encoder() as loaded:
        yield loaded


@pytest.fixture(scope="module")
def place(cluster, client):
    """An index of two shards, and the pipelines."""
    name = "test-hybrid"
    corpus = [
        slice_os.Document(f"{name}-{n}", text, title, {"n": n})
        for n in range(3)
        for name, (title, text) in DOCUMENTS.items()
    ]
    client.indices.delete(index=f"{name}*")
    slice_os.index(corpus, f"{cluster.url}/{name}", cluster={"replicas": 0, "shards": 2})
    for pipeline, (_, body) in PIPELINES.items():
        client.transport.perform_request("PUT", f"/_search/pipeline/{name}-{pipeline}", body=body)
    yield f"{cluster.url}/{name}"
    for pipeline in PIPELINES:
        client.transport.perform_request("DELETE", f"/_search/pipeline/{name}-{pipeline}")
    client.indices.delete(index=f"{name}*")


def scores(hits):
    return {(hit.document, hit.passage): hit.score for hit in hits}


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("filters", [[], [Filter("n", ">=", "1")]], ids=["all", "filtered"])
def test_it_fuses_as_slice_os_does(client, place, encoder, pipeline, filters):
    fusion, weight = pipeline.partition("-")[0], PIPELINES[pipeline][0]
    name = place.rpartition("/")[2]
    for text, vector in zip(QUERIES.values(), encoder.encode([*QUERIES.values()]), strict=True):
        given = {"filters": filters, "size": 2 * DEPTH}
        options = {**given, "fusion": fusion, "weight": weight}
        body = hybrid_query(text, vector, k=100, **options)
        answer = client.search(
            index=name, body=body, params={"search_pipeline": f"{name}-{pipeline}"}
        )
        hits = read_hits(answer, body)
        # Each shard ranks as many as the depth says, and the plugin fuses what all shards found.
        legs = [lexical_query(text, **{**given, "size": 200}),
                span_query(vector, k=100, **{**given, "size": 200})]  # fmt: skip
        lexical, dense = (scores(read_hits(client.search(index=name, body=leg))) for leg in legs)
        fused = FUSIONS[fusion].fuse(dense, lexical, weight)
        assert answer["hits"]["total"]["value"] == len(fused)
        best = sorted(fused.values(), reverse=True)[: 2 * DEPTH]
        assert [hit.score for hit in hits] == pytest.approx(best, abs=2e-3)
        for hit in hits:
            assert hit.degree == pytest.approx(dense.get((hit.document, hit.passage), 0), abs=1e-6)
            assert {"n": 0} not in [hit.metadata] * bool(filters)


def test_pages_are_cut_from_one_ranking(client, place, encoder):
    name, (text, *_) = place.rpartition("/")[2], QUERIES.values()
    vector = encoder.encode([text])[0]

    def page(offset, size):
        body = hybrid_query(text, vector, fusion="min_max", offset=offset, size=size)
        return read_hits(
            client.search(index=name, body=body, params={"search_pipeline": f"{name}-min_max"})
        )

    whole = page(0, 12)
    assert [hit for offset in (0, 4, 8) for hit in page(offset, 4)] == whole
    with pytest.raises(RequestError):  # not an empty page
        page(90, 4)


def test_what_no_pipeline_has_read_is_refused(client, place, encoder):
    name, vector = place.rpartition("/")[2], encoder.encode(["a ship"])[0]
    body = hybrid_query("a ship", vector, fusion="rrf")
    with pytest.raises(QueryError, match="without its search pipeline"):
        read_hits(client.search(index=name, body=body))
    within = {**body, "query": {"bool": {"should": [body["query"]]}}}
    answer = client.search(index=name, body=within, params={"search_pipeline": f"{name}-rrf"})
    with pytest.raises(QueryError, match="within another query"):
        read_hits(answer, within)


def test_the_printed_request_holds_its_pipeline(place):
    for fusion in ("rrf", "min_max"):
        printed = run("query", "the ship sank", "--index", place, "--fusion", fusion, "--curl")
        words = shlex.split(printed.stdout)
        body = json.loads(words[words.index("-d") + 1])
        assert read_hits(request("POST", words[2], body), body)[0].document.startswith("ship")


def test_a_node_without_it_is_noticed(place, cluster, monkeypatch):
    assert slice_os.doctor(place).facts["fusions"] == "saturation, rrf, min_max: one request each"
    with proxied(cluster.url, lambda _: None) as proxy:
        passed = proxy.answer

        def answer(request):
            if request.path.startswith("/_cat/plugins"):
                return 200, "application/json", b'[{"name":"n1","component":"opensearch-knn"}]'
            return passed(request)

        monkeypatch.setattr(proxy, "answer", answer)
        behind = place.replace(cluster.url, proxy.url)
        refused = run("query", "cancel", "--fusion", "rrf", "--index", behind, ok=1).stderr
    assert "not all its nodes have the neural-search plugin" in refused

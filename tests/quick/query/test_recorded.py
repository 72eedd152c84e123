"""A real cluster's answers (OpenSearch 3.6.0 with neural-search): our fusion, shape and reading."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from slice_os.query import (
    hybrid_query,
    mining_query,
    normalization_pipeline,
    read_hits,
    rrf_pipeline,
)
from slice_os.storage.fusion import FUSIONS
from slice_os.text.filters import Filter

DATA = Path(__file__).parent / "data" / "hybrid-recorded.json.gz"
RECORDED = json.loads(gzip.decompress(DATA.read_bytes()))
CASES = RECORDED["cases"]


def legs_of(number):
    legs = CASES[number]["legs"]
    return legs if isinstance(legs, list) else CASES[number + 1]["legs"]


@pytest.fixture(
    params=range(len(CASES)),
    ids=[f"{i}-{c['index']}-{c['knn']}-{c['pipeline']}" for i, c in enumerate(CASES)],
)
def number(request):
    return request.param


def test_our_fusion_of_the_legs_is_the_clusters(number):
    case = CASES[number]
    lexical, dense = (
        {row["_id"]: row["_score"] for row in leg["response"]["hits"]["hits"]}
        for leg in legs_of(number)
    )
    name, weight = ("rrf", None) if "rrf" in case["pipeline"] else ("min_max", 0.3)
    fused = FUSIONS[name].fuse(dense, lexical, weight)
    found = case["response"]["hits"]["hits"]
    assert case["response"]["hits"]["total"]["value"] == len(fused)
    assert {row["_id"]: fused[row["_id"]] for row in found} == pytest.approx(
        {row["_id"]: row["_score"] for row in found}, abs=1e-4
    )
    best = sorted(fused.values(), reverse=True)[: len(found)]
    assert [row["_score"] for row in found] == pytest.approx(best, abs=1e-4)
    sure = {ref for ref, score in fused.items() if score > best[-1] + 1e-4}
    assert sure <= {row["_id"] for row in found}


def test_our_request_is_the_recorded_one(number):
    case = CASES[number]
    # The recorded index has a field "tag"; ours hold all metadata in one field.
    tagged = json.dumps(case["request"]).replace('"tag": "a"', '"filters": "tag\\u0000ta"')
    recorded = json.loads(tagged)
    wanted = recorded["query"]["hybrid"]["queries"][1]["nested"]["query"]["knn"]["spans.vector"]
    asked = {
        "filters": [Filter("tag", "=", "a")] if "filter" in case["knn"] else [],
        "spans": 5, "vector_type": "float", "source": (),
    }  # fmt: skip
    if "k" in wanted:
        fusion = "rrf" if "rrf" in case["pipeline"] else "min_max"
        ours = hybrid_query(case["text"], wanted["vector"], k=wanted["k"], fusion=fusion, **asked)
        knn = ours["query"]["hybrid"]["queries"][1]["nested"]["query"]["knn"]["spans.vector"]
        # What ours has more: without it, of five inner hits only the best would come.
        assert knn.pop("expand_nested_docs") is True
    else:  # a radial query, which mining sends
        recorded = recorded["query"]["hybrid"]["queries"][1]
        body = mining_query(wanted["vector"], wanted["min_score"], tolerance=1, margin=0, **asked)
        ours = body["query"]["bool"]["should"][0]
        knn = ours["nested"]["query"]["knn"]["spans.vector"]
        knn["min_score"] = pytest.approx(knn["min_score"])
    knn["vector"] = pytest.approx(knn["vector"], abs=2e-4)  # the recorded ones have four digits
    assert ours == recorded


def test_more_spans_need_one_key_more():
    for spans in (2, 5):
        body = hybrid_query("a", [1.0], fusion="rrf", spans=spans)
        leg = body["query"]["hybrid"]["queries"][1]["nested"]
        assert leg["query"]["knn"]["spans.vector"]["expand_nested_docs"] is True
        assert leg["inner_hits"]["size"] == spans


def test_our_pipelines_are_the_recorded_ones():
    assert normalization_pipeline(0.3) == RECORDED["pipelines"]["min_max_30_70"]
    assert rrf_pipeline() == RECORDED["pipelines"]["rrf_60"]


def test_hits_are_read(number):
    response = CASES[number]["response"]
    dense = {row["_id"]: row["_score"] for row in legs_of(number)[1]["response"]["hits"]["hits"]}
    hits = read_hits(response)
    assert len(hits) == 10
    for hit, row in zip(hits, response["hits"]["hits"], strict=True):
        assert (hit.document, hit.score) == (row["_id"], row["_score"])
        inner = row["inner_hits"]["spans"]["hits"]["hits"]
        assert [(span.start, span.end, span.degree) for span in hit.spans] == [
            (one["fields"]["spans.start"][0], one["fields"]["spans.end"][0], one["_score"])
            for one in inner
        ]
        if hit.document in dense:
            assert hit.degree == pytest.approx(dense[hit.document], abs=1e-6)
            assert hit.spans[0].in_context_degree == hit.degree
        else:
            assert (hit.degree, hit.spans) == (0.0, ())


def test_the_legs_alone_are_read():
    lexical, dense = legs_of(1)
    assert {hit.degree for hit in read_hits(lexical["response"])} == {0.0}
    assert all(hit.score > 0.5 for hit in read_hits(dense["response"]))

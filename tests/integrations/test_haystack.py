"""The retriever component for Haystack."""

from __future__ import annotations

import asyncio

import pytest
from haystack import Pipeline

from slice_os.errors import QueryError
from slice_os.integrations.haystack import SliceRetriever
from support.calls import check_spans


def test_a_pipeline_retrieves_and_is_saved(location):
    pipeline = Pipeline()
    pipeline.add_component("retriever", SliceRetriever(str(location), top_k=2))
    (first, second) = pipeline.run({"retriever": {"query": "wants to cancel"}})["retriever"][
        "documents"
    ]
    assert first.score == first.meta["degree"] >= second.score
    check_spans(first.content, first.meta)
    loaded = Pipeline.loads(pipeline.dumps(), allowed_modules=["slice_os.integrations.haystack"])
    again = loaded.run({"retriever": {"query": "wants to cancel"}})["retriever"]["documents"]
    assert again == [first, second]
    found = asyncio.run(loaded.get_component("retriever").run_async("wants to cancel"))
    assert found["documents"] == again


def leaf(field, operator, value):
    return {"field": f"meta.{field}", "operator": operator, "value": value}


@pytest.mark.parametrize(
    ("filters", "documents"),
    [
        (leaf("year", ">=", 2024), {"call-2", "call-3"}),
        (leaf("year", "in", [2023, 2025]), {"call-1", "call-3"}),
        (
            {"operator": "OR", "conditions": [leaf("year", "<", 2024), leaf("year", ">", 2024)]},
            {"call-1", "call-3"},
        ),
        (
            {"operator": "NOT", "conditions": [
                leaf("kind", "==", "b"),
                {"operator": "OR", "conditions": [
                    leaf("year", "==", 2024), leaf("year", "==", 2023)]}]},
            {"call-1", "call-3"},
        ),
    ],
)  # fmt: skip
def test_filters_mean_what_they_mean_there(location, filters, documents):
    found = SliceRetriever(str(location)).run("my parcel or my account", filters=filters)
    assert {document.meta["document"] for document in found["documents"]} == documents


@pytest.mark.parametrize(
    "filters", [{"field": "a"}, {"operator": "XOR", "conditions": []}, leaf("a", "like", 1),
                leaf("a", "==", None), leaf("a", "in", [])],
)  # fmt: skip
def test_a_filter_that_says_nothing_is_refused(location, filters):
    with pytest.raises(QueryError):
        SliceRetriever(str(location)).run("parcel", filters=filters)

"""The retriever for LlamaIndex."""

from __future__ import annotations

import asyncio

import pytest
from llama_index.core.vector_stores import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)

from slice_os.errors import QueryError
from slice_os.integrations.llamaindex import SliceRetriever
from support.calls import check_spans


def test_nodes_say_what_matched(index):
    retriever = SliceRetriever(index, similarity_top_k=2)
    nodes = retriever.retrieve("wants to cancel")
    assert len(nodes) == 2
    assert nodes[0].metadata["document"] == "call-1"
    assert nodes[0].score == nodes[0].metadata["degree"]
    check_spans(nodes[0].text, nodes[0].metadata)
    assert asyncio.run(retriever.aretrieve("wants to cancel")) == nodes


def one(key, operator, value):
    return MetadataFilter(key=key, operator=FilterOperator(operator), value=value)


@pytest.mark.parametrize(
    ("condition", "filters", "documents"),
    [
        ("and", [one("year", ">=", 2024), one("kind", "==", "b")], {"call-2", "call-3"}),
        ("or", [one("year", "<", 2024), one("year", ">", 2024)], {"call-1", "call-3"}),
        ("and", [one("year", "in", [2023, 2025])], {"call-1", "call-3"}),
        ("and", [one("year", "nin", [2023, 2025])], {"call-2"}),
        ("not", [one("kind", "==", "b"), one("year", "==", 2024)], {"call-1", "call-3"}),
        (
            "or",
            [
                MetadataFilters(filters=[one("kind", "==", "b"), one("year", "<=", 2024)]),
                one("year", "==", 2023),
            ],
            {"call-1", "call-2"},
        ),
    ],
)
def test_filters_mean_what_they_mean_there(index, condition, filters, documents):
    tree = MetadataFilters(filters=filters, condition=FilterCondition(condition))
    nodes = SliceRetriever(index, filters=tree).retrieve("my parcel or my account")
    assert {node.metadata["document"] for node in nodes} == documents


def test_a_filter_without_a_counterpart_is_refused(index):
    filters = MetadataFilters(filters=[one("kind", "text_match", "b")])
    with pytest.raises(QueryError, match="text_match"):
        SliceRetriever(index, filters=filters)

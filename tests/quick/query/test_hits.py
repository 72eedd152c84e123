"""Answers that are read, and answers that are refused."""

from __future__ import annotations

import copy

import pytest

from slice_os.errors import QueryError
from slice_os.query import read_hits
from slice_os.types import Hit, SpanMatch


def inner(*rows):
    hits = [
        {"_score": score, "fields": {"spans.start": [start], "spans.end": [end]}}
        for start, end, score in rows
    ]
    return {"spans": {"hits": {"hits": hits}}}


SOURCE = {
    "document": "d", "passage": 2, "title": "T", "text": "please cancel it", "start": 5, "end": 21,
    "metadata": {"a": {"b": 1}},
}  # fmt: skip
SPANS = inner((0, 13, 0.6), (7, 13, 0.9))
ANSWER = {
    "timed_out": False,
    "_shards": {"total": 3, "successful": 3, "skipped": 0, "failed": 0},
    "hits": {"hits": [
        {"_id": "1", "_score": 0.7, "_source": SOURCE, "inner_hits": SPANS},
        {"_id": "2", "_score": 0.2, "_source": SOURCE, "inner_hits": inner()},
        {"_id": "3", "_score": None},
    ]},
}  # fmt: skip


def test_hits():
    first, second, third = read_hits(ANSWER)
    spans = (
        SpanMatch(7, 13, "cancel", 0.9, 0.9),
        SpanMatch(0, 13, "please cancel", 0.6, 0.6),
    )
    assert first == Hit("d", 2, "T", "please cancel it", 0.7, 0.9, spans, {"a.b": 1}, 5, 21)
    assert (second.score, second.degree, second.spans) == (0.2, 0.0, ())
    assert third == Hit("3", 0, "", "", 0.0, 0.0, (), {}, 0, 0)


def changed(**changes):
    return {**copy.deepcopy(ANSWER), **changes}


FAILED = {"total": 3, "failed": 1, "failures": [{"reason": {"reason": "broken circuit"}}]}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([], "a JSON object, not list"),
        ({}, "holds no hits"),
        ({"hits": []}, "holds no hits"),
        ({"hits": {"hits": None}}, "holds no hits"),
        ({"error": {"reason": "no such index [x]"}, "status": 404}, r"refused .* no such index"),
        ({"error": "alas"}, "alas"),
        (changed(timed_out=True), "ran out of time"),
        (changed(_shards=FAILED), "1 of 3 shards failed.*broken circuit"),
        (changed(_shards={"total": 3, "failed": 2}), "2 of 3 shards failed"),
        (changed(_shards={"total": 3, "successful": 2, "failed": 0}), "1 of 3 shards did not"),
        (changed(hits={"hits": [{"_score": -9.549512e9}]}), "search_pipeline=NAME"),
        (changed(hits={"hits": [{"inner_hits": {"spans": {"hits": {"hits": [{}]}}}}]}), "lacks"),
    ],
)
def test_answers_that_are_refused(answer, message):
    with pytest.raises(QueryError, match=message):
        read_hits(answer)


def test_a_hybrid_query_within_another_is_refused():
    body = {"query": {"bool": {"must": [{"hybrid": {"queries": []}}], "filter": []}}}
    with pytest.raises(QueryError, match="adds up raw scores: send it as the whole query"):
        read_hits(ANSWER, body)
    for whole in ({"query": {"hybrid": {"queries": []}}}, {"query": {"match_all": {}}}, {}):
        assert read_hits(ANSWER, whole) == read_hits(ANSWER)

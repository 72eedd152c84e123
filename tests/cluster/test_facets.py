"""Facets count documents, on a real node, where its own aggregations count passages."""

from __future__ import annotations

from collections import Counter

import pytest

import slice_os
from slice_os.errors import QueryError
from slice_os.query import facets, lexical_query, read_facets, span_query
from slice_os.text.filters import Filter

SERVERS = ("opensearch", "elasticsearch")
ODD = 'a.b (c)* "d" [e] & f~<1>@#|{2}?+-^$\\ ä'
FIELDS = ["status", "year", "tags", "open", "nested.of", ODD]


def documents():
    return [
        slice_os.Document(
            f"d{n}",
            "\n\n".join(
                f"Line {line} of order {n}, which never came." for line in range(1 + n % 7)
            ),
            metadata={
                "status": ("open", "closed", "Late one")[n % 3],
                "year": 2015 + n % 4,
                "tags": ["a", "b", "c"][: n % 4],
                "open": n % 2 == 0,
                "nested": {"of": n % 5},
                "statuses": "another field",
                ODD: "x" if n % 3 else "y",
            },
        )
        for n in range(60)
    ]


def expected(given, field):
    if field == "tags":
        return Counter(tag for document in given for tag in document.metadata["tags"])
    if field == "nested.of":
        return Counter(str(document.metadata["nested"]["of"]) for document in given)
    values = (document.metadata[field] for document in given)
    return Counter(str(value).lower() if field == "open" else str(value) for value in values)


@pytest.fixture
def filled(cluster, name):
    settings = {"replicas": 0, "shards": 3, "tolerance": 0.5}
    slice_os.index(documents(), f"{cluster.url}/{name}", cluster=settings, passage_words=8)
    return name


def test_documents_are_counted_whatever_finds_them(filled, client):
    dialect = client.info()["version"].get("distribution", "elasticsearch")
    with slice_os.load_encoder() as encoder:
        vector = encoder.encode(["an order"])[0]
    recent = [Filter("year", ">=", "2017")]
    bodies = [
        ({"size": 0}, documents()),
        ({"query": {"term": {"passage": 0}}}, documents()),
        (lexical_query("order", filters=recent, dialect=dialect),
         [one for one in documents() if one.metadata["year"] >= 2017]),
        (span_query(vector, k=1000, dialect=dialect), documents()),
    ]  # fmt: skip
    for body, given in bodies:
        answer = client.search(index=filled, body={**body, "aggs": facets(FIELDS)})
        found = read_facets(answer)
        assert {field: expected(given, field) for field in FIELDS} == found
        assert [*found["tags"].values()] == sorted(found["tags"].values(), reverse=True)
    passages = answer["aggregations"]["status"]["buckets"][0]["doc_count"]
    assert passages > 20  # which is what the cluster itself counts
    few = client.search(index=filled, body={"size": 0, "aggs": facets(["year", "none"], size=2)})
    assert [len(values) for values in read_facets(few).values()] == [2, 0]


def test_an_answer_without_facets_is_refused(filled, client):
    with pytest.raises(QueryError, match="has no facets"):
        read_facets(client.search(index=filled, body={"size": 1}))
    with pytest.raises(QueryError, match="size is 0"):
        facets(["year"], size=0)

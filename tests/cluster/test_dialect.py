"""Kinds of servers, clients and credentials that are given, settings that are asked for."""

from __future__ import annotations

import json
import uuid

import numpy as np
import orjson
import pytest
from opensearchpy import OpenSearch

import slice_os
from slice_os.errors import ClusterError, LocationError, UnreachableError
from slice_os.query import lexical_query
from slice_os.storage.cluster import dialect as dialects
from slice_os.storage.cluster.elasticsearch import Elasticsearch
from slice_os.storage.cluster.opensearch import OpenSearch as Dialect
from slice_os.storage.cluster.queries import BM25_BOOST
from slice_os.storage.cluster.settings import Layout
from slice_os.text.filters import Filter

TEXTS = ["Please cancel my subscription today.", "The ship sank in the night."]
asked: list[str] = []


class Toy(Dialect):
    """A server that calls itself as the test's node does; it notes what it is asked for."""

    name = "toy"

    @classmethod
    def matches(cls, version):
        return version["distribution"] == "opensearch"

    def adapt(self, body):
        asked.append("search")
        return super().adapt(body)

    def put_vector(self, field, dimension, layout):
        asked.append("mapping")
        super().put_vector(field, dimension, layout)


@pytest.fixture
def location(cluster):
    location = f"{cluster.url}/dialect-{uuid.uuid4().hex[:12]}"
    yield location
    with OpenSearch(cluster.url) as client:
        client.indices.delete(index=f"{location.rpartition('/')[2]}*")


def fill(location, **options):
    documents = [slice_os.Document(str(n), text) for n, text in enumerate(TEXTS)]
    return slice_os.index(documents, location, **options)


def test_a_dialect_from_outside_is_a_row(location, monkeypatch):
    monkeypatch.setattr(dialects, "DIALECTS", {"toy": f"{__name__}:Toy", **dialects.DIALECTS})
    asked.clear()
    fill(location, cluster={"replicas": 0})
    with slice_os.open(location) as index:
        assert index.status().backend == "toy"
        assert index.search("end my plan")[0].document == "0"
    assert asked[0] == "mapping"
    assert asked[-1] == "search"


@pytest.mark.parametrize(
    ("mode", "kept", "size", "k"),
    [
        ("hybrid", 384, 30, 250),
        ("hybrid", 192, 30, 500),
        ("dense", 384, 50, 250),
        ("dense", 192, 100, 250),
    ],
)
def test_fewer_dimensions_ask_for_more(location, monkeypatch, mode, kept, size, k):
    bodies = []
    monkeypatch.setattr(Dialect, "adapt", lambda self, body: bodies.append(body) or body)
    fill(location, cluster={"replicas": 0, "dimensions": kept})
    with slice_os.open(location) as index:
        bodies.clear()
        assert index.search("I want to end the plan that I pay for", mode=mode)
    (body,) = bodies
    assert body["size"] == size
    assert f"'k': {k}" in str(body["query"])


def test_a_codec_is_kept_by_the_next_generation(location, cluster):
    fill(location, cluster={"codec": "best_compression", "replicas": 0})
    slice_os.reindex(location)
    name = location.rpartition("/")[2]
    with OpenSearch(cluster.url) as client:
        settings = client.indices.get_settings(index=f"{name}-*")
    codecs = [about["settings"]["index"]["codec"] for about in settings.values()]
    assert codecs == ["best_compression"] * 2
    with pytest.raises(LocationError, match="has codec best_compression, default was asked"):
        slice_os.open(location, cluster={"codec": "default"})
    with slice_os.open(location) as index:
        assert index.search(TEXTS[0])[0].degree == 1


def test_a_server_of_no_known_kind_is_one_sentence(location, monkeypatch):
    class Other(Dialect):
        @classmethod
        def matches(cls, version):
            return False

    monkeypatch.setitem(globals(), "Other", Other)
    monkeypatch.setattr(dialects, "DIALECTS", {"other": f"{__name__}:Other"})
    with pytest.raises(UnreachableError, match="is neither OpenSearch nor"):
        slice_os.open(location)
    monkeypatch.undo()
    fill(location)


def test_a_client_of_ones_own_is_used_and_stays_open(location, cluster):
    with OpenSearch(cluster.url) as client:
        fill(location, client=client)
        with slice_os.open(location, client=client) as index:
            assert index._backend.cluster.client._own is None
            assert index.search("end my plan")[0].document == "0"
        assert client.ping()
    folder = "some.slice"
    with pytest.raises(LocationError, match="leave out the client"):
        slice_os.open(folder, client=object())


def test_given_credentials_are_used_instead_of_the_environments(location, monkeypatch):
    monkeypatch.setenv("SLICE_OS_API_KEY", "of the environment")
    fill(location, credentials={"user": "ann", "password": "secret"})
    with slice_os.open(location, credentials={"user": "ann", "password": "s"}) as index:
        sent = index._backend.cluster.client._own.transport.get_connection().headers
        assert sent["authorization"].startswith("Basic ")
        assert "secret" not in repr(index)
    with pytest.raises(ClusterError, match=r"no credentials 'usr': give user, password"):
        slice_os.open(location, credentials={"usr": "ann"})


@pytest.mark.parametrize(
    ("version", "asked"),
    [((8, 14), False), ((8, 18), False), ((8, 19), True), ((9, 0), False), ((9, 1), True),
     ((9, 5), True), (None, True)],
)  # fmt: skip
def test_vectors_are_asked_for_where_the_source_may_lack_them(version, asked):
    assert bool(Elasticsearch(version).whole_source) == asked
    assert Dialect(version).whole_source == {}


@pytest.mark.parametrize(
    ("dialect", "sent"),
    [
        (Dialect((3, 6)), [[1, 0], [-128, 2]]),
        (Dialect(None), [[1, 0], [-128, 2]]),
        (Dialect((3, 8)), ["AQA=", "gAI="]),
        (Elasticsearch((9, 3)), [[1, 0], [-128, 2]]),
        (Elasticsearch(None), [[1, 0], [-128, 2]]),
        (Elasticsearch((9, 4)), ["AQA=", "gAI="]),
    ],
)
def test_vectors_are_sent_as_the_version_takes_them(dialect, sent):
    vectors = np.array([[1, 0], [-128, 2]], np.int8)
    packed = dialect.packed_vectors(vectors)
    assert json.loads(orjson.dumps(packed, option=orjson.OPT_SERIALIZE_NUMPY)) == sent
    for stored in (packed, vectors.tolist()):  # a server may give back either
        assert (dialect.unpacked_vectors(stored, Layout()) == vectors).all()
    with pytest.raises(ValueError):  # noqa: PT011
        dialect.unpacked_vectors(["AQA=", "*"], Layout())


@pytest.mark.parametrize(
    ("dialect", "sent"), [(Dialect((3, 8)), "AACAPw=="), (Elasticsearch((9, 4)), "P4AAAA==")]
)
def test_floats_have_the_order_of_bytes_that_the_server_wants(dialect, sent):
    vectors = np.array([[1.0]], np.float32)
    assert dialect.packed_vectors(vectors) == [sent]
    assert (dialect.unpacked_vectors([sent], Layout(vector_type="float")) == vectors).all()


def test_bm25_counts_the_same_where_it_is_not_lucenes():
    body = lexical_query("cancel it", filters=[Filter("year", ">", "2000")])
    assert Dialect((3, 0)).adapt(body) == Dialect().adapt(body) == body
    (match,) = Dialect((2, 19)).adapt(body)["query"]["bool"]["must"]
    assert match == {
        "match": {"text": {"query": "cancel it", "boost": BM25_BOOST["elasticsearch"]}}
    }
    assert (
        Dialect((2, 19)).adapt(body)["query"]["bool"]["filter"] == (body["query"]["bool"]["filter"])
    )

"""What the rest of the suite relies on: that real nodes do what OpenSearch's documents say."""

from __future__ import annotations

import math

import pytest
from opensearchpy import OpenSearch

from .java import ClusterError
from .launcher import start_cluster
from .opensearch import OPENSEARCH

# The angle of each span's vector to the query [1, 0], in degrees of a circle.
ANGLES = {"near": [0, 90], "middle": [45, 120], "far": [180, 100]}
VECTOR = {
    "type": "knn_vector",
    "dimension": 2,
    "method": {"name": "hnsw", "engine": "lucene", "space_type": "cosinesimil"},
}
MAPPING = {
    "properties": {
        "text": {"type": "text"},
        "spans": {"type": "nested", "properties": {"vector": VECTOR}},
    }
}


def degree(angle: float) -> float:
    return (1 + math.cos(math.radians(angle))) / 2


def vector(angle: float) -> list[float]:
    return [math.cos(math.radians(angle)), math.sin(math.radians(angle))]


@pytest.fixture(scope="module")
def client(cluster):
    with OpenSearch(cluster.urls) as client:
        yield client


@pytest.fixture(scope="module")
def toy(client):
    settings = {"index.knn": True, "number_of_shards": 1, "number_of_replicas": 0}
    client.indices.create(index="toy", body={"settings": settings, "mappings": MAPPING})
    for name, angles in ANGLES.items():
        spans = [{"vector": vector(angle)} for angle in angles]
        client.index(index="toy", id=name, body={"text": f"a {name} text", "spans": spans})
    client.indices.refresh(index="toy")
    yield "toy"
    client.indices.delete(index="toy")


def search(client, index: str, query: dict, **inner: object) -> dict[str, dict[int, float]]:
    """Return the degree of each span of each document that a nested query finds."""
    nested = {"path": "spans", "query": query, "score_mode": "max"}
    body = {"query": {"nested": {**nested, "inner_hits": {"_source": False, **inner}}}, "size": 9}
    return {
        hit["_id"]: {
            span["_nested"]["offset"]: span["_score"]
            for span in hit["inner_hits"]["spans"]["hits"]["hits"]
        }
        for hit in client.search(index=index, body=body)["hits"]["hits"]
    }


def test_one_node_has_the_plugin(client):
    assert client.info()["version"]["number"] == OPENSEARCH.version
    plugins = client.cat.plugins(format="json")
    assert [plugin["component"] for plugin in plugins] == ["opensearch-knn"]
    assert client.cluster.health()["number_of_nodes"] == 1


def test_nested_knn_gives_each_passage_its_best_degree(client, toy):
    found = search(client, toy, {"knn": {"spans.vector": {"vector": [1, 0], "k": 3}}})
    assert found == {
        "near": {0: pytest.approx(degree(0))},
        "middle": {0: pytest.approx(degree(45))},
        "far": {1: pytest.approx(degree(100))},
    }
    assert list(found) == ["near", "middle", "far"]


def test_radial_knn_gives_every_span_that_reaches_a_degree(client, toy):
    floor = degree(95)
    found = search(client, toy, {"knn": {"spans.vector": {"vector": [1, 0], "min_score": floor}}})
    assert found == {
        "near": {0: pytest.approx(degree(0)), 1: pytest.approx(degree(90))},
        "middle": {0: pytest.approx(degree(45))},
    }


def test_a_script_scores_exactly(client, toy):
    parameters = {"field": "spans.vector", "query_value": [1, 0], "space_type": "cosinesimil"}
    script = {"lang": "knn", "source": "knn_score", "params": parameters}
    found = search(client, toy, {"script_score": {"query": {"match_all": {}}, "script": script}})
    assert found == {
        name: {at: pytest.approx(degree(angle), abs=1e-6) for at, angle in enumerate(angles)}
        for name, angles in ANGLES.items()
    }


def test_a_script_saturates_a_score(client, toy):
    match = {"match": {"text": "near"}}
    plain = client.search(index=toy, body={"query": match})["hits"]["max_score"]
    script = {"source": "saturation(_score, params.k)", "params": {"k": 2.0}}
    scored = {"query": {"script_score": {"query": match, "script": script}}}
    assert client.search(index=toy, body=scored)["hits"]["max_score"] == pytest.approx(
        plain / (plain + 2)
    )


def test_a_killed_node_loses_nothing(three_nodes):
    with OpenSearch(three_nodes.urls) as client:
        assert client.cluster.health()["number_of_nodes"] == 3
        shards = {"index.knn": True, "number_of_shards": 3, "number_of_replicas": 1}
        client.indices.create(index="kept", body={"settings": shards, "mappings": MAPPING})
        settle(client, nodes=3, status="green")
        for number in range(60):
            span = {"vector": vector(number)}
            client.index(index="kept", id=str(number), body={"spans": [span]})
    killed, left = three_nodes.nodes[0], three_nodes.nodes[1:]
    killed.kill()
    assert three_nodes.url == left[0].url
    with OpenSearch([node.url for node in left]) as client:
        settle(client, nodes=2, status="yellow")
        client.indices.refresh(index="kept")
        query = {"knn": {"spans.vector": {"vector": [1, 0], "k": 60}}}
        nested = {"query": {"nested": {"path": "spans", "query": query}}, "size": 100}
        answer = client.search(index="kept", body=nested)
        assert answer["_shards"]["failed"] == 0
        assert {hit["_id"] for hit in answer["hits"]["hits"]} == {str(n) for n in range(60)}
        killed.start()
        settle(client, nodes=3, status="green")


def settle(client, nodes: int, status: str) -> None:
    """Wait for a state of the cluster; the client's own `timeout` is not the server's."""
    wait = {"wait_for_nodes": nodes, "wait_for_status": status, "timeout": "60s"}
    assert not client.cluster.health(params={**wait, "request_timeout": 90})["timed_out"]


def test_a_paused_node_is_resumed(three_nodes):
    node = three_nodes.nodes[1]
    node.pause()
    assert not node.alive
    node.resume()
    node.wait(3)


def test_a_port_that_is_taken(cluster):
    port = int(cluster.url.rpartition(":")[2])
    with pytest.raises(ClusterError, match=rf"^Port {port} is taken"):
        start_cluster(port=port)

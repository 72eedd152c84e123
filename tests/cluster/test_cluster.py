"""What the rest of the suite relies on: nodes with their plugin, killed, paused and started."""

from __future__ import annotations

import math

import pytest
from opensearchpy import OpenSearch

from .java import ClusterError
from .launcher import start_cluster
from .opensearch import OPENSEARCH

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


def test_one_node_has_the_plugins(client):
    assert client.info()["version"]["number"] == OPENSEARCH.version
    plugins = client.cat.plugins(format="json")
    names = {plugin["component"] for plugin in plugins}
    assert names == {"opensearch-knn", "opensearch-neural-search"}
    assert client.cluster.health()["number_of_nodes"] == 1


def test_a_killed_node_loses_nothing(three_nodes):
    with OpenSearch(three_nodes.urls) as client:
        assert client.cluster.health()["number_of_nodes"] == 3
        shards = {"index.knn": True, "number_of_shards": 3, "number_of_replicas": 1}
        client.indices.create(index="kept", body={"settings": shards, "mappings": MAPPING})
        settle(client, nodes=3, status="green")
        for number in range(60):
            span = {"vector": [math.cos(number), math.sin(number)]}
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

"""Three nodes of Elasticsearch and a fault, as of OpenSearch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from . import test_faults
from .elasticsearch import ELASTICSEARCH
from .launcher import Cluster, start_cluster


@pytest.fixture
def three() -> Iterator[Cluster]:
    with start_cluster(3, server=ELASTICSEARCH) as nodes:
        yield nodes


def test_a_node_of_three_is_killed_while_loading_and_searching(three, monkeypatch):
    def leader(client, cluster):
        rows = client.transport.perform_request("GET", "/_cat/master", params={"format": "json"})
        name = rows[0]["node"]
        return next(node for node in cluster.nodes if node.name == name)

    monkeypatch.setattr(test_faults, "leader", leader)
    test_faults.test_a_node_killed_while_loading_and_searching(three, monkeypatch)

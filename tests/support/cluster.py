"""Fixtures of real clusters; without Java or Maven they fail, and say so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cluster.elasticsearch import ELASTICSEARCH
from cluster.java import ClusterError
from cluster.launcher import Cluster, start_cluster
from cluster.opensearch import OPENSEARCH
from cluster.server import Server


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """One node for the whole session: make an index of your own in it, and remove it."""
    with _started(1) as one:
        yield one


@pytest.fixture(scope="session")
def elasticsearch() -> Iterator[Cluster]:
    """The same of Elasticsearch, the newest."""
    with _started(1, ELASTICSEARCH) as one:
        yield one


@pytest.fixture(scope="module")
def three_nodes() -> Iterator[Cluster]:
    """Three nodes for a module, whose tests may kill and pause them."""
    with _started(3) as three:
        yield three


def _started(nodes: int, server: Server = OPENSEARCH) -> Cluster:
    try:
        return start_cluster(nodes, server=server)
    except ClusterError as error:
        reason = str(error)
    return pytest.fail(reason, pytrace=False)

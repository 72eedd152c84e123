"""Real clusters, and which process has them; without Java or Maven they fail, and say so."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from opensearchpy import OpenSearch
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from cluster.elasticsearch import ELASTICSEARCH
from cluster.java import ClusterError
from cluster.launcher import Cluster, start_cluster
from cluster.opensearch import OPENSEARCH
from cluster.server import Server

THREE = pytest.StashKey[Cluster]()
TOGETHER = {
    "tests/cluster/test_cluster.py": "three nodes",
    "tests/cluster/test_faults.py": "three nodes",
    "tests/cluster/test_source.py": "three nodes",
    "tests/cluster/test_every_fault.py": "three nodes",
    "tests/cluster/test_elasticsearch_nodes.py": "three nodes of Elasticsearch",
}
"""Modules whose nodes no test names: one process runs those of the same, one after the other."""


class ByServer(LoadFileScheduling):
    """One process runs what needs a server, so that each server is started once; else a module."""

    def _split_scope(self, nodeid: str) -> str:
        module, _, name = nodeid.partition("::")
        if "[older" in name:
            return "an older Elasticsearch"
        if module in TOGETHER:
            return TOGETHER[module]
        if "elasticsearch" in name:
            return "elasticsearch"
        if "opensearch" in name or module.startswith("tests/cluster/"):
            return "opensearch"
        return module


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByServer:
    return ByServer(config, log)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of a module on its SERVERS, or a test on those that its marker names."""
    servers = getattr(metafunc.module, "SERVERS", ())
    if marker := metafunc.definition.get_closest_marker("servers"):
        servers = marker.args
    if servers and "cluster" in metafunc.fixturenames:
        metafunc.parametrize("cluster", servers, indirect=True, scope="session")


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """One node for the whole session: make an index of your own in it, and remove it."""
    node: Cluster = request.getfixturevalue(getattr(request, "param", "opensearch"))
    return node


@pytest.fixture(scope="module")
def client(cluster: Cluster) -> Iterator[OpenSearch]:
    """A client of the node."""
    with OpenSearch(cluster.urls, timeout=60) as client:
        yield client


@pytest.fixture
def name(client: OpenSearch) -> Iterator[str]:
    """The name of an index of the test's own; what begins with it is gone at the end."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    yield name
    client.indices.delete(index=f"{name}*", params={"expand_wildcards": "all"})


@pytest.fixture(scope="session")
def opensearch() -> Iterator[Cluster]:
    """A node of OpenSearch."""
    with _started(1) as one:
        yield one


@pytest.fixture(scope="session")
def elasticsearch() -> Iterator[Cluster]:
    """A node of Elasticsearch, the newest."""
    with _started(1, ELASTICSEARCH) as one:
        yield one


@pytest.fixture(scope="session")
def three_nodes(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """Three nodes, which tests may kill and pause; all that do run in one process, one by one."""
    with _started(3) as three:
        pytestconfig.stash[THREE] = three
        yield three


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Stop the three nodes when their tests are over: idle ones take time from the others."""
    three = item.config.stash.get(THREE, None)
    following = nextitem.nodeid.partition("::")[0] if nextitem else ""
    if three and TOGETHER.get(following) != "three nodes":
        three.stop()


def _started(nodes: int, server: Server = OPENSEARCH) -> Cluster:
    try:
        return start_cluster(nodes, server=server)
    except ClusterError as error:
        reason = str(error)
    return pytest.fail(reason, pytrace=False)

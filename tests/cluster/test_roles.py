"""The roles in docker/ grant what slice-os asks of a cluster, read off a node's own log."""

from __future__ import annotations

import json
import re
import time
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from opensearchpy import OpenSearch

from support.faults import emptied
from support.verbs import TEXTS, run

DOCKER = Path(__file__).parents[2] / "docker"
NAME = "calls"
SERVERS = ("opensearch", "elasticsearch")
PRIVILEGES = {
    "cluster": {
        "monitor": ["cluster:monitor/*"],
        "manage_index_templates": ["indices:admin/template/*", "indices:admin/index_template/*"],
    },
    "index": {
        "read": ["indices:data/read/*"],
        "write": ["indices:data/write/*", "indices:admin/mapping/auto_put"],
        "monitor": ["indices:monitor/*"],
        "maintenance": [
            "indices:admin/refresh*",
            "indices:admin/flush*",
            "indices:admin/forcemerge*",
        ],
        "manage": ["indices:monitor/*", "indices:admin/*"],
        "view_index_metadata": [
            *("indices:admin/aliases/get", "indices:admin/get", "indices:admin/mappings/get"),
            *("indices:admin/resolve/*", "indices:monitor/settings/get"),
        ],
    },
}
"""The actions of Elasticsearch's named privileges, as far as they are needed here."""
REGISTERED = re.compile(r"register \d+ \[[^\]]*\] \[([^ ]+)\] \[")
NOT_OURS = (
    "cluster:admin/settings/update",
    "internal:",
    "indices:admin/seq_no/",
    "retention_lease",
)
"""What the test itself asks for, and what nodes do among themselves, which no role is asked for
(nor for what has no colon in its name)."""


@pytest.fixture
def client(cluster):
    with OpenSearch(cluster.urls) as client, emptied(client, NAME):
        yield client


def patterns(role, server):
    """Return the actions that a role grants."""
    if server == "opensearch":
        said = json.loads((DOCKER / f"role-{role}.json").read_text())
        (index,) = said["index_permissions"]
        assert index["index_patterns"] == [NAME, f"{NAME}-0*"]
        return [*said["cluster_permissions"], *index["allowed_actions"]]
    said = json.loads((DOCKER / f"role-{role}-elasticsearch.json").read_text())
    (index,) = said["indices"]
    assert index["names"] == [NAME, f"{NAME}-0*"]
    named = [PRIVILEGES["cluster"][one] for one in said["cluster"]]
    named += [PRIVILEGES["index"][one] for one in index["privileges"]]
    return [pattern for some in named for pattern in some]


def refused(actions, role, server):
    """Return the actions that a role does not grant."""
    granted = patterns(role, server)
    # Parts of an action (on a shard, say) carry its name and go with it.
    return {
        action
        for action in actions
        if not any(fnmatchcase(re.sub(r"\[.*", "", action), one) for one in granted)
    }


def asked(cluster, client, work):
    """Return the actions that a node is asked for while something works."""
    log = cluster.nodes[0].log
    logger = f"logger.org.{cluster.server.name}.tasks.TaskManager"
    client.cluster.put_settings(body={"persistent": {logger: "TRACE"}})
    before = log.stat().st_size
    try:
        work()
    finally:
        client.cluster.put_settings(body={"persistent": {logger: None}})
    time.sleep(0.5)
    found = set(REGISTERED.findall(log.read_bytes()[before:].decode()))
    return {one for one in found if ":" in one and not one.startswith(NOT_OURS)}


def test_the_roles_grant_what_is_asked_for(cluster, client, tmp_path):
    place = f"{cluster.url}/{NAME}"
    file = tmp_path / "corpus.jsonl"
    rows = [{"id": f"d{n}", "text": text} for n, text in enumerate(TEXTS * 4)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def write():
        run("templates", "apply", "--index", place)
        run("index", file, "--id-global", "--index", place, "--replicas", 0)
        run("index", file, "--id-global", "--index", place, "--replicas", 1, "--prune")
        run("delete", "d1", "--index", place)
        run("doctor", "--index", place, "--repair")
        run("reindex", "--index", place, "--tolerance", 0.8, "--dry-run")
        run("reindex", "--index", place, "--tolerance", 0.8, "--no-swap")
        run("swap", "--index", place)
        run("rollback", "--index", place)
        run("generations", "prune", "--index", place, "--keep", 0)

    def read():
        run("search", TEXTS[0], "--index", place)
        run("search", TEXTS[0], "--index", place, "--fusion", "rrf")
        run("mine", "--phrase", TEXTS[0], "--index", place)
        run("status", "--index", place)
        run("doctor", "--index", place)

    written, found = asked(cluster, client, write), asked(cluster, client, read)
    client.indices.delete_index_template(name=NAME)
    assert "indices:data/write/bulk" in written
    assert "indices:data/read/msearch" in found
    server = cluster.server.name
    assert refused(written, "index", server) == set()
    assert refused(found, "search", server) == set()

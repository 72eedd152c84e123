"""docs/clients.md: every block of it, as a reader would run it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from opensearchpy import OpenSearch

import slice_os
from support.faults import emptied, make_like
from support.verbs import TEXTS

TEXT = (Path(__file__).parents[2] / "docs" / "clients.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(sh|python)\n(.*?)```", TEXT, re.DOTALL)
NAME = "conversations"


@pytest.fixture(scope="module")
def url(cluster):
    documents = [
        slice_os.Document(f"d{n}", text, metadata={"year": 2014 + n, "status": "open"})
        for n, text in enumerate(TEXTS)
    ]
    fields = {"year": "integer", "status": "keyword"}
    settings = slice_os.ClusterSettings(replicas=0, fields=fields)
    with OpenSearch(cluster.urls) as client, emptied(client, NAME):
        slice_os.index(documents, f"{cluster.url}/{NAME}", cluster=settings)
        make_like(client, f"{NAME}-copy", f"{NAME}-000001")
        yield cluster.url
        client.indices.delete(index=f"{NAME}-copy")


def test_the_document_has_blocks_of_both_kinds():
    kinds = [kind for kind, _ in BLOCKS]
    assert kinds.count("sh") >= 6
    assert kinds.count("python") == 2


@pytest.mark.parametrize(("kind", "code"), BLOCKS, ids=[str(n) for n in range(len(BLOCKS))])
def test_it_runs_and_finds(url, tmp_path, kind, code):
    code = code.replace("http://localhost:9200", url)
    if kind == "python":
        names: dict[str, object] = {}
        exec(code, names)
        assert names["hits"][0].document == "d0"
        if "facets" in code:
            assert names["counts"] == {"status": {"open": 1}, "year": {"2014": 1}}
        for name in ("encoder", "index", "client"):
            if name in names:
                names[name].close()  # type: ignore[attr-defined]
        return
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-ec", code], capture_output=True, cwd=tmp_path, env={**os.environ, "PATH": path}
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    if "_reindex" in code:
        assert (answer["created"], answer["failures"]) == (3, [])
        return
    assert answer["hits"]["hits"]
    assert len(done.stdout) < 10_000  # no vectors
    if "aggs" in code:
        assert [hit["_source"]["document"] for hit in answer["hits"]["hits"]] == ["d2", "d1"]
        assert answer["aggregations"]["mean"]["value"] == 2015.5
    elif "match_all" not in code:
        assert answer["hits"]["hits"][0]["_source"]["document"] == "d0"


def test_a_top_level_knn_finds_nothing_as_the_document_says(url):
    knn = {"knn": {"spans.vector": {"vector": [1] * 384, "k": 3}}}
    with OpenSearch(url) as client:
        found = client.search(index=NAME, body={"query": knn})
    assert found["hits"]["hits"] == []
    assert found["_shards"]["failed"] == 0

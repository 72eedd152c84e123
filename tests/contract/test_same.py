"""A cluster and an embedded index give the same answers for the same corpus."""

from __future__ import annotations

import uuid
from itertools import islice
from pathlib import Path

import pytest

import slice_os
from slice_os.storage.cluster.mining_scan import Scan

SERVERS = ("opensearch", "elasticsearch")
EXAMPLES = Path(__file__).parents[2] / "examples"
STORED = [{}, {"vector_type": "float", "tolerance": 0.8}, {"dimensions": 192, "tolerance": 0.8}]
QUERIES = [
    "the customer wants to cancel", "a refund for a late delivery", "change the seat of my flight",
    "my internet connection does not work", "thank you", "how much does it cost",
]  # fmt: skip


def conversations():
    """Every fourth one: graphs of all take minutes to build."""
    return islice(slice_os.read(EXAMPLES / "conversations"), 0, None, 4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Conversations in an embedded index."""
    location = tmp_path_factory.mktemp("same") / "same.slice"
    slice_os.index(conversations(), location)
    return location


@pytest.fixture(scope="module", params=STORED, ids=["bytes", "floats", "192 dimensions"])
def both(request, folder, cluster):
    """The same in a folder and in a cluster, whatever the cluster stores of the spans."""
    location = f"{cluster.url}/same-{uuid.uuid4().hex[:12]}"
    if request.param:
        slice_os.reindex(folder, to=location, cluster=request.param)
    else:
        slice_os.index(conversations(), location)
    with slice_os.open(folder) as local, slice_os.open(location) as remote:
        yield local, remote


@pytest.mark.parametrize(
    ("mode", "fusion", "tie"),
    [
        ("dense", "saturation", 0.003),
        ("hybrid", "saturation", 0.01),
        ("lexical", "saturation", 0.1),
        ("hybrid", "rrf", 0.002),
        ("hybrid", "min_max", 0.03),
    ],
)
def test_degrees_and_rankings_are_the_same(both, mode, fusion, tie):
    """`tie`: scores this close count as equal; `address.What` is one word to Lucene alone."""
    local, remote = both
    for query in QUERIES:
        ours = local.search(query, mode=mode, fusion=fusion, size=40, rescore=0)
        theirs = remote.search(query, mode=mode, fusion=fusion, size=10, rescore=0)
        known = {(hit.document, hit.passage): hit for hit in ours}
        assert len(theirs) == min(10, len(ours))
        for rank, hit in enumerate(theirs):
            own = known[hit.document, hit.passage]
            assert hit.degree == pytest.approx(own.degree, abs=0.005), (query, rank)
            assert own.score == pytest.approx(ours[rank].score, abs=tie), (query, rank)


@pytest.mark.parametrize("way", ["graph", "words"])
def test_mining_finds_the_same(both, way, monkeypatch):
    local, remote = both
    monkeypatch.setattr(Scan, "graph_pays", lambda self: way == "graph")
    phrases = ["wants to cancel", "thank you", "talk to a manager", "my order has not arrived"]
    for degree in (0.75, 0.85):
        ours, theirs = (
            {
                (m.phrase, m.document, m.passage, m.start, m.end): m.degree
                for m in index.mine(phrases, min_degree=degree)
            }
            for index in (local, remote)
        )
        missed = {key: value for key, value in ours.items() if key not in theirs}
        extra = {key: value for key, value in theirs.items() if key not in ours}
        assert all(value < degree + 0.001 for value in {**missed, **extra}.values())
        assert len(theirs) >= 3

"""Answers of a cluster that are damaged on their way: what is right is found, or one clear error.

`make fuzz` tries ten times as many.
"""

from __future__ import annotations

import json
import os
import random

import slice_os
from support import faults
from support.proxy import Proxy, proxied

CASES = int(os.environ.get("SLICE_OS_FUZZ", "1000")) // 10
VALUES = [None, True, 0, -1, 10**30, 1.5, "", "x", [], [[]], {}, {"a": {}}, "9" * 50]


def damaged(body, rng):
    """Return JSON in which something is another, is missing, or is broken off."""
    if rng.random() < 0.15:
        return body[: rng.randrange(len(body))]
    at = values = json.loads(body)
    parent = key = None
    for _ in range(rng.randrange(1, 9)):
        if not isinstance(at, dict | list) or not at:
            break
        parent, key = at, rng.choice([*at] if isinstance(at, dict) else range(len(at)))
        at = parent[key]
    if isinstance(parent, dict) and rng.random() < 0.4:
        del parent[key]
    elif parent is not None:
        parent[key] = rng.choice(VALUES)
    return json.dumps(values if rng.random() < 0.95 else rng.choice(VALUES)).encode()


def test_damaged_answers_are_one_clear_error_or_the_right_result(cluster, name, monkeypatch):
    rng, true, share = random.Random(5), Proxy.answer, [0.0]
    place, corpus = f"{cluster.url}/{name}", faults.documents()
    slice_os.index(corpus, place, cluster={"replicas": 0, "tolerance": 0.5})
    with slice_os.open(place) as index:
        passages = len(list(index.passages()))

    def answer(self, request):
        status, kind, body = true(self, request)
        if body[:1] in (b"{", b"[") and rng.random() < share[0]:
            body = damaged(body, rng)
        return status, kind, body

    monkeypatch.setattr(Proxy, "answer", answer)

    def search(index, **options):
        for hit in index.search("cancel my subscription", **options):
            assert 0 <= hit.degree <= 1
            assert isinstance(hit.text, str)

    def mine(index, **options):
        for match in index.mine("cancel my subscription", min_degree=0.7, **options):
            assert 0.7 <= match.degree <= 1

    def passed(index):
        assert len(list(index.passages())) == passages

    def status(index):
        assert isinstance(index.status().documents + index.status().words, int)

    def indexed(index):
        report = slice_os.index(corpus, index.location)
        assert report.documents + report.unchanged == len(corpus)

    works = [
        search,
        lambda index: search(index, mode="lexical", filters=["v=0"]),
        lambda index: search(index, fusion="rrf"),
        mine,
        passed,
        status,
        indexed,
        lambda index: index.list(size=5),
        lambda index: index.get("d3"),
        lambda index: slice_os.generations(index.location),
        lambda index: slice_os.check(index.location, sample=3),
        lambda index: slice_os.doctor(index.location),
        lambda index: list(slice_os.read_index(index.location)),
    ]
    said = []
    with proxied(cluster.url, lambda headers: None) as proxy:
        for number in range(CASES):
            share[0] = 0.0 if rng.random() < 0.8 else 0.3
            try:
                with slice_os.open(f"{proxy.url}/{name}") as index:
                    share[0] = rng.choice([0.05, 0.3, 1.0])
                    works[number % len(works)](index)
            except slice_os.SliceOSError as exc:
                said.append(str(exc))
    assert all(map(faults.is_clear, said))
    assert len(said) > CASES / 10
    slice_os.index(corpus, place)
    with slice_os.open(place) as index:
        assert len(list(index.passages())) == passages
    assert slice_os.check(place, sample=None).healthy

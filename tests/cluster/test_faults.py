"""Three nodes and a fault: all is there once, answers are right or errors clear.

The node that is killed holds a third of what is loaded, with no copy, and leads the cluster.
SLICE_OS_KILLS sets how often the client is killed (default 2; 30 were run before the release).
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest
from opensearchpy import OpenSearch

import slice_os
from slice_os.storage.cluster import client as client_module
from slice_os.storage.cluster.cluster_errors import with_retries
from support import faults

from .elasticsearch import ELASTICSEARCH
from .launcher import start_cluster
from .opensearch import OPENSEARCH

KILLS = int(os.environ.get("SLICE_OS_KILLS", "2"))
WORDS = ("--passage-words", str(faults.PASSAGE_WORDS), "--tolerance", "0.5")
SHARDS = ("--shards", "3", "--replicas", "1")
SPREAD = slice_os.ClusterSettings(tolerance=0.5, shards=3, replicas=1)
QUERIES = ["cancel my subscription", "tired of sitting", "the end of an agreement"]


def place_of(cluster, name: str) -> str:
    """A place that names every node: any may be killed."""
    return f"http://{','.join(url.removeprefix('http://') for url in cluster.urls)}/{name}"


class Searches:
    """Searches again and again in a thread; keeps what came that was neither right nor clear."""

    def __init__(self, place: str) -> None:
        self._index = slice_os.open(place)
        self._expected = [self._ask(query) for query in QUERIES]
        self._stop = threading.Event()
        self.right = 0
        self.refused: list[str] = []
        self.wrong: list[object] = []
        self._thread = threading.Thread(target=self._run)

    def _ask(self, query: str) -> list[tuple[str, int, float]]:
        hits = self._index.search(query, size=5)
        return [(hit.document, hit.passage, round(hit.degree, 4)) for hit in hits]

    def _run(self) -> None:
        while not self._stop.is_set():
            for query, expected in zip(QUERIES, self._expected, strict=True):
                self._stop.wait(0.2)  # the loading needs the processor too
                try:
                    found = self._ask(query)
                except slice_os.SliceOSError as exc:
                    self.refused.append(str(exc))
                except Exception as exc:
                    self.wrong.append(exc)
                else:
                    self.right += found == expected
                    self.wrong += [] if found == expected else [(query, found, expected)]

    def __enter__(self) -> Searches:
        assert all(self._expected)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._index.close()


def leader(client: OpenSearch, cluster):
    """The node that leads the cluster."""
    name = client.cat.cluster_manager(format="json")[0]["node"]
    return next(node for node in cluster.nodes if node.name == name)


def refuses(index: slice_os.Index) -> None:
    """Every way to search says that shards are away: OpenSearch would answer with what is left."""
    for ask in (
        lambda: index.search("cancel", mode="lexical", size=100),
        lambda: index.search("cancel my subscription"),
        lambda: index.search("cancel my subscription", fusion="rrf"),
        lambda: list(index.mine("cancel my subscription")),
    ):
        with pytest.raises(slice_os.SliceOSError, match=r"[12] of 3 shards of .* health"):
            ask()


def soon_given_up(work, url, timeout, *rest):
    return with_retries(work, url, min(timeout, 1.0), *rest)


def test_a_node_killed_while_loading_and_searching(three_nodes, monkeypatch):
    monkeypatch.setenv("SLICE_OS_TIMEOUT", "15")
    # What is away stays away as long as the test asks.
    monkeypatch.setattr(client_module, "with_retries", soon_given_up)
    found, bare, filled = (place_of(three_nodes, name) for name in ("found", "bare", "filled"))
    documents = faults.documents(large=120)
    corpus = faults.write(Path("corpus.jsonl"), documents)
    with (
        OpenSearch(three_nodes.urls, max_retries=3) as client,
        faults.emptied(client, "found", "bare", "filled"),
    ):
        for place, settings in ((found, SPREAD), (bare, {**SPREAD, "replicas": 0})):
            slice_os.index(
                faults.documents(), place, cluster=settings, passage_words=faults.PASSAGE_WORDS
            )
        faults.green(client, "found")
        node = leader(client, three_nodes)
        with Searches(found) as searches, slice_os.open(bare) as uncopied:
            whole = uncopied.search("cancel", mode="lexical", size=100)
            run = faults.Run(corpus, filled, *WORDS, *SHARDS)
            assert faults.wait_for(client, "filled", 20)
            node.kill()
            assert run.process.poll() is None  # it was in the middle
            time.sleep(2)
            refuses(uncopied)
            node.start()
            faults.green(client, "bare")
            assert uncopied.search("cancel", mode="lexical", size=100) == whole
            code, _, err = run.end()
            faults.green(client, "found")
            before = searches.right
            end = time.monotonic() + 10
            while searches.right == before and time.monotonic() < end:
                time.sleep(0.1)
        assert searches.wrong == []
        assert searches.right > before
        assert all(map(faults.is_clear, searches.refused)), searches.refused
        assert code == 0 or (code == 1 and faults.is_clear(err)), err
        faults.rerun(corpus, filled, *WORDS, *SHARDS)
        faults.green(client, "filled")
        there = faults.held(client, "filled").values()
        assert faults.passages(there) == faults.expected(documents)
        assert faults.settings(client, "filled") == (None, 1, None)
        report = faults.rerun(corpus, filled, *WORDS, *SHARDS)
        assert report["unchanged"] == len(documents)


def test_a_client_killed_at_random_moments(three_nodes):
    place = place_of(three_nodes, "killed")
    rng = random.Random(11)
    lasted: list[float] = []

    def complete(version: int, where: str = place) -> dict[str, object]:
        corpus = faults.write(Path("corpus.jsonl"), faults.documents(version))
        started = time.monotonic()
        report = faults.rerun(corpus, where, *WORDS, *SHARDS, "--prune-all")
        lasted.append(time.monotonic() - started)
        return report

    with (
        OpenSearch(three_nodes.urls) as client,
        faults.emptied(client, "killed", "killed-clean"),
    ):
        for version in range(2):  # the first takes longer: the nodes are cold
            complete(version, f"{place}-clean")
        killed = 0
        for version in range(KILLS):
            corpus = faults.write(Path("corpus.jsonl"), faults.documents(version))
            run = faults.Run(corpus, place, *WORDS, *SHARDS, "--prune-all")
            if version:
                time.sleep(rng.uniform(0.3, 1) * min(lasted))
            else:
                assert faults.wait_for(client, "killed", 1)
            run.process.send_signal(signal.SIGKILL)
            run.end()
            killed += run.process.returncode == -signal.SIGKILL
            if not version:  # what the next run is to put back
                noted = {"refresh_interval": None, "number_of_replicas": 1}
                assert faults.settings(client, "killed") == ("-1", 0, noted)
            if version % 2:  # every other one is met half done by the next version
                report = complete(version)
                documents = faults.documents(version)
                assert report["documents"] + report["unchanged"] == len(documents)
                found = faults.held(client, "killed").values()
                assert faults.passages(found) == faults.expected(documents)
                assert faults.settings(client, "killed") == (None, 1, None)
        assert killed >= KILLS // 2
        complete(KILLS)
        complete(KILLS, f"{place}-clean")
        documents = faults.documents(KILLS)
        faults.same(client, "killed", documents)
        assert faults.settings(client, "killed") == (None, 1, None)
        before = faults.written(client, "killed")
        again = complete(KILLS)
        assert (again["unchanged"], again["documents"], again["encoded_words"]) == (
            len(documents), 0, 0,
        )  # fmt: skip
        assert faults.written(client, "killed") == before


@pytest.mark.parametrize("server", [OPENSEARCH, ELASTICSEARCH], ids=lambda one: one.name)
def test_a_storm_of_refusals(server):
    """One thread writes and one operation waits on each node: what comes beside gets 429."""
    small = {"thread_pool.write.size": 1, "thread_pool.write.queue_size": 1}
    every: list[slice_os.Document] = []
    failed: list[Exception] = []

    def load(some: list[slice_os.Document]) -> None:
        try:
            slice_os.index(some, place, cluster=settings, passage_words=faults.PASSAGE_WORDS)
        except Exception as exc:
            failed.append(exc)

    def rejected() -> int:
        stats = client.nodes.stats(metric="thread_pool")["nodes"].values()
        return sum(node["thread_pool"]["write"]["rejected"] for node in stats)

    settings = {**SPREAD, "replicas": int(server is OPENSEARCH)}
    nodes = 2 if server is OPENSEARCH else 1
    with (
        start_cluster(nodes, settings=small, server=server) as cluster,
        OpenSearch(cluster.urls) as client,
    ):
        place = place_of(cluster, "storm")
        for _ in range(8):  # until requests have met: loads may happen to take turns
            done = len(every)
            every = faults.documents(count=done + 12, large=20)
            loaders = [
                threading.Thread(target=load, args=(every[done + n :: 3],)) for n in range(3)
            ]
            for loader in loaders:
                loader.start()
            for loader in loaders:
                loader.join()
            assert failed == []
            if rejected():
                break
        assert rejected() > 0
        found = faults.held(client, "storm").values()
        assert faults.passages(found) == faults.expected(every)
        assert faults.settings(client, "storm") == (None, settings["replicas"], None)

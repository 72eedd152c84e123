"""Every verb that changes an index, and every fault, while others read and write.

Afterwards every document that was acknowledged is there exactly once, every passage fits its
vectors, no answer was of two generations, and the same command completes what was broken off.

SLICE_OS_KILLS sets how often each verb is killed; it meets each other fault a tenth as often. By
default every verb and every fault is there, not each with each.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from opensearchpy import OpenSearch

import slice_os
from slice_os.errors import IndexLockedError
from support import faults
from support.proxy import proxied

KILLS = int(os.environ.get("SLICE_OS_KILLS", "0"))
VERBS = ("index", "reindex", "swap", "rollback")
IN_A_FOLDER = ("kill", "full")
IN_A_CLUSTER = (*IN_A_FOLDER, "cut", "drop", "delay", "truncate", "storm", "node")
SLICE_OS = str(Path(sys.executable).with_name("slice-os"))
SETTINGS = slice_os.ClusterSettings(tolerance=0.5, shards=2, replicas=1)
WORKED = range(12)
"""Documents that are written again and again."""
EVERY = {"cut": 10, "drop": 10, "delay": 4, "truncate": 10}
"""Of how many answers one is disturbed, by the proxy that does so."""
MOVED = ("what is done is kept", "no longer names")
TOLD = {"reindex": MOVED, "swap": MOVED, "rollback": MOVED, "full": ("free disk",)}
"""What who writes meanwhile is told of it."""
TOO_MANY = (429, "application/json", b'{"error":{"type":"rejected","reason":"busy"},"status":429}')


SHORT = {
    IN_A_FOLDER: [("index", "full"), ("swap", "kill"), ("rollback", "kill")],
    IN_A_CLUSTER: [("reindex", "delay+cut+drop+truncate"), ("index", "storm+node")],
}


def pairs(troubles, kills=KILLS):
    """Return which verb meets which fault, in order."""
    if not kills:
        return SHORT[troubles]
    often = {one: kills if one == "kill" else -(-kills // 10) for one in troubles}
    found = [(verb, one) for verb in VERBS for one in troubles for _ in range(often[one])]
    random.Random(4).shuffle(found)
    return found


class Writer(threading.Thread):
    """Adds, changes and deletes documents; knows what was acknowledged, and when."""

    def __init__(self, place):
        super().__init__()
        self.tried = {n: [(0.0, 0.0, None)] for n in WORKED}
        """By document: when it was begun and acknowledged (None: never), and which version."""
        self.wrong, self.refused, self.stop = [], [], threading.Event()
        self._index, self._rng, self._version = slice_os.open(place), random.Random(5), 0

    def run(self):
        while not self.stop.wait(0.2):
            number, began = self._rng.choice(WORKED), time.monotonic()
            self._version += 1
            version = self._version if self._rng.random() < 0.8 else None
            acknowledged = None
            try:
                if version is None:
                    self._index.delete([f"w{number}"])
                else:
                    text = f"My subscription {number} has the version {version}. " * 3
                    metadata = {"a": "is stored", "b": "is stored"}
                    self._index.add([slice_os.Document(f"w{number}", text, metadata=metadata)])
                acknowledged = time.monotonic()
            except slice_os.SliceOSError as exc:
                if not isinstance(exc, IndexLockedError):
                    self.refused.append(str(exc))
            except Exception as exc:
                self.wrong.append(exc)
            self.tried[number].append((began, acknowledged, version))
        self._index.close()

    def check(self, index, lost):
        """Every document is as it was acknowledged last, or as it was to be made since.

        What was acknowledged in the time `lost` need not be there: that is what going back means.
        """
        for number, tried in self.tried.items():
            kept = [
                at for at, (_, end, _) in enumerate(tried)
                if end is not None and not (lost and lost[0] <= end <= lost[1])
            ]  # fmt: skip
            document = index.get(f"w{number}")
            found = None if document is None else int(document.text.split()[6].strip("."))
            assert found in {version for _, _, version in tried[kept[-1] :]}, (number, tried[-5:])


class Reader(threading.Thread):
    """Searches again and again: what is found is of one generation, as all store other metadata."""

    def __init__(self, place):
        super().__init__()
        self.wrong, self.refused, self.right, self.stop = [], [], 0, threading.Event()
        self._index = slice_os.open(place)

    def run(self):
        while not self.stop.wait(0.1):
            try:
                hits = self._index.search("cancel my subscription", size=10)
            except slice_os.SliceOSError as exc:
                self.refused.append(str(exc))
            except Exception as exc:
                self.wrong.append(exc)
            else:
                kinds = {frozenset({"a", "b"} & set(hit.metadata)) for hit in hits}
                self.right += 1
                if len(hits) != 10 or len(kinds) != 1:
                    self.wrong.append((len(hits), kinds))
        self._index.close()


class Scene:
    """An index, those that use it, and the verbs that are disturbed."""

    def __init__(self, place, folder, nodes=None):
        self.place, self.nodes, self._folder = place, nodes, folder
        self._rng, self._version, self._stored = random.Random(6), 0, 0
        self._lasted = {}
        self._corpus = []
        self._index_anew()
        cluster = SETTINGS if nodes else None
        slice_os.index(self._corpus, place, cluster=cluster, passage_words=faults.PASSAGE_WORDS)

    def _index_anew(self):
        self._version += 1
        self._corpus = [
            slice_os.Document(one.id, one.text, metadata={"a": "is stored", "b": "is stored"})
            for one in faults.documents(self._version)
        ]
        rows = [slice_os.Document(one.id, one.text, "", one.metadata) for one in self._corpus]
        return str(faults.write(self._folder / "corpus.jsonl", rows))

    def _child(self, place, *arguments):
        return subprocess.Popen(
            [SLICE_OS, *arguments, "--index", place],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "SLICE_OS_TIMEOUT": "60" if place == self.place else "3"},
        )

    def _complete(self, *arguments, ended="nothing"):
        """Run undisturbed, again while somebody else is writing to the folder."""
        for _ in range(100):
            child = self._child(self.place, *arguments)
            _, err = child.communicate(timeout=400)
            if "Another process is writing" not in err:
                break
        assert child.returncode == 0 or ended in err, (arguments, err)

    def _live(self):
        return next(one.number for one in slice_os.generations(self.place) if one.state == "live")

    def round(self, verb, fault):
        """Let a verb meet a fault, complete it, and look at everything."""
        writer, reader = Writer(self.place), Reader(self.place)
        self._stored = 1 - self._stored
        how = ["--store", "ab"[self._stored], "--least-overlap", "0.1"]
        how += self._rng.choice([[], ["--from", "text"]])
        lost, former = None, self._live()
        with running(writer, reader):
            time.sleep(0.3)
            if verb == "index":
                arguments = ["index", self._index_anew(), "--id-global"]
            elif verb == "reindex":
                arguments = ["reindex", *how]
            else:
                lost = time.monotonic()
                self._complete("reindex", *how, *(["--no-swap"] if verb == "swap" else []))
                arguments = [verb]
            self._disturbed(verb, fault, arguments)
            if verb == "index" or verb == "reindex":
                self._complete(*arguments)
            elif verb == "swap":
                self._complete(*arguments, ended="is ready: 'slice-os reindex' builds one")
                assert self._live() != former
            elif self._live() != former:
                # What a killed client had sent may move the name after we have looked.
                self._complete(*arguments, ended="has no generation to go back to")
                assert self._live() == former
            end = time.monotonic()
            time.sleep(0.5)
        for one in (writer, reader):
            assert one.wrong == [], one.wrong[:3]
            assert all(map(faults.is_clear, one.refused)), one.refused
            if "node" not in fault:
                told = [part for what in (verb, fault) for part in TOLD.get(what, ())]
                assert [s for s in one.refused if not any(part in s for part in told)] == []
        assert reader.right
        with slice_os.open(self.place) as index:
            writer.check(index, (lost, end) if verb == "rollback" else None)
            self._check_corpus(index)
        found = slice_os.check(self.place, sample=None)
        assert found.healthy, found.findings
        with slice_os.open(self.place) as index:
            index.delete([f"w{n}" for n in WORKED])
        slice_os.prune_generations(self.place, 0, unfinished=True)

    def _check_corpus(self, index):
        # Where passages were cut, text that was encoded anew has line ends instead of spaces.
        for one in self._corpus:
            assert index.get(one.id).text.split() == one.text.split()
        every = [(one.passage.document, one.passage.number) for one in index.passages()]
        assert len(every) == len(set(every))

    def _disturbed(self, verb, fault, arguments):
        with ExitStack() as stack:
            place = self._behind(fault, stack) if self.nodes else self.place
            began = time.monotonic()
            child = self._child(place, *arguments)
            stack.callback(child.kill)
            if fault == "kill" or "node" in fault:
                time.sleep(self._rng.uniform(0.3, 1.0) * self._lasted.get(verb, 4.0))
            if fault == "kill":
                child.send_signal(signal.SIGKILL)
            elif "node" in fault:
                self._lose_a_node()
            elif fault == "full" and not self.nodes:
                # No file may grow beyond what some are already.
                sizes = [one.stat().st_size for one in Path(self.place).rglob("*") if one.is_file()]
                most = int(self._rng.random() * max(sizes))
                resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (most, most))
            _, err = child.communicate(timeout=400)
            if child.returncode == 0:
                self._lasted[verb] = time.monotonic() - began
            killed = fault == "kill" and child.returncode == -signal.SIGKILL
            taken = "Another process is writing" in err
            assert killed or taken or child.returncode == 0 or faults.is_clear(err), err

    def _lose_a_node(self):
        """Kill a node and start it again, while who writes to the index goes on."""
        node = self._rng.choice(self.nodes.nodes)
        node.kill()
        time.sleep(self._rng.uniform(0, 5))
        node.start()
        with OpenSearch(self.nodes.urls) as client:
            faults.green(client, self.place.rpartition("/")[2])

    def _behind(self, fault, stack):
        """Return the address of the index, behind something that disturbs; of a full disk, too."""
        url, name = self.nodes.url, self.place.rpartition("/")[2]
        if fault == "full":
            stack.enter_context(faults.full_disk(stack.enter_context(OpenSearch(url)), name))
        if "storm" in fault:
            rng = random.Random(self._rng.random())
            gate = lambda headers: TOO_MANY if rng.random() < 0.15 else None  # noqa: E731
            return f"{stack.enter_context(proxied(url, gate)).url}/{name}"
        if not {*fault.split("+")} <= EVERY.keys():
            return self.place
        line = stack.enter_context(faults.Line(url))
        for one in fault.split("+"):
            line.trouble(one, EVERY[one])
        stack.callback(has_met, line, fault)
        return f"{line.url}/{name}"


def has_met(line, fault):
    assert line.met.keys() == {*fault.split("+")}


@contextmanager
def running(*threads):
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.stop.set()
        for thread in threads:
            thread.join()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("folder")
    return Scene(str(place / "faults.slice"), place)


@pytest.fixture(scope="module")
def cluster_of_three(three_nodes, tmp_path_factory):
    urls = ",".join(url.removeprefix("http://") for url in three_nodes.urls)
    with OpenSearch(three_nodes.urls) as client, faults.emptied(client, "faults"):
        scene = Scene(f"http://{urls}/faults", tmp_path_factory.mktemp("cluster"), three_nodes)
        faults.green(client, "faults")
        yield scene


@pytest.mark.parametrize(("verb", "fault"), pairs(IN_A_FOLDER))
def test_in_a_folder(folder, verb, fault):
    folder.round(verb, fault)


@pytest.mark.parametrize(("verb", "fault"), pairs(IN_A_CLUSTER))
def test_in_a_cluster_of_three(cluster_of_three, verb, fault):
    cluster_of_three.round(verb, fault)


def test_every_verb_and_every_fault_is_met():
    short = [one for troubles in SHORT for one in pairs(troubles, 0)]
    assert {verb for verb, _ in short} == {*VERBS}
    assert {one for _, fault in short for one in fault.split("+")} == {*IN_A_CLUSTER}
    for troubles in SHORT:
        long = pairs(troubles, 100)
        assert {*long} == {(verb, fault) for verb in VERBS for fault in troubles}
        assert sum(fault == "kill" for _, fault in long) == 400

"""Processes forked off one that has searched: what holds threads or connections begins anew."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import slice_os
from slice_os.encoders.info import DEFAULT_FOLDER, GRAPH
from slice_os.encoders.onnx import Graph
from slice_os.errors import EncoderError

SCRIPT = """
import multiprocessing, os, signal, sys
import slice_os

PHRASES = ["wants to cancel", "the ship sank"]

def answers(index):
    hits = [(h.document, h.degree) for p in PHRASES for h in index.search(p, size=9)]
    return hits + [(m.document, m.degree) for m in index.mine(PHRASES, min_degree=0.7)]

index = None

def work(location):
    opened = index or slice_os.open(location)
    return [answers(opened) for _ in range(3)]

def checked(location, wanted):
    signal.alarm(60)
    assert work(location) == [wanted] * 3
    # What the process encodes itself goes through the encoder's pool.
    own = slice_os.Document("own", " ".join(PHRASES * 40))
    assert slice_os.index([own], f"{location}-{os.getpid()}").documents == 1

if __name__ == "__main__":
    signal.alarm(120)
    how, location = sys.argv[1:]
    closed = slice_os.open(location)
    closed.close()
    if how != "spawn":
        index = slice_os.open(location)
    wanted = answers(index or slice_os.open(location))
    assert wanted
    if how == "prefork":  # as gunicorn --preload does
        workers = []
        for _ in range(4):
            if not (worker := os.fork()):
                try:
                    checked(location, wanted)
                except BaseException as exc:
                    print(repr(exc), file=sys.stderr, flush=True)
                    os._exit(1)
                os._exit(0)
            workers.append(worker)
        ended = [os.waitpid(worker, 0)[1] for worker in workers]
        assert ended == [0] * 4, ended
    else:
        context = multiprocessing.get_context(how)
        processes = [context.Process(target=checked, args=(location, wanted)) for _ in range(3)]
        [process.start() for process in processes]
        [process.join() for process in processes]
        assert [process.exitcode for process in processes] == [0] * 3
    assert answers(index or slice_os.open(location)) == wanted
    with slice_os.open(location) as again:
        again.add([slice_os.Document("more", "One more text.")])
    assert (index or slice_os.open(location)).status().documents == 31
"""


@pytest.mark.skipif(sys.platform == "win32", reason="it has no fork")
@pytest.mark.parametrize("how", ["fork", "spawn", "prefork"])
def test_a_process_searches_after_its_parent_did(tmp_path, how):
    texts = ["The customer wants to cancel the plan.", "That night the ship sank."]
    documents = [slice_os.Document(f"d{n}", f"{n} {texts[n % 2]}") for n in range(30)]
    slice_os.index(documents, tmp_path / "index.slice")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", script, how, tmp_path / "index.slice"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_device_stays_with_the_process_that_loaded_the_encoder(monkeypatch):
    graph = Graph(DEFAULT_FOLDER / GRAPH, "cpu", 384)
    ids = np.array([[101, 102]])
    before = graph.run(ids, np.ones_like(ids))
    child = os.getpid() + 1
    monkeypatch.setattr(os, "getpid", lambda: child)
    assert (graph.run(ids, np.ones_like(ids)) == before).all()
    graph.device = "cuda"
    with pytest.raises(EncoderError, match="on cuda before this process was forked: start"):
        graph.run(ids, np.ones_like(ids))

"""A forked process has connections of its own to a cluster."""

from __future__ import annotations

import subprocess
import sys
import uuid

import slice_os

SCRIPT = """
import os, signal, sys
import slice_os

signal.alarm(200)
index = slice_os.open(sys.argv[1])

def answers(query):
    return [(h.document, round(h.degree, 5)) for h in index.search(query, size=9)]

queries = [f"the customer wants to cancel number {n}" for n in range(6)]
wanted = [answers(query) for query in queries]
workers = []
for _ in range(4):
    if not (worker := os.fork()):
        good = all([answers(q) for q in queries] == wanted for _ in range(3))
        os._exit(0 if good else 1)
    workers.append(worker)
assert all([answers(q) for q in queries] == wanted for _ in range(3))
ended = [os.waitpid(worker, 0)[1] for worker in workers]
assert ended == [0] * 4, ended
"""


def test_forked_processes_do_not_share_connections(cluster, tmp_path):
    place = f"{cluster.url}/forks-{uuid.uuid4().hex[:12]}"
    texts = ["The customer wants to cancel.", "Number 7 is a ship.", "Thank you very much!"]
    slice_os.index([slice_os.Document(f"d{n}", f"{texts[n % 3]} {n}") for n in range(30)], place)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", script, place],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")

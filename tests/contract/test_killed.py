"""kill -9 while indexing: every committed document is there, and a rerun completes the rest.

SLICE_OS_KILLS sets how often (default 8; 100 were run before the release).
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import slice_os
from slice_os.storage.contract import SearchQuery
from slice_os.storage.local import LocalBackend

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("SLICE_OS_KILLS", "8"))
CHILD = """
import sys
sys.path.insert(0, sys.argv[3])
from contract.test_killed import documents
import slice_os
from slice_os.storage.local import write as writer
writer.SEGMENT_WORDS = 150
print("started", flush=True)
slice_os.index(documents(int(sys.argv[2])), sys.argv[1], passage_words=30, prune="all")
"""
LINES = [
    "I want to cancel my subscription because it costs too much.",
    "The parcel never came, and nobody answers the telephone.",
    "Either party may end this agreement with thirty days of notice.",
    "Alice was beginning to get very tired of sitting by her sister.",
    "Please move my seat to the window, and send me the boarding pass.",
]


def documents(version: int) -> list[slice_os.Document]:
    """Forty documents, one of them large; each version changes, adds and drops some."""
    made = []
    for number in range(version % 7, 40):
        revision = version if number % 3 == version % 3 else 0
        rng = random.Random(number * 1000 + revision)
        size = 200 if number == 20 else 1 + number % 6
        lines = [f"{rng.choice(LINES)} ({number}.{revision}.{k})" for k in range(size)]
        made.append(slice_os.Document(f"d{number}", "\n".join(lines), metadata={"v": revision}))
    return made


def content(location):
    """Everything that an index holds: passage -> (offsets, text, metadata, vectors)."""
    backend = LocalBackend.open(str(location))
    try:
        return {
            (s.passage.document, s.passage.number): (
                (s.passage.start, s.passage.end, s.passage.text, str(s.metadata)),
                s.packed.to_bytes(),
            )
            for s in backend.passages()
        }
    finally:
        backend.close()


def check(location):
    """The index opens and answers, and what is in it is whole documents of some version."""
    backend = LocalBackend.open(str(location))
    if backend is None:  # killed before it was made
        return
    held: dict[str, list[tuple[int, int, str]]] = {}
    for (name, _), (passage, _) in sorted(content(location).items()):
        held.setdefault(name, []).append(passage)
    for name, passages in held.items():
        joined = " ".join(" ".join(text.split()) for _, _, text, _ in passages)
        number = int(name[1:])
        assert joined.count(f"({number}.") == (200 if number == 20 else 1 + number % 6), name
        assert len({text.split(f"({number}.")[1].split(".")[0] for _, _, text, _ in passages}) == 1
    vector = np.eye(1, 384, dtype=np.float32)[0]
    (lexical,) = backend.candidates(
        [SearchQuery("cancel subscription", vector, range(1, 5), "lexical")]
    )
    assert {c.stored.passage.document for c in lexical} <= held.keys()
    backend.close()


def test_killed_at_random_moments(tmp_path):
    location = tmp_path / "killed.slice"
    rng = random.Random(7)
    killed = 0
    started = time.monotonic()
    slice_os.index(documents(0), tmp_path / "timed.slice", passage_words=30)
    longest = 1.5 * (time.monotonic() - started)
    for version in range(KILLS):
        tests = str(Path(__file__).parent.parent)
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(location), str(version), tests],
            stdout=subprocess.PIPE,
        )
        child.stdout.readline()
        time.sleep(rng.uniform(0, longest))
        child.send_signal(signal.SIGKILL)
        killed += child.wait() == -signal.SIGKILL
        child.stdout.close()
        check(location)
    assert killed >= KILLS // 3
    final = documents(KILLS)
    slice_os.index(final, location, passage_words=30, prune="all")
    slice_os.index(final, tmp_path / "undisturbed.slice", passage_words=30)
    found, wanted = content(location), content(tmp_path / "undisturbed.slice")
    assert found.keys() == wanted.keys()
    for key, (passage, vectors) in wanted.items():
        assert found[key][0] == passage
        assert found[key][1] == vectors
    segments = {file.name for file in (location / "segments").iterdir()}
    with slice_os.open(location) as index:
        assert len(segments) == index.status().details["segments"]

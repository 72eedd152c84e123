"""How processes start and end, with others in the place of OpenSearch."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from .java import ClusterError
from .node import Node
from .watchdog import Watchdog

ROOT = Path(__file__).parents[2]
START = """
import sys, time
from pathlib import Path
from tests.cluster.node import Node
from tests.cluster.watchdog import Watchdog
folder = Path(sys.argv[1])
node = Node(folder / "node-1", ["sleep", "600"], {"http.port": 1}, Watchdog(folder))
node.launch()
print(node.process.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def folder():
    """Pytest's own folders are shut to the user whom root's nodes run as."""
    with tempfile.TemporaryDirectory(prefix="slice-os-node-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def watchdog(folder):
    watchdog = Watchdog(folder)
    yield watchdog
    watchdog.close()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def gone(pid: int, folder: Path) -> bool:
    end = time.monotonic() + 20
    while time.monotonic() < end and (is_alive(pid) or folder.exists()):
        time.sleep(0.05)
    return not is_alive(pid) and not folder.exists()


def test_a_node_ends_with_its_parent_even_one_that_is_killed(folder):
    command = [sys.executable, "-c", START, str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as parent:
        assert parent.stdout
        pid = int(parent.stdout.readline())
        assert is_alive(pid)
        parent.kill()
    assert gone(pid, folder)


def test_a_watchdog_ends_what_is_left_at_its_close(folder):
    watchdog = Watchdog(folder)
    node = Node(folder / "node-1", ["sleep", "600"], {"http.port": 1}, watchdog)
    node.launch()
    watchdog.close()
    assert node.process.wait(20) == -9
    assert gone(node.process.pid, folder)


def test_a_node_that_cannot_start_shows_the_end_of_its_log(folder, watchdog):
    command = ["sh", "-c", "echo no such setting; exit 3"]
    node = Node(folder / "node-1", command, {"http.port": 1}, watchdog)
    with pytest.raises(ClusterError, match=r"(?s)^node-1 ended with 3: .*\nno such setting"):
        node.start()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root must be another")
def test_a_node_of_root_runs_as_another_user(folder, watchdog):
    node = Node(folder / "node-1", ["sh", "-c", "id -un; exit 3"], {"http.port": 1}, watchdog)
    node.launch()
    node.process.wait()
    assert node.log.read_text() == "nobody\n"

"""What holds for every test."""

from __future__ import annotations

import os
import signal

import hypothesis
import pytest

# A shell's background job ignores Ctrl-C, and so would every process that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Two threads of torch wait for each other on a busy machine, many times longer than one needs.
os.environ.setdefault("OMP_NUM_THREADS", "1")
hypothesis.settings.register_profile("untimed", deadline=None)  # a busy machine is no failure
hypothesis.settings.load_profile("untimed")
pytest_plugins = ["support.checkpoints", "support.cluster", "support.encoding"]
collect_ignore = ["integrations"]  # they have an environment of their own
OURS = ("SLICE_OS_KILLS", "SLICE_OS_TEST_CACHE")


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    """Keep child processes from importing the checkout instead of the installed wheel."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith("SLICE_OS_") and name not in OURS:
            monkeypatch.delenv(name)


def pytest_collection_modifyitems(items):
    """Mark what starts a server, and what needs the laboratory's packages."""
    servers = ("opensearch", "elasticsearch", "[older")
    for item in items:
        if item.nodeid.startswith("tests/cluster/") or any(name in item.name for name in servers):
            item.add_marker("cluster")
        elif (
            item.nodeid.startswith("tests/lab/")
            or "checkpoint" in item.fixturenames
            or "[checkpoint" in item.name
        ):
            item.add_marker("lab")

"""What holds for every test."""

from __future__ import annotations

import pytest

pytest_plugins = ["support.cluster"]


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    """Keep child processes from importing the checkout instead of the installed wheel."""
    monkeypatch.chdir(tmp_path)
    for name in ("SLICE_OS_INDEX", "SLICE_OS_ENCODER", "SLICE_OS_DEBUG"):
        monkeypatch.delenv(name, raising=False)

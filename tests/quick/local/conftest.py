"""An empty embedded index."""

from __future__ import annotations

import pytest

from slice_os.storage.contract import IndexMeta
from slice_os.storage.local import LocalBackend
from support.local import DIMENSION


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "index.slice"


@pytest.fixture
def index(folder):
    backend = LocalBackend.create(str(folder), IndexMeta("random", "weights_hash", DIMENSION))
    yield backend
    backend.close()

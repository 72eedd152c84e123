"""An index that the retrievers search."""

from __future__ import annotations

import os

import pytest

import slice_os
from support.calls import TEXTS

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"


@pytest.fixture(scope="session")
def location(tmp_path_factory):
    location = tmp_path_factory.mktemp("frameworks") / "calls.slice"
    documents = [
        slice_os.Document(name, text, metadata=metadata) for name, (text, metadata) in TEXTS.items()
    ]
    slice_os.index(documents, location)
    return location


@pytest.fixture(scope="session")
def index(location):
    with slice_os.open(location) as opened:
        yield opened

"""An index that is served: calls, some of which say that somebody wants to leave."""

from __future__ import annotations

import pytest

import slice_os
from support.serving import serving

CALLS = {
    "calls/1#a": "Good morning. I would like to cancel my subscription today, please.",
    "calls/2": "The money was sent back to her card, as the shoes were torn.",
    "calls/3": "Could you move me to a seat by the window? I do not like the aisle.",
    "calls/4": "We want to end the contract. It is too dear for us.",
    "calls/5": "<script>alert(1)</script> I want to stop the delivery \U0001f600 of milk.",
    "calls/6": "I do not want to cancel my subscription, I like it.",
    "calls/7": "The ship sank in the night and the crew was never seen again.",
    "calls/8": "Nobody answered when she called the office about her refund.",
}


@pytest.fixture(scope="session")
def location(tmp_path_factory):
    place = tmp_path_factory.mktemp("serving") / "calls.slice"
    with slice_os.open(place) as index:
        index.add(
            slice_os.Document(name, text, metadata={"number": n})
            for n, (name, text) in enumerate(CALLS.items(), start=1)
        )
    return place


@pytest.fixture(scope="session")
def index(location):
    with slice_os.open(location) as opened:
        yield opened


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return tmp_path_factory.mktemp("workspace")


@pytest.fixture(scope="module")
def server(index, workspace):
    with serving({"calls": index}, workspace=str(workspace)) as running:
        yield running

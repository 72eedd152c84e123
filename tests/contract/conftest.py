"""One index of real text, made by the real encoder, for every backend that keeps the contract."""

from __future__ import annotations

import uuid

import pytest

import slice_os
from slice_os.encoders import load_encoder

TEXTS = {
    "cancel": (
        "Good morning, how can I help?\n"
        "I have been thinking about it for weeks and I would like to end my subscription today.\n"
        "Of course, may I ask why?"
    ),
    "refund": "She asked whether the money could be sent back to her card, as the shoes were torn.",
    "licence": "The licensor's liability under this agreement shall not exceed the fees paid.",
    "ship": "The old ship sank in the night, and nobody on the coast saw its lights go out.",
    "seat": "Could you move me to a seat by the window? I do not like the aisle.",
    "bill": "This month's bill is far too high; last month I paid half of that.",
    "short": "Thanks!",
}
YEARS = dict(zip(TEXTS, range(2018, 2018 + len(TEXTS)), strict=True))


def corpus():
    return [
        slice_os.Document(name, text, metadata={"year": YEARS[name], "kind": {"of": name[0]}})
        for name, text in TEXTS.items()
    ]


@pytest.fixture(scope="session")
def encoder():
    with load_encoder() as loaded:
        yield loaded


@pytest.fixture(scope="session", params=["local", "opensearch", "elasticsearch"])
def new_location(request, tmp_path_factory):
    """A function that returns a location of the backend where nothing is yet."""
    if request.param == "local":
        return lambda: str(tmp_path_factory.mktemp("local") / "contract.slice")
    cluster = request.getfixturevalue(request.param)
    return lambda: f"{cluster.url}/contract-{uuid.uuid4().hex[:12]}"


@pytest.fixture(scope="session")
def location(new_location):
    """Where a filled index of the backend lies; tests that write make their own."""
    location = new_location()
    slice_os.index(corpus(), location, passage_words=40)
    return location


@pytest.fixture
def index(location, encoder):
    with slice_os.open(location, encoder=encoder) as opened:
        yield opened

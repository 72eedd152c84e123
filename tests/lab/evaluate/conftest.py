"""A small test collection, and an index of it."""

from __future__ import annotations

import pytest

from slice_os.lab.evaluate import evaluate_retrieval
from support.retrieval_set import write_trec


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_trec(tmp_path_factory.mktemp("sets") / "trec")


@pytest.fixture(scope="module")
def place(folder, tmp_path_factory):
    place = tmp_path_factory.mktemp("places") / "set.slice"
    evaluate_retrieval(folder, place, settings=["lexical"])
    return place

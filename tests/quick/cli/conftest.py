"""A corpus of three documents, and its index."""

from __future__ import annotations

import json

import pytest

from support.verbs import run

TEXTS = {
    "talk.txt": "Hello there.\nI would like to cancel my plan, please.\nThe bill is too high.\n",
    "deal.txt": "Either party may terminate this agreement upon notice. Liability is limited.\n",
}


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli") / "corpus"
    folder.mkdir()
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    rows = [{"id": "r1", "title": "Ship", "text": "The ship sank at night.", "year": 1912}]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


@pytest.fixture(scope="session")
def location(corpus, tmp_path_factory):
    location = tmp_path_factory.mktemp("location") / "demo.slice"
    run("index", corpus, "--index", location)
    return location

"""An index made by the version before: before.tar.gz, of the texts below, 12 words a passage."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

import slice_os

TEXTS = {
    "docs/a.txt": "Please cancel my subscription, it costs too much.\n\n"
    "The parcel never came, and nobody answers the telephone.",
    "docs/b.txt": "Either party may end this agreement with thirty days of notice.",
}
FOUND = [("docs/b.txt", 0, 0.845333), ("docs/a.txt", 0, 0.688751), ("docs/a.txt", 1, 0.587551)]


def test_an_index_of_the_version_before_opens_and_holds_the_same(tmp_path):
    with tarfile.open(Path(__file__).with_name("before.tar.gz")) as archive:
        archive.extractall(tmp_path, filter="data")
    documents = [slice_os.Document(name, text) for name, text in TEXTS.items()]
    with (
        slice_os.open(tmp_path / "before.slice") as before,
        slice_os.open(tmp_path / "now.slice", passage_words=12) as now,
    ):
        hits = before.search("wants to end the contract", size=3)
        for hit, (document, passage, degree) in zip(hits, FOUND, strict=True):
            assert (hit.document, hit.passage) == (document, passage)
            assert hit.degree == pytest.approx(degree, abs=0.02)  # other processors round otherwise
        now.add(documents)
        assert [(one.passage.document, len(one.packed)) for one in before.passages()] == [
            (one.passage.document, len(one.packed)) for one in now.passages()
        ]
        changed = slice_os.Document("docs/b.txt", TEXTS["docs/b.txt"] + " Thanks.")
        report = before.add([changed])
        assert (report.documents, report.replaced) == (1, 1)
        assert before.status().documents == 2
        now.add([changed])
        lexical = [
            [(hit.document, hit.score) for hit in index.search("may it end", mode="lexical")]
            for index in (before, now)
        ]
        assert lexical[0] == lexical[1]

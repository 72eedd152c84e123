"""Former generations: an open index lets go of their files."""

from __future__ import annotations

import gc
import os
from contextlib import closing
from pathlib import Path

import pytest

import slice_os
from slice_os.errors import MovedError
from slice_os.storage.local import LocalBackend

OPENED = Path("/proc/self/fd")


@pytest.mark.skipif(not OPENED.exists(), reason="only Linux lists the open files")
def test_files_of_former_generations_are_closed_after_their_last_search(tmp_path):
    place = tmp_path / "i.slice"
    texts = {"a": "The customer wants to cancel.", "b": "The ship sank in the night."}
    slice_os.index([slice_os.Document(*one) for one in texts.items()], place)

    def opened():
        files = [os.path.realpath(one) for one in OPENED.iterdir()]
        return sum(str(place) in file for file in files)

    gc.disable()  # which would close them some day
    try:
        with slice_os.open(place) as index:
            index.search("cancel")
            first = opened()
            for _ in range(3):
                slice_os.reindex(place)
                index.search("cancel")
                assert opened() == first
            passages = index.passages()
            found = [next(passages).passage.document]
            slice_os.reindex(place)
            assert index.search("cancel")
            assert opened() > first
            assert [*found, *(one.passage.document for one in passages)] == ["a", "b"]
            del passages
            assert opened() == first
        assert opened() == 0
    finally:
        gc.enable()


def test_a_former_generation_takes_no_writer(tmp_path):
    place = tmp_path / "i.slice"
    slice_os.index([slice_os.Document("a", "The customer wants to cancel.")], place)
    with closing(LocalBackend(place)) as former:
        slice_os.reindex(place)
        with pytest.raises(MovedError, match="run this again; what is done is kept"):
            former.writer()
        (hit,) = former.documents([], 9)
        assert hit.document == "a"

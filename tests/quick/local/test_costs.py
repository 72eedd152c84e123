"""What a write and a filter cost does not grow with the index."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import pytest

import slice_os
from slice_os.errors import QueryError
from slice_os.storage.local import LocalBackend, candidates
from slice_os.text.filters import parse_filters
from support.local import SENTENCES, put

READ = Path("/proc/self/io")
needs_counts = pytest.mark.skipif(not READ.exists(), reason="only Linux counts the bytes read")


def bytes_read() -> int:
    return int(READ.read_text().split()[1])


def fill(folder: Path, first: int, last: int) -> None:
    with closing(LocalBackend(folder)) as index, index.writer() as out:
        for n in range(first, last):
            put(out, f"d{n:05}", [f"{s} Number {n}." for s in SENTENCES], n=n, half=n % 2)


def read_by(folder: Path, change: str) -> int:
    """Return how many bytes one small run reads."""
    with closing(LocalBackend(folder)) as index:
        before = bytes_read()
        with index.writer() as out:
            if change == "delete":
                assert out.delete(["d00001"])
            else:
                put(out, "d00000" if change == "replace" else "new", SENTENCES, n=-1)
        return bytes_read() - before


@needs_counts
@pytest.mark.parametrize("change", ["add", "replace", "delete"])
def test_a_small_run_does_not_read_the_whole_database(index, folder, change):
    read = []
    for first, last in ((0, 100), (100, 2000)):
        fill(folder, first, last)
        read.append(read_by(folder, change))
        if change == "delete":
            fill(folder, 1, 2)
    size = (folder / "index.sqlite").stat().st_size
    assert size > 2_000_000
    assert read[1] < size / 10
    assert read[1] < read[0] * 2


def test_a_filter_is_looked_up_and_no_document_is_read(index, folder, monkeypatch):
    """The steps of SQLite's machine, in thousands, are those of some look-ups."""
    fill(folder, 0, 2000)
    steps = 0

    def count():
        nonlocal steps
        steps += 1

    with index._snapshot() as database:
        database.set_progress_handler(count, 100)
    for texts, found in {
        ("n=7",): 1, ("half=1",): 1000, ("half!=1", "n<100"): 50, ("n exists",): 2000
    }.items():  # fmt: skip
        steps = 0
        filters = parse_filters(texts)
        assert index.has_field("n")
        assert index.fields() == ["half", "n"]
        looked_up, steps = steps, 0
        assert len(index.matching(filters)) == found
        assert looked_up < 5


def test_documents_that_change_are_found_by_what_they_are_now(tmp_path):
    place = tmp_path / "i.slice"
    document = slice_os.Document
    with slice_os.open(place) as index:
        index.add([
            document("a", "Some text.", metadata={"year": 2020, "tags": ["x", "y"]}),
            document("b", "Other text.", metadata={"year": 2020}),
        ])  # fmt: skip
        index.add([document("a", "Some text.", metadata={"year": 2021, "tags": ["y"]})])
        found = {
            text: {hit.document for hit in index.search("text", filters=[text])}
            for text in ("year=2020", "year=2021", "tags=y", "tags!=y", "year>2000")
        }
        assert found == {
            "year=2020": {"b"}, "year=2021": {"a"}, "tags=y": {"a"}, "tags!=y": {"b"},
            "year>2000": {"a", "b"},
        }  # fmt: skip
        assert index.delete(["a"]) == 1
        with pytest.raises(QueryError, match="they have year"):
            index.search("text", filters=["tags=y"])
        assert index.search("text", filters=["year=2021"]) == []
    assert slice_os.check(place).healthy


def test_reindexing_opens_few_databases(tmp_path):
    place, counting, opened = tmp_path / "i.slice", [], []
    slice_os.index([slice_os.Document("a", "Some text."), slice_os.Document("b", "More.")], place)
    # Audit hooks stay until the process ends.
    sys.addaudithook(lambda event, _: counting and event == "sqlite3.connect" and opened.append(1))
    counting.append(True)
    assert slice_os.reindex(place).live
    counting.clear()
    assert 0 < len(opened) <= 8


@pytest.mark.parametrize("asked", [{"group": True}, {"min_degree": 0.1}])
def test_a_search_through_many_ranks_scans_once(tmp_path, monkeypatch, asked):
    documents = [slice_os.Document(f"d{n}", f"The ship {n} sank.") for n in range(300)]
    with slice_os.open(tmp_path / "i.slice") as index:
        index.add(documents)
        scans, scan = [], candidates.best_cosines
        monkeypatch.setattr(
            candidates, "best_cosines", lambda *given, **how: scans.append(1) or scan(*given, **how)
        )
        plain = index.search("the ship", size=200, rescore=0)
        found = index.search("the ship", size=200, rescore=0, **asked)
        assert [hit.document for hit in found] == [hit.document for hit in plain]
        assert len(scans) == 2

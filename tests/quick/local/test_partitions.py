"""Runs side by side: each document is looked at by one of them, and pruned by no other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import slice_os
from slice_os.corpus import reader
from slice_os.errors import CorpusError
from slice_os.ingest import Partition
from support.verbs import run

FILES, ROWS = 20, 30


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for number in range(FILES):
        (folder / f"{number}.txt").write_text(f"The text of the file {number}.")
    rows = (json.dumps({"id": f"r{n}", "text": f"The text of row {n}."}) for n in range(ROWS))
    (folder / "rows.jsonl").write_text("\n".join(rows))
    return folder


def test_the_parts_are_the_whole_and_none_is_in_two(corpus: Path, tmp_path: Path) -> None:
    with slice_os.open(tmp_path / "a.slice") as index:
        reports = [index.add(slice_os.read(corpus), partition=(n, 3)) for n in range(3)]
        assert sum(report.documents for report in reports) == FILES + ROWS == len(index)
        assert all(5 < report.documents < 30 and not report.unchanged for report in reports)
        again = [index.add(slice_os.read(corpus), partition=f"{n}/3") for n in range(3)]
        assert [report.unchanged for report in again] == [report.documents for report in reports]


def test_a_part_reads_no_files_of_others(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    whole = reader.Corpus._whole
    monkeypatch.setattr(
        reader.Corpus, "_whole", lambda *given: read.append(given[1]) or whole(*given)
    )
    with slice_os.open(tmp_path / "a.slice") as index:
        index.add(slice_os.read(corpus), partition=(0, 4))
    part = Partition(0, 4)
    assert read == [
        id_ for n in sorted(map(str, range(FILES))) if part.holds(id_ := f"corpus/{n}.txt")
    ]


def test_a_part_prunes_its_own_documents_alone(corpus: Path, tmp_path: Path) -> None:
    with slice_os.open(tmp_path / "a.slice") as index:
        index.add(slice_os.read(corpus))
        for path in corpus.glob("*.txt"):
            path.unlink()
        pruned = [
            index.add(slice_os.read(corpus), partition=(n, 2), prune="all").pruned for n in (0, 1)
        ]
        assert sum(pruned) == FILES
        assert min(pruned) > 2
        assert len(index) == ROWS


def test_a_corpus_is_whole_again_after_a_part(corpus: Path, tmp_path: Path) -> None:
    documents = slice_os.read(corpus)
    with slice_os.open(tmp_path / "a.slice") as index:
        index.add(documents, partition=(0, 4))
        assert len(list(documents)) == FILES + ROWS
        index.add(documents)
        assert len(index) == FILES + ROWS


def test_documents_of_a_program_are_parted_too(tmp_path: Path) -> None:
    given = [(str(n), f"The text {n}.") for n in range(20)]
    with slice_os.open(tmp_path / "a.slice") as index:
        done = [index.add(given, partition=(n, 2)).documents for n in (0, 1)]
    assert sum(done) == 20
    assert min(done) > 2


def test_where_an_id_falls_never_changes() -> None:
    places = {"a": 343, "b": 333}
    for id_, place in places.items():
        assert [n for n in range(1000) if Partition(n, 1000).holds(id_)] == [place]


@pytest.mark.parametrize("given", ["8/8", "-1/8", "1", "1/0", "a/b", "1/2/3", (2, 2), (-1, 2)])
def test_what_is_no_partition_is_said(given: str | tuple[int, int]) -> None:
    with pytest.raises(CorpusError, match="I/N, the share I from 0 of N runs"):
        Partition.of(given)


def test_the_verb_takes_one_and_keeps_rejects_apart(corpus: Path, tmp_path: Path) -> None:
    (corpus / "broken.jsonl").write_text("{\n")
    index = tmp_path / "a.slice"
    for number in range(2):
        part = ("--partition", f"{number}/2")
        run("index", corpus, "--index", index, *part, ok=3)
    assert sorted(path.name for path in tmp_path.glob("*.rejects.jsonl")) == [
        "a.slice.0-2.rejects.jsonl",
        "a.slice.1-2.rejects.jsonl",
    ]
    assert json.loads(run("status", "--index", index, "--json").stdout)["documents"] == FILES + ROWS
    run("index", corpus, "--index", index, "--partition", "2/2", ok=1)

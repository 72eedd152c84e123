"""Damage of an embedded index is found, said in one sentence, and mended."""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import slice_os
from slice_os.errors import IndexDamagedError, IndexLockedError
from slice_os.spans import PhraseBatch
from slice_os.storage.contract import IndexMeta, MiningQuery
from slice_os.storage.local import LocalBackend
from slice_os.storage.local.check import examine
from slice_os.storage.local.doctor import repair_folder
from support.local import DIMENSION, SENTENCES, encode, put, put_passage, search, unit
from support.verbs import run

AIM = PhraseBatch(unit(1)[None], [range(1, 21)], np.zeros(1, np.float32))

ADVICE = r"'slice-os doctor --repair --index .*' encodes what it held anew\.$"
WORDS = sum(len(f"{sentence} Number 1.".split()) for sentence in SENTENCES)


@pytest.fixture
def filled(index, folder):
    """Six segments of one document each, as they were written; text of equal lengths."""
    with index.writer() as out:
        for n in range(6):
            put(out, f"d{n}", [f"{s} Number {n}." for s in SENTENCES])
            out.commit()
    files = sorted((folder / "segments").iterdir())
    assert len(files) == 6
    return files


def content(folder):
    """Everything that is found: document and number -> text and vectors."""
    with closing(LocalBackend(folder)) as backend:
        return {
            (s.passage.document, s.passage.number): (s.passage.text, s.packed.to_bytes())
            for s in backend.passages()
        }


def encoded(texts):
    return map(encode, texts)


def harm(files: list[Path], how: str) -> set[int]:
    """Harm some segments; return their numbers."""
    data = files[2].read_bytes()
    if how == "swapped":
        other = files[3].read_bytes()
        assert len(other) == len(data)
        assert other != data
        files[2].write_bytes(other)
        files[3].write_bytes(data)
        return {3, 4}
    if how == "gone":
        files[2].unlink()
    elif how == "truncated":
        files[2].write_bytes(data[: len(data) // 2])
    elif how == "cut within its checksum":
        files[2].write_bytes(data[:-3])
    elif how == "empty":
        files[2].write_bytes(b"")
    elif how == "random":
        files[2].write_bytes(random.Random(1).randbytes(len(data)))
    elif how == "longer":
        files[2].write_bytes(data + b"more")
    return {3}


HARMS = [
    "swapped", "gone", "truncated", "cut within its checksum", "empty", "random", "longer",
]  # fmt: skip


@pytest.mark.parametrize("how", HARMS)
def test_a_damaged_segment_is_one_sentence_and_is_mended(filled, folder, how):
    whole = content(folder)
    harmed = harm(filled, how)
    with pytest.raises(IndexDamagedError, match=ADVICE) as caught:
        search(LocalBackend(folder), mode="dense")
    assert "\n" not in str(caught.value)
    assert examine(folder).damaged.keys() == harmed
    others = {file: file.read_bytes() for n, file in enumerate(filled, 1) if n not in harmed}
    assert repair_folder(folder, harmed, encoded, None) == (4 * len(harmed), WORDS * len(harmed))
    assert content(folder) == whole
    assert {file: file.read_bytes() for file in others} == others
    assert examine(folder, deep=True).damaged == {}
    with LocalBackend(folder).writer() as out:
        put(out, "more", SENTENCES)
    assert {file.name for file in (folder / "segments").iterdir()} >= {f.name for f in others}


def test_every_flipped_byte_is_found_and_none_is_a_traceback(filled, folder):
    whole, data = content(folder), filled[0].read_bytes()
    rng = random.Random(3)
    header = [n for at in range(7) for n in range(128)]
    places = {*header, *range(len(data) - 24, len(data)), *rng.sample(range(len(data)), 300)}
    seen = 0
    for place in sorted(places):
        changed = bytearray(data)
        changed[place] ^= rng.randrange(1, 256)
        filled[0].write_bytes(changed)
        assert examine(folder, deep=True).damaged.keys() == {1}, place
        with closing(LocalBackend(folder)) as backend:
            try:
                with np.errstate(all="ignore"):
                    search(backend, mode="dense", lengths=range(2, 5))
                    list(backend.scan(MiningQuery(AIM)))
            except IndexDamagedError:
                seen += 1
    assert seen > 40  # what is in the headers is seen when the index is opened
    repair_folder(folder, [1], encoded, None)
    assert content(folder) == whole


def test_only_what_a_lost_segment_held_is_encoded(filled, folder):
    filled[1].unlink()
    texts = []
    assert repair_folder(
        folder, [2], lambda some: map(encode, map(texts.append, s := [*some]) and s), None
    )
    whole = [f"{s} Number 1." for s in SENTENCES]
    assert examine(folder, deep=True).damaged == {}
    found = {text for (name, _), (text, *_) in content(folder).items() if name == "d1"}
    assert found == {*whole}


def test_what_is_deleted_or_not_complete_stays_so_when_it_is_mended(filled, index, folder):
    from slice_os.types import Document

    with index.writer() as out:
        out.delete(["d1"])
        assert out.begin(Document("half", SENTENCES[0]))
        put_passage(out, "half", 0, 0, SENTENCES[0])
        out.commit()
    whole = content(folder)
    for file in (folder / "segments").iterdir():
        file.unlink()
    lost = examine(folder).damaged
    repair_folder(folder, lost, encoded, None)
    assert content(folder) == whole
    assert {name for name, _ in whole} == {"d0", "d2", "d3", "d4", "d5"}
    state = index.status()
    assert (state.documents, state.details["incomplete_documents"]) == (5, 1)


def test_nothing_is_mended_while_somebody_writes(filled, index, folder):
    filled[0].unlink()
    (folder / "segments" / "00000001.slice").write_bytes(b"")
    with index.writer(), pytest.raises(IndexLockedError, match="Another process is writing"):
        repair_folder(folder, [1], encoded, None)


def test_merging_leaves_a_damaged_segment_and_says_so(index, folder, caplog):
    for n in range(9):
        with LocalBackend(folder).writer() as out:
            put(out, f"d{n}", SENTENCES[:1])
        if n == 3:
            file = sorted((folder / "segments").iterdir())[0]
            file.write_bytes(b"x" * file.stat().st_size)
    assert "could not be merged" in caplog.text
    assert "--repair" in caplog.text
    assert index.status().documents == 9


@pytest.fixture
def real(tmp_path):
    """An index made by the encoder inside."""
    texts = {"cancel": "The customer wants to cancel.", "ship": "That night the ship sank."}
    slice_os.index(
        [slice_os.Document(name, text) for name, text in texts.items()], tmp_path / "real.slice"
    )
    return tmp_path / "real.slice"


def test_the_doctor_finds_and_repairs(real):
    said = run("doctor", "--index", real).output
    assert "Sizes and identities of all files are what was written (--deep reads" in said
    with slice_os.open(real) as index:
        before = index.search("to cancel", size=2)
    (file,) = (real / "segments").iterdir()
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    run("doctor", "--index", real)
    said = run("doctor", "--index", real, "--deep", ok=1).output
    assert "Damaged segments: 1 of 1 (1: its checksum is another): 'slice-os doctor --repa" in said
    said = run("doctor", "--index", real, "--repair").output
    assert "Repaired: 2 passages (10 words) were encoded anew." in said
    assert "All files of the index are what was written." in said
    with slice_os.open(real) as index:
        assert index.search("to cancel", size=2) == before
    file.write_bytes(data)  # an orphan now: nothing names it
    assert slice_os.doctor(real, deep=True).healthy


def test_the_doctor_says_what_cannot_be_repaired(real):
    with closing(sqlite3.connect(real / "index.sqlite", isolation_level=None)) as database:
        database.execute("UPDATE passages SET text = 'The customer wants to dance.' WHERE key = 1")
    said = run("doctor", "--index", real, "--deep", ok=1).output
    assert "not what was indexed, of documents: 1 (cancel): delete these" in said
    run("delete", "cancel", "--index", real)
    # The postings of the text that was there are left.
    said = run("doctor", "--index", real, "--deep", ok=1).output
    assert "postings of BM25 or of filters are" in said
    said = run("doctor", "--index", real, "--repair").output
    assert "BM25 and of filters were made" in said
    assert slice_os.doctor(real, deep=True).healthy
    (file,) = (real / "segments").iterdir()
    file.unlink()
    for arguments in (["search", "ship"], ["mine", "--phrase", "ship"]):
        said = run(*arguments, "--index", real, ok=1).output
        assert (said.count("\n"), "doctor --repair" in said) == (1, True)
    assert not slice_os.doctor(real).healthy


def test_a_damaged_database_is_found(real):
    file = real / "index.sqlite"
    data = bytearray(file.read_bytes())
    page = int.from_bytes(data[16:18], "big")
    rng = random.Random(5)
    found = []
    for number in range(1, len(data) // page):
        changed = bytearray(data)
        changed[number * page : number * page + 40] = rng.randbytes(40)
        file.write_bytes(changed)
        found.append(not slice_os.doctor(real, deep=True).healthy)
        if number < 4:
            assert "Unexpected" not in run("doctor", "--index", real, "--deep", ok=found[-1]).output
    assert all(found)


def test_an_index_made_by_another_encoder_is_not_repaired(folder, index, filled):
    filled[0].unlink()
    diagnosis = slice_os.doctor(folder, repair=True)
    said = [finding.what for finding in diagnosis.findings if finding.severity == "error"]
    assert len(said) == 2
    assert "was made by the encoder random" in said[0]
    assert "Damaged segments: 1 of 6" in said[1]
    assert IndexMeta("random", "weights_hash", DIMENSION) == index.meta


def test_passages_that_share_words_are_mended_as_they_were(tmp_path):
    place = tmp_path / "long.slice"
    text = "the customer wants to cancel the plan for which she has paid " * 40
    slice_os.index([slice_os.Document("long", text)], place, passage_words=50)
    whole = content(place)
    assert len(whole) > 9
    (file,) = (place / "segments").iterdir()
    assert slice_os.doctor(place, deep=True).healthy
    file.write_bytes(b"")
    assert slice_os.doctor(place, repair=True).healthy
    assert content(place) == whole


def test_another_process_that_ends_leaves_the_log_to_those_that_are_open(tmp_path):
    """Closing any handle of a file drops SQLite's locks on it."""
    folder = tmp_path / "shared.slice"
    slice_os.index([slice_os.Document("a", "The customer wants to cancel.")], folder)
    command = [str(Path(sys.executable).with_name("slice-os")), "status", "--index", str(folder)]
    with slice_os.open(folder) as index:
        assert index.search("cancel")
        for number in range(3):
            index.add([slice_os.Document("b", f"Version {number} of another text.")])
            before = {file.name: file.stat().st_ino for file in folder.iterdir()}
            subprocess.run(command, check=True, capture_output=True)
            after = {file.name: file.stat().st_ino for file in folder.iterdir()}
            assert "index.sqlite-wal" in before
            assert after == before
            assert slice_os.check(folder).healthy
            assert index.get("b").text == f"Version {number} of another text."
        if Path("/proc/self/fd").exists():
            opened = [os.path.realpath(one) for one in Path("/proc/self/fd").iterdir()]
            assert opened.count(str(folder / "index.sqlite")) < 8
    assert not (folder / "index.sqlite-wal").exists()

"""Packed passages in files: what is loaded from them is what indexing would have made."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

import slice_os
from slice_os.errors import EncoderMismatchError, LocationError
from slice_os.operate import packed_files
from support import faults
from support.verbs import run


def held(location: str) -> list[tuple[Any, ...]]:
    """Return all that an index holds of its passages."""
    with slice_os.open(location) as index:
        return [
            (stored.passage, dict(stored.metadata), stored.packed.to_bytes())
            for stored in index.passages()
        ]


def corpus(folder: Path, count: int = 12) -> Path:
    folder.mkdir(exist_ok=True)
    for document in faults.documents(count=count):
        (folder / f"{document.id}.txt").write_text(document.text)
    return folder


def test_what_is_loaded_is_what_indexing_makes(tmp_path: Path, new_location: Any) -> None:
    location = new_location()
    direct = new_location()
    texts = corpus(tmp_path / "corpus")
    slice_os.index(slice_os.read(texts), direct)
    for number in range(3):
        slice_os.pack(slice_os.read(texts), tmp_path / "packed", partition=(number, 3))
    report = slice_os.load(tmp_path / "packed", location)
    assert (report.documents, report.loaded, report.rejected) == (12, 12, 0)
    assert held(location) == held(direct)
    assert slice_os.load(tmp_path / "packed", location).loaded == 0
    again = slice_os.index(slice_os.read(texts), location)  # knows the files by their roots
    assert (again.documents, again.unchanged) == (0, 12)


def test_only_what_changed_is_packed_and_loaded(tmp_path: Path, new_location: Any) -> None:
    location = new_location()
    texts = corpus(tmp_path / "corpus")
    packed = tmp_path / "packed"
    slice_os.pack(slice_os.read(texts), packed)
    slice_os.load(packed, location)
    slice_os.index([("of-others", "Another text, which stays.")], location)
    (next(texts.glob("*.txt"))).write_text("Something else stands there now.")
    report = slice_os.pack(slice_os.read(texts), packed)
    assert (report.documents, report.replaced, report.unchanged) == (1, 1, 11)
    assert slice_os.load(packed, location).loaded == 1
    with slice_os.open(location) as index:
        assert len(index) == 13
        assert index.search("something else stands there", size=1)[0].text.startswith("Something")


def test_what_does_not_fit_is_refused(tmp_path: Path, new_location: Any) -> None:
    location = new_location()
    texts = corpus(tmp_path / "corpus", 6)
    slice_os.pack(slice_os.read(texts), tmp_path / "packed")
    with pytest.raises(LocationError, match="has passages of 110 words"):
        slice_os.pack(slice_os.read(texts), tmp_path / "packed", passage_words=50)
    with pytest.raises(LocationError, match="holds no packed passages"):
        slice_os.load(texts, location)
    meta = tmp_path / "packed" / packed_files.META
    meta.write_text(meta.read_text().replace('"weights_hash": "', '"weights_hash": "0'))
    slice_os.index(slice_os.read(texts), location)
    with pytest.raises(EncoderMismatchError, match="was packed by the encoder"):
        slice_os.load(tmp_path / "packed", location)


@pytest.mark.parametrize("other", [b"PAR1 cut off", None])
def test_a_file_that_is_damaged_or_something_else_is_named(tmp_path: Path, other: Any) -> None:
    packed = tmp_path / "packed"
    slice_os.pack([("plan", "The customer wants to cancel.")], packed)
    file = packed / "survey01-x.parquet"
    if other is None:
        parquet.write_table(pyarrow.table({"document": ["plan"]}), file)
    else:
        file.write_bytes(other)
    with pytest.raises(LocationError, match=r"survey01-x\.parquet holds no packed passages"):
        slice_os.load(packed, tmp_path / "index.slice")
    with pytest.raises(LocationError, match="move it away"):
        slice_os.pack([("rain", "It rains.")], packed)


def test_a_long_document_is_written_in_parts_and_comes_back_whole(
    tmp_path: Path, new_location: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = new_location()
    direct = new_location()
    monkeypatch.setattr(packed_files, "_GROUP", 4)
    texts = faults.documents(count=4, large=400)
    slice_os.pack(texts, tmp_path / "packed")
    slice_os.load(tmp_path / "packed", location)
    slice_os.index(texts, direct)
    assert held(location) == held(direct)


def test_the_columns_are_those_that_are_documented(tmp_path: Path) -> None:
    slice_os.pack([("a", "A text.")], tmp_path / "packed")
    (file,) = (tmp_path / "packed").glob("*.parquet")
    columns = parquet.ParquetFile(file).schema_arrow.names
    text = (Path(__file__).parents[2] / "docs" / "scaling.md").read_text()
    assert [name for name in columns if f"| `{name}` |" not in text] == []


PACK = """
import sys
import slice_os
from support import faults
from slice_os.ingest import run
run.COMMIT_SECONDS = 0.0
slice_os.pack(faults.documents(count=24), sys.argv[1])
"""


@pytest.mark.slow
def test_runs_that_are_killed_lose_nothing_and_double_nothing(
    tmp_path: Path, new_location: Any
) -> None:
    location = new_location()
    direct = new_location()
    packed, rng = tmp_path / "packed", random.Random(0)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    for _ in range(5):
        process = subprocess.Popen([sys.executable, "-c", PACK, packed], env=environment)
        time.sleep(rng.uniform(1, 3))
        process.send_signal(signal.SIGKILL)
        process.wait()
    slice_os.pack(faults.documents(count=24), packed)
    slice_os.load(packed, location)
    slice_os.index(faults.documents(count=24), direct)
    assert held(location) == held(direct)


def test_the_verbs_pack_and_load(tmp_path: Path, new_location: Any) -> None:
    location = new_location()
    texts = corpus(tmp_path / "corpus", 6)
    (texts / "broken.json").write_text("{")
    done = run("pack", texts, "--output", tmp_path / "packed", ok=3)
    assert "6 documents packed" in done.stdout
    done = run("load", tmp_path / "packed", "--index", location)
    assert "6 documents loaded, 0 there before" in done.stdout
    done = run("load", tmp_path / "packed", "--index", location)
    assert "0 documents loaded, 6 there before" in done.stdout

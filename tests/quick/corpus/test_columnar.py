"""Parquet and Arrow files and data sets of Hugging Face: a document a row, as of other tables."""

from __future__ import annotations

import datetime as dt
import io
import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from slice_os.corpus import read
from slice_os.types import Reject
from support.corpus import read_file, read_rows, read_sound

UTC = dt.timezone.utc


def as_parquet(table: pa.Table, **options: Any) -> bytes:
    file = io.BytesIO()
    parquet.write_table(table, file, **options)
    return file.getvalue()


def as_feather(table: pa.Table, **options: Any) -> bytes:
    file = io.BytesIO()
    feather.write_feather(table, file, **options)
    return file.getvalue()


def as_stream(table: pa.Table) -> bytes:
    file = io.BytesIO()
    with pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    return file.getvalue()


WRITERS = [("a.parquet", as_parquet), ("a.feather", as_feather), ("a.arrow", as_stream)]


@pytest.mark.parametrize(("name", "write"), WRITERS)
def test_rows_are_documents_and_other_columns_metadata(
    tmp_path: Path, name: str, write: Any
) -> None:
    table = pa.table(
        {
            "id": [7, 8],
            "text": ["the first", "the second"],
            "title": ["One", None],
            "year": pa.array([2024, None], pa.int16()),
            "price": [Decimal("1.50"), Decimal("2.00")],
            "kind": pa.array(["a", "b"]).dictionary_encode(),
            "about": [{"by": {"name": "me"}, "n": None}, None],
            "tags": [["x", "y"], None],
            "pairs": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
            "at": pa.array([1_600_000_000_123_456_789, None], pa.timestamp("ns", "UTC")),
            "day": [dt.date(2024, 1, 2), None],
            "clock": pa.array([1_000_000_001, None], pa.time64("ns")),
            "takes": pa.array([1_000_000_001, None], pa.duration("ns")),
            "latin": [b"text", b"\x89PNG\xff"],
            "share": [float("nan"), 0.5],
        }
    )
    first, second = read_sound(tmp_path, name, write(table))
    assert (first.id, first.title, first.text) == (f"{name}#7", "One", "One\nthe first")
    assert first.metadata == {
        "year": 2024, "price": 1.5, "kind": "a", "about.by.name": "me", "tags": ["x", "y"],
        "pairs.k": 1, "at": "2020-09-13T12:26:40.123456Z", "day": "2024-01-02",
        "clock": "00:00:01", "takes": "0:00:01", "latin": "text", "share": "nan",
    }  # fmt: skip
    assert (second.id, second.text) == (f"{name}#8", "the second")
    assert second.metadata == {"price": 2, "kind": "b", "share": 0.5}


@pytest.mark.parametrize(("name", "write"), WRITERS)
def test_rows_of_many_batches_are_numbered_through(tmp_path: Path, name: str, write: Any) -> None:
    table = pa.table({"text": [f"text {n}" for n in range(5000)]})
    options = {"row_group_size": 700} if write is as_parquet else {}
    documents = read_sound(tmp_path, name, write(table, **options))
    assert [document.id for document in documents] == [f"{name}#{n}" for n in range(1, 5001)]
    assert documents[4321].text == "text 4321"


def test_columns_are_chosen_as_of_other_tables(tmp_path: Path) -> None:
    data = as_parquet(
        pa.table(
            {
                "key": ["k1", "k2"],
                "about": [None, {"body": "a text in a field"}],
                "more": ["another text of some words", "and one of even more words"],
            }
        )
    )
    first, second = read_sound(
        tmp_path, "a.parquet", data, text_fields=["about.body", "more"], id_field="key"
    )
    assert (first.id, first.text) == ("a.parquet#k1", "another text of some words")
    assert second.text == "a text in a field\nand one of even more words"
    _, rejects = read_rows(tmp_path, "a.parquet", data, text_fields=["nothing"])
    assert [reason for _, reason in rejects] == [
        "has no field 'nothing'; it has key, about, more, about.body"
    ]


def test_a_column_of_messages_is_a_conversation(tmp_path: Path) -> None:
    talk = [{"role": "user", "content": "I want to cancel."}, {"role": "agent", "content": "Why?"}]
    (document,) = read_sound(tmp_path, "a.parquet", as_parquet(pa.table({"messages": [talk]})))
    assert document.text == "user: I want to cancel.\nagent: Why?"


def test_a_value_that_is_none_costs_its_row_alone(tmp_path: Path) -> None:
    broken = pa.StringArray.from_buffers(
        2, pa.py_buffer(b"\0\0\0\0\2\0\0\0\4\0\0\0"), pa.py_buffer(b"ok\xff\xfe")
    )
    late = pa.array([0, 2**62], pa.timestamp("s"))
    table = pa.table({"text": ["one", "two"], "name": broken, "at": late})
    documents, rejects = read_rows(tmp_path, "a.feather", as_feather(table, compression="lz4"))
    assert [document.id for document in documents] == ["a.feather#1"]
    ((place, reason),) = rejects
    assert place == "2"
    assert reason.startswith("holds a value that cannot be read: ")


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.feather"])
@pytest.mark.parametrize("data", [b"", b"PAR1", b"ARROW1\0\0", b"PAR1" + b"\xff" * 50 + b"PAR1"])
def test_what_is_no_such_file_is_rejected(tmp_path: Path, name: str, data: bytes) -> None:
    documents, (reject,) = read_file(tmp_path, name, data)
    assert documents == []
    assert "is not a readable" in reject.reason


def test_a_file_that_is_cut_off_gives_what_stands_before(tmp_path: Path) -> None:
    batches = pa.table({"text": [f"text {n}" for n in range(3000)]}).to_batches(1000)
    file = io.BytesIO()
    with pa.ipc.new_stream(file, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    documents, rejects = read_file(tmp_path, "a.arrow", file.getvalue()[:-9000])
    assert len(documents) in (1000, 2000)
    assert len(rejects) == 1


def test_a_column_that_unpacks_to_too_much_is_rejected(tmp_path: Path) -> None:
    values = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000, pa.int32()), ["a" * (1 << 20)])
    data = as_parquet(pa.table({"text": values}), store_schema=False)
    assert len(data) < 2 << 20
    documents, (reject,) = read_file(tmp_path, "a.parquet", data)
    assert documents == []
    assert reject.reason == "takes more than 512 MB of memory: split it"


def test_a_data_set_of_hugging_face_is_its_rows(tmp_path: Path) -> None:
    """The folder as `datasets` writes it with save_to_disk, and what its cache leaves there."""
    for split in ("train", "test"):
        folder = tmp_path / "set" / split
        folder.mkdir(parents=True)
        for shard in range(2):
            table = pa.table({"text": [f"{split} {shard}"], "label": [shard]})
            (folder / f"data-0000{shard}-of-00002.arrow").write_bytes(as_stream(table))
        (folder / "cache-0123.arrow").write_bytes(as_stream(pa.table({"text": ["again"]})))
        (folder / "state.json").write_text(json.dumps({"_data_files": [], "_split": split}))
        (folder / "dataset_info.json").write_text(json.dumps({"features": {}}))
    (tmp_path / "set" / "dataset_dict.json").write_text(json.dumps({"splits": ["train", "test"]}))
    rejects: list[Reject] = []
    documents = [*read(tmp_path / "set", on_reject=rejects.append)]
    assert rejects == []
    assert [document.text for document in documents] == ["test 0", "test 1", "train 0", "train 1"]
    assert documents[0].id == "set/test/data-00000-of-00002.arrow#1"


WITHOUT = """
import sys
sys.modules["pyarrow"] = None
from slice_os.corpus.formats.columnar import parse_arrow, parse_parquet
for parse in (parse_parquet, parse_arrow):
    try:
        next(parse(None))
    except Exception as exc:
        print(exc)
"""


def test_without_pyarrow_the_pip_line_is_named() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        f"Reading {files} needs an optional package: pip install 'slice-os[parquet]'."
        for files in (".parquet files", ".arrow and .feather files")
    ]


PEAKS = """
import pathlib, re, resource, sys
from slice_os.corpus import parse_process, read
print(sum(1 for _ in read(sys.argv[1])))
parse_process._close_idle()
peak = re.search(r"VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())
print(peak[1], resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the peak")
def test_memory_does_not_grow_with_a_row_group(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    texts = [f"row {n} " + "word " * 800 for n in range(50_000)]
    path.write_bytes(as_parquet(pa.table({"text": texts}), compression=None, use_dictionary=False))
    done = subprocess.run(
        [sys.executable, "-c", PEAKS, path], capture_output=True, text=True, check=True
    )
    rows, peaks = done.stdout.splitlines()
    assert int(rows) == 50_000
    assert path.stat().st_size > 190 << 20
    assert max(map(int, peaks.split())) < 180 << 10

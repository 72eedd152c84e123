"""A file that takes too much, or breaks its reader, costs itself alone."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from slice_os.corpus import parse_process as apart
from slice_os.corpus import read
from slice_os.corpus.formats import FORMATS, Parsed, Row, Rows, Whole
from slice_os.errors import CorpusError
from slice_os.types import Reject


def forever(data: bytes) -> Parsed:
    while data:
        pass
    return Parsed("")


def sleeping(data: bytes) -> Parsed:
    time.sleep(1000)
    return Parsed("")


def hungry(data: bytes) -> Parsed:
    return Parsed("a" * (1 << 40))


def breaking(data: bytes) -> Parsed:
    os.kill(os.getpid(), signal.SIGSEGV)
    return Parsed("")


def talking(data: bytes) -> Parsed:
    os.write(1, b"a library says something\n")
    return Parsed(f"{data.decode()} \ud800")


def failing(data: bytes) -> Parsed:
    raise IndexError("no such place")


def writing_its_id(data: bytes) -> Parsed:
    Path(data.decode()).write_text(str(os.getpid()))
    return forever(data)


def rows(stream: io.BytesIO) -> Iterator[Row]:
    for number in range(2500):
        yield Row(number, {"text": f"row {number}"})
    raise CorpusError("ends here")


@pytest.fixture
def formats(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have formats of this file, which a process finds as it finds any module."""
    monkeypatch.syspath_prepend(Path(__file__).parent)
    monkeypatch.setattr(apart, "_idle", [])
    for parse in (forever, sleeping, hungry, breaking, failing, talking, writing_its_id, rows):
        monkeypatch.setattr(parse, "__module__", "test_apart")
        kind = Rows(parse, apart=True) if parse is rows else Whole(parse, apart=True)
        monkeypatch.setitem(FORMATS, f".{parse.__name__}", kind)
    yield
    apart._close_idle()


@pytest.mark.usefixtures("formats")
def test_what_takes_too_much_is_killed_and_the_next_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "SECONDS", 1)
    monkeypatch.setattr(apart, "_DEADLINE", 8)
    reasons = {
        "a.forever": "more than 1 s",
        "b.sleeping": "more than 1 s",
        "c.hungry": "512 MB",
        "d.breaking": "breaks its reader",
        "d.failing": "breaks its reader (IndexError: no such place)",
    }
    for name in (*reasons, "e.talking"):
        (tmp_path / name).write_text("text")
    rejects: list[Reject] = []
    began = time.monotonic()
    assert [d.text for d in read(tmp_path, on_reject=rejects.append)] == ["text \ufffd"]
    assert time.monotonic() - began < 60
    said = {Path(one.place).name: one.reason for one in rejects}
    assert said.keys() == reasons.keys()
    for name, reason in reasons.items():
        assert reason in said[name], name


@pytest.mark.usefixtures("formats")
def test_rows_come_from_another_process_and_those_before_an_error_stay(tmp_path: Path) -> None:
    (tmp_path / "a.rows").write_text("text")
    rejects: list[Reject] = []
    found = [d.text for d in read(tmp_path, on_reject=rejects.append)]
    assert found == [f"row {number}" for number in range(2500)]
    assert [one.reason for one in rejects] == ["ends here"]
    assert len(apart._idle) == 1
    for document in read(tmp_path):  # one that nobody goes on with does not wait for ever
        assert document.text == "row 0"
        break
    assert len(apart._idle) == 0


class Shrunk(io.BytesIO):
    """A file that was longer when its size was asked for."""

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return 1000 if whence == io.SEEK_END else super().seek(offset, whence)


def lines(stream: io.BytesIO) -> Iterator[Row]:
    for number, line in enumerate(stream):
        yield Row(number, {"text": line.decode()})


def test_a_file_that_becomes_shorter_is_rejected_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parent)
    monkeypatch.setattr(apart, "_idle", [])
    monkeypatch.setattr(lines, "__module__", "test_apart")
    assert [row.values["text"] for row in apart.rows_apart(lines, io.BytesIO(b"a\nb"))] == [
        "a\n",
        "b",
    ]
    with pytest.raises(CorpusError, match="has become shorter while it was read"):
        list(apart.rows_apart(lines, Shrunk(b"a text")))
    apart._close_idle()


PARENT = """
import sys
import test_apart
from slice_os.corpus import read
from slice_os.corpus.formats import FORMATS, Whole
FORMATS[".busy"] = Whole(test_apart.writing_its_id, apart=True)
list(read(sys.argv[1]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux ends it")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_busy_parse_process_ends_with_its_parent(tmp_path: Path, how: signal.Signals) -> None:
    (tmp_path / "a.busy").write_text(str(tmp_path / "id"))
    paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    run = [sys.executable, "-c", PARENT, str(tmp_path / "a.busy")]
    with subprocess.Popen(run, env={**os.environ, "PYTHONPATH": paths}) as parent:
        while not (tmp_path / "id").exists() or not (tmp_path / "id").read_text():
            assert parent.poll() is None
            time.sleep(0.01)
        state = Path("/proc", (tmp_path / "id").read_text(), "stat")
        parent.send_signal(how)
        parent.wait()
    ended = time.monotonic()
    while state.exists() and state.read_text().rpartition(") ")[2][0] != "Z":
        assert time.monotonic() - ended < 2
        time.sleep(0.01)

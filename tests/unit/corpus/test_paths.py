from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from slice_os.corpus import read
from slice_os.errors import CorpusError
from slice_os.records import Reject


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    top = tmp_path / "x" / "talks"
    for name in ["b.txt", "a/b.txt", "a/c.md", ".hidden.txt", ".git/d.txt", "z.log", "noext"]:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(name)
    (top / "dir.txt").mkdir()
    return top


def ids(*paths: str | Path) -> list[str]:
    return [document.id for document in read(*paths)]


def test_a_folder(folder: Path) -> None:
    corpus = read(folder)
    assert [d.id for d in corpus] == ["talks/b.txt", "talks/a/b.txt", "talks/a/c.md"]
    assert (corpus.documents, corpus.rejects, corpus.ignored) == (3, 0, 2)
    assert corpus.bytes_total == corpus.bytes_done == len("b.txta/b.txta/c.md")
    assert len(list(corpus)) == corpus.documents == 3


def test_ids_do_not_depend_on_the_working_directory(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = ids(folder)
    monkeypatch.chdir(folder)
    assert ids(".") == ids("../talks/") == ids("a/..") == expected
    assert ids("a/b.txt") == ["b.txt"]
    assert sorted(ids("**/*.txt")) == sorted(i for i in expected if i.endswith(".txt"))


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("x/talks/**/*.txt", ["talks/a/b.txt", "talks/b.txt"]),
        ("x/talks/**", ["talks/a/b.txt", "talks/a/c.md", "talks/b.txt"]),
        ("x/*/b.txt", ["x/talks/b.txt"]),
        ("x/talks/?.txt", ["talks/b.txt"]),
        ("x/talks/.hid*", ["talks/.hidden.txt"]),
    ],
)
def test_globs(folder: Path, pattern: str, expected: list[str]) -> None:
    assert ids(folder.parent.parent / pattern) == expected


def test_a_file_whose_name_looks_like_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "a[1].txt").write_text("text")
    assert ids(tmp_path / "a[1].txt") == ["a[1].txt"]


@pytest.mark.parametrize("name", ["missing.txt", "*.nothing", "dir.t*", ""])
def test_what_does_not_exist_is_an_error_at_once(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(CorpusError) as caught:
        read("b.txt", name)
    assert repr(name) in str(caught.value)
    assert str(caught.value).endswith(".")


def test_an_empty_folder_has_no_documents(tmp_path: Path) -> None:
    corpus = read(tmp_path)
    assert list(corpus) == []
    assert (corpus.documents, corpus.rejects, corpus.bytes_total) == (0, 0, 0)


def test_a_named_file_of_unknown_format_is_a_reject_and_others_go_on(folder: Path) -> None:
    rejects: list[Reject] = []
    corpus = read(folder / "z.log", folder / "b.txt", on_reject=rejects.append)
    assert rejects == []
    assert [d.id for d in corpus] == ["b.txt"]
    assert rejects == [Reject(str(folder / "z.log"), "unknown format '.log'")]
    assert corpus.rejects == 1


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    data = io.BytesIO("Größe\r\n".encode("utf-16"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(data))
    corpus = read("-")
    assert corpus.bytes_total is None
    assert [(d.id, d.text) for d in corpus] == [("stdin", "Größe \n")]


def test_links_in_a_circle_end(folder: Path) -> None:
    before = ids(folder)
    (folder / "a" / "loop").symlink_to(folder)
    (folder / "a" / "other").symlink_to(folder / "a")
    (folder / "dangling.txt").symlink_to(folder / "nowhere")
    rejects: list[Reject] = []
    corpus = read(folder, on_reject=rejects.append)
    assert [d.id for d in corpus] == before
    assert [Path(r.place).name for r in rejects] == ["dangling.txt"]
    assert len(ids(folder / "**/*.txt")) == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes in folders")
def test_pipes_are_never_opened(folder: Path) -> None:
    os.mkfifo(folder / "pipe.txt")
    corpus = read(folder)
    assert len(list(corpus)) == 3
    assert corpus.ignored == 3
    named = read(folder / "pipe.txt")
    assert list(named) == []
    assert named.rejects == 1


def test_an_unreadable_file_is_a_reject(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.open

    def refuse(self: Path, mode: str) -> object:
        if self.name == "c.md":
            raise PermissionError(13, "Permission denied")
        return real(self, mode)

    monkeypatch.setattr(Path, "open", refuse)  # root, who may run this, may read anything
    rejects: list[Reject] = []
    assert len(list(read(folder, on_reject=rejects.append))) == 2
    assert rejects == [Reject(str(folder / "a" / "c.md"), "Permission denied")]


@pytest.mark.parametrize(
    ("pattern", "met"),
    [("x/talks/**/*.txt", True), ("x/*/a/*.txt", True), ("x/talks/*.txt", False)],
)
def test_a_folder_that_a_glob_cannot_read_is_a_reject(
    folder: Path, monkeypatch: pytest.MonkeyPatch, pattern: str, met: bool
) -> None:
    (folder / "b").mkdir()
    (folder / "b/d.txt").write_text("d")
    pattern = pattern.replace("a/*.txt", "[ab]/*.txt")
    real = os.scandir

    def refuse(path: Any = ".") -> Any:
        if Path(os.fspath(path)).name == "a":
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", refuse)
    rejects: list[Reject] = []
    assert list(read(folder.parent.parent / pattern, on_reject=rejects.append))
    wanted = [Reject(str(folder / "a"), "Permission denied")] if met else []
    assert rejects == wanted


def test_what_is_excluded_is_not_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    left = ["talks/a/b.txt", "talks/a/c.md"]
    for found in (".", "**/*"):
        assert sorted(d.id for d in read(found, exclude=["b.txt"])) == left
    assert [d.id for d in read("b.txt", exclude=["b.txt"])] == ["b.txt"]  # it is named
    (folder / "link.txt").symlink_to("b.txt")
    for given in ("b.txt", "link.txt"):
        assert sorted(d.id for d in read(".", exclude=[given])) == left


def test_names_that_are_not_utf_8(tmp_path: Path) -> None:
    try:
        (tmp_path / "caf\udce9.txt").write_text("text")
    except OSError:
        pytest.skip("this file system refuses such names")
    assert ids(tmp_path) == [f"{tmp_path.name}/caf\ufffd.txt"]

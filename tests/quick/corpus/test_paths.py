from __future__ import annotations

import gzip
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from slice_os.corpus import read
from slice_os.errors import CorpusError
from slice_os.types import Reject


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
    for given in ([".", "a/b.txt"], [folder, "./a/../b.txt", "**/*.txt"]):
        assert sorted(ids(*given)) == sorted(expected)  # and each file is read once


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("x/talks/**/*.txt", ["a/b.txt", "b.txt"]),
        ("x/talks/**", ["a/b.txt", "a/c.md", "b.txt"]),
        ("x/*/b.txt", ["talks/b.txt"]),
        ("x/talks/?.txt", ["b.txt"]),
        ("x/talks/.hid*", [".hidden.txt"]),
    ],
)
def test_globs(folder: Path, pattern: str, expected: list[str]) -> None:
    assert sorted(ids(folder.parent.parent / pattern)) == expected


def test_a_glob_that_the_shell_expands_gives_the_same_ids(folder: Path) -> None:
    (folder / "c.txt").write_text("c")
    named = [folder / "b.txt", folder / "c.txt"]
    assert ids(folder / "*.txt") == ids(*named) == ["b.txt", "c.txt"]


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


def test_a_named_file_of_unknown_format_is_read_if_it_is_text(folder: Path) -> None:
    (folder / "z.log.gz").write_bytes(gzip.compress(b"a packed log"))
    (folder / "page").write_text("\n<!DOCTYPE html><title>A page</title><p>Some <b>text</b>")
    (folder / "x.bin").write_bytes(bytes(range(256)))
    rejects: list[Reject] = []
    names = ("z.log", "z.log.gz", "page", "x.bin", "b.txt")
    corpus = read(*(folder / name for name in names), on_reject=rejects.append)
    texts = {document.id: document.text for document in corpus}
    assert (texts["z.log.gz"], texts["page"]) == ("a packed log", "Some text")
    assert rejects == [Reject(str(folder / "x.bin"), "unknown format: looks binary")]
    assert (corpus.documents, corpus.rejects) == (4, 1)


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    data = io.BytesIO("Größe\r\n".encode("utf-16"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(data))
    corpus = read("-", id="notes")
    assert corpus.bytes_total is None
    assert [(d.id, d.text) for d in corpus] == [("notes", "Größe \n")]
    found = []
    for text in ("one", "two", "one"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        found += [d.id for d in read("-")]
    assert found[0] == found[2] != found[1]
    assert found[0].startswith("stdin-")


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
    (folder / "other.slice.rejects.jsonl").write_text('{"place": "x.txt", "reason": "no text"}')
    for found in (".", "**/*"):
        corpus = read(found, exclude=["b.txt"], root="..")
        assert sorted(d.id for d in corpus) == left
        assert corpus.rejects == 0
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


def test_ids_start_at_the_root(folder: Path) -> None:
    top = folder.parent.parent
    named = read(folder / "a/b.txt", root=top, id_prefix="p/")
    assert [(d.id, d.source) for d in named] == [("p/x/talks/a/b.txt", "p/x/talks/a/b.txt")]
    (folder / "rows.jsonl").write_text('{"id": "r1", "text": "a"}\n{"text": "b"}')
    rows = list(read(folder / "rows.jsonl", root=folder))
    assert [(d.id, d.source) for d in rows] == [
        ("rows.jsonl#r1", "rows.jsonl"), ("rows.jsonl#2", "rows.jsonl")
    ]  # fmt: skip
    with pytest.raises(CorpusError, match=r"not in .*give --root FOLDER"):
        read(folder, root=folder / "a")
    with pytest.raises(CorpusError, match="is not a folder"):
        read(folder, root=folder / "b.txt")


def test_what_an_index_remembers_decides(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    known = read(".").under({})
    assert known == {"": os.path.realpath(folder.parent)}
    for given in ("a/b.txt", "../talks/a/b.txt", str(folder / "a" / "b.*"), "a/../a/b.txt"):
        corpus = read(given)
        assert corpus.under(known) == known
        assert [d.id for d in corpus] == ["talks/a/b.txt"]


def test_roots_do_not_overlap_and_no_two_files_share_an_id(tmp_path: Path) -> None:
    for name in ("a/docs/price.md", "b/docs/price.md", "a/b/docs/price.md", "c/docs/x.md"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(name)
    known = read(tmp_path / "a/docs").under({})
    other = tmp_path / "b/docs"
    refusals = {
        "Ids without a prefix belong to the folder": read(other, root=tmp_path / "b"),
        "overlaps with": read(other, root=tmp_path, id_prefix="all/"),
        "overlaps with .* begin with ''": read(tmp_path / "a", root=tmp_path / "a", id_prefix="x/"),
    }
    for message, corpus in refusals.items():
        with pytest.raises(CorpusError, match=message):
            corpus.under(known)
    second = read(other, id_prefix="b/")
    both = second.under(known)
    assert both == {**known, "b/": os.path.realpath(tmp_path / "b")}
    assert [d.id for d in second] == ["b/docs/price.md"]
    for corpus in (read(other), read(other / "*.md"), read(other, id_prefix="b/")):
        assert corpus.under(both) == both
        assert [d.id for d in corpus] == ["b/docs/price.md"]
    rejects: list[Reject] = []
    first = read(tmp_path / "a", on_reject=rejects.append)
    first.under(both)
    assert [d.id for d in first] == ["docs/price.md"]
    assert "would be one of the root" in rejects[0].reason


@pytest.mark.parametrize("given", ["docs", "docs/*.md", "docs/x.md"])
def test_a_second_folder_has_ids_under_its_own_name(tmp_path: Path, given: str) -> None:
    for name in ("a/notes/price.md", "b/docs/x.md", "c/docs/x.md"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(name)
    known = read(tmp_path / "a/notes").under({})
    corpus = read(tmp_path / "b" / given, tmp_path / "a/notes")
    roots = corpus.under(known)
    assert roots == {**known, "docs/": os.path.realpath(tmp_path / "b/docs")}
    assert [d.id for d in corpus] == ["docs/x.md", "notes/price.md"]
    with pytest.raises(CorpusError, match="such as --id-prefix docs-2/"):
        read(tmp_path / "c" / given).under(roots)


def test_a_root_that_is_gone_can_be_given_anew(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old/a.txt").write_text("a")
    known = read(tmp_path / "old/a.txt").under({})
    (tmp_path / "old").rename(tmp_path / "new")
    with pytest.raises(CorpusError, match=r"which is gone.*--root"):
        read(tmp_path / "new").under(known)
    moved = read(tmp_path / "new/a.txt", root=tmp_path / "new")
    assert moved.under(known) == {"": os.path.realpath(tmp_path / "new")}
    assert [d.id for d in moved] == ["a.txt"]


def test_links_are_what_they_lead_to_if_that_is_in_the_root(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = ids(folder)
    (tmp_path / "way").symlink_to(folder)
    monkeypatch.chdir(tmp_path / "way")
    assert ids(".") == ids(tmp_path / "way") == expected
    (folder / "again.txt").symlink_to("a/b.txt")
    assert sorted(ids(".")) == sorted(ids(folder)) == sorted(expected)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "e.txt").write_text("e")
    (folder / "e.txt").symlink_to(elsewhere / "e.txt")
    corpus = read(".")
    assert "talks/e.txt" not in [d.id for d in corpus]
    assert corpus.unfollowed == 1
    assert "talks/e.txt" in [d.id for d in read(".", follow=True)]
    assert [d.text for d in read("e.txt")] == ["e"]  # it is named


def test_folder_links_out_of_the_tree_are_followed_only_if_asked(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "e.txt").write_text("e")
    (folder / "out").symlink_to(tmp_path / "elsewhere")
    (folder / "in").symlink_to(folder / "a")
    for given in (folder, folder / "*" / "*.txt"):
        corpus = read(given, root=folder)
        assert "out/e.txt" not in [d.id for d in corpus]
        assert corpus.unfollowed == 1
        assert "out/e.txt" in [d.id for d in read(given, root=folder, follow=True)]


def test_gitignore_and_patterns_leave_out_and_are_counted(folder: Path) -> None:
    for name in ("a/draft.txt", "a/keep.draft.txt", "build/x.txt", "a/build/y.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(name)
    (folder / ".gitignore").write_text("build/\n*draft.txt\n")
    (folder / "a/.gitignore").write_text("!keep.draft.txt\n")
    kept = {"talks/b.txt", "talks/a/b.txt", "talks/a/c.md", "talks/a/keep.draft.txt"}
    corpus = read(folder)
    assert {d.id for d in corpus} == kept
    assert (corpus.left_out, corpus.types) == (3, {".log": 1, "without an ending": 1})
    assert {d.id for d in read(folder / "**/*", root=folder.parent)} == kept
    assert len(list(read(folder, gitignore=False))) == 7
    assert [d.text for d in read(folder / "a/draft.txt")] == ["a/draft.txt"]  # it is named
    (folder / ".git").mkdir(exist_ok=True)
    assert {d.id for d in read(folder / "a", root=folder.parent)} == kept - {"talks/b.txt"}
    assert [d.text for d in read(folder / "build")] == ["build/x.txt"]
    (folder / "build/draft").mkdir()
    (folder / "build/draft/draft.txt").write_text("in a folder of it")
    assert [d.text for d in read(folder / "build/draft")] == ["in a folder of it"]
    only = read(folder, include=["*.md", "b.txt"], exclude=["a/b.*"])
    assert [d.id for d in only] == ["talks/b.txt", "talks/a/c.md"]
    assert {d.id for d in read(folder, exclude=["a"])} == {"talks/b.txt"}


def test_what_slice_os_wrote_is_no_corpus(folder: Path) -> None:
    from dataclasses import fields

    from slice_os.types import Match

    expected = ids(folder)
    names = [field.name for field in fields(Match)]
    (folder / "matches.csv").write_text(",".join(names) + "\n" + ",".join(names) + "\n")
    (folder / "m.jsonl").write_text(json.dumps(dict.fromkeys(names, "text")))
    (folder / "i.slice" / "segments").mkdir(parents=True)
    (folder / "i.slice" / "index.sqlite").write_text("")
    (folder / "i.slice" / "segments" / "a.txt").write_text("a")
    assert ids(folder) == expected

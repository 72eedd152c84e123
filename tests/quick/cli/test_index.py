"""The verb index: what it says, what it rejects, when it asks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.verbs import run

from .conftest import TEXTS

SLICE_OS = [str(Path(sys.executable).with_name("slice-os"))]


def test_index_says_what_it_did_and_does_it_once(corpus, tmp_path):
    location = tmp_path / "i.slice"
    first = run("index", corpus, "--index", location)
    assert "3 documents indexed, 0 unchanged" in first.stdout
    assert "0 documents indexed, 3 unchanged" in run("index", corpus, "--index", location).stdout
    report = json.loads(run("index", corpus, "--index", location, "--json").stdout)
    assert (report["unchanged"], report["rejected"], report["encoded_words"]) == (3, 0, 0)
    piped = run("index", "-", "--index", location, input="A text from a pipe.")
    assert "1 document indexed" in piped.stdout
    assert run("index", corpus, "--index", location, "--prune").stdout.count("0 pruned") == 1
    run("index", "-", "--id", "pipe", "--index", location, input="A text.")
    again = run("index", "-", "--id", "pipe", "--index", location, input="Another text.")
    assert "1 document indexed (1 replaced)" in again.stdout


def test_rejects_take_the_place_of_rejects_alone(tmp_path):
    (tmp_path / "bad.jsonl").write_text('{"text": "fine words"}\nno json\n')
    corpus = tmp_path / "keep.jsonl"
    corpus.write_text('{"text": "kept words"}\n')
    arguments = ["index", tmp_path / "bad.jsonl", "--index", tmp_path / "i.slice", "--rejects"]
    assert "holds something else than rejects" in run(*arguments, corpus, ok=2).output
    assert corpus.read_text() == '{"text": "kept words"}\n'
    for _ in range(2):
        run(*arguments, tmp_path / "rejects.jsonl", ok=3)
    assert len((tmp_path / "rejects.jsonl").read_text().splitlines()) == 1


def test_what_is_rejected_is_written_counted_and_told_by_the_exit_code(tmp_path):
    (tmp_path / "bad.jsonl").write_text('{"text": "fine words"}\n{"text": \nno json\n')
    (tmp_path / "image.txt").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)))
    (tmp_path / "good.txt").write_text("Perfectly good words.")
    (tmp_path / "odd.xyz").write_text("?")
    result = run("index", tmp_path, "--index", tmp_path / "i.slice", "--prune", ok=3)
    assert "2 documents indexed" in result.stdout
    assert "3 rejected" in result.stderr
    assert "ignored" in result.stderr
    file = tmp_path / "i.slice.rejects.jsonl"
    rejects = [json.loads(line) for line in file.read_text().splitlines()]
    assert [Path(reject["place"]).name for reject in rejects] == [
        "bad.jsonl#2", "bad.jsonl#3", "image.txt"
    ]  # fmt: skip
    assert all(reject["reason"] for reject in rejects)
    (tmp_path / "bad.jsonl").unlink()
    (tmp_path / "image.txt").unlink()
    run("index", tmp_path / "good.txt", "--index", tmp_path / "i.slice")
    assert not file.exists()


def test_ids_do_not_depend_on_how_a_path_was_typed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a/docs/price.md", "b/docs/price.md"):
        Path(name).parent.mkdir(parents=True)
        Path(name).write_text("The price is ten dollars.")
    run("index", "a/docs", "--index", "i.slice")
    Path("a/docs/price.md").write_text("The price is twelve dollars.")
    again = run("index", "a/docs/price.md", "--index", "i.slice").stdout
    assert "1 document indexed (1 replaced), 0 unchanged" in again
    monkeypatch.chdir(tmp_path / "a" / "docs")
    for given in ("price.md", "*.md", tmp_path / "a", "."):
        out = run("index", given, "--index", "../../i.slice").stdout
        assert "0 documents indexed, 1 unchanged" in out
    monkeypatch.chdir(tmp_path)
    shown = run("index", "b/docs", "--index", "i.slice", ok=1).stderr
    assert "--id-prefix docs-2/" in shown
    assert shown.count("\n") == 1
    run("index", "b/docs", "--root", "b", "--id-prefix", "b/", "--index", "i.slice")
    status = json.loads(run("status", "--index", "i.slice", "--json").stdout)
    assert status["documents"] == 2
    assert status["details"]["roots"] == {"": str(tmp_path / "a"), "b/": str(tmp_path / "b")}
    assert f"b/ = {tmp_path / 'b'}" in run("status", "--index", "i.slice").stdout
    found = json.loads(run("search", "price", "--index", "i.slice", "--json").stdout)["hits"]
    assert {hit["document"] for hit in found} == {"docs/price.md", "b/docs/price.md"}


def test_prune_has_a_guard(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("share").mkdir()
    for number in range(9):
        Path(f"share/{number}.txt").write_text(f"Document number {number}.")
    run("index", "share", "--index", "i.slice")
    Path("share").rename("elsewhere")
    Path("share").mkdir()
    refused = run("index", "share", "--index", "i.slice", "--prune", ok=3)
    assert "9 documents, more than a third, would have gone" in refused.stderr
    assert "--prune-all" in refused.stderr
    out = run("index", "share", "--index", "i.slice", "--prune", "--json", ok=3).stdout
    assert (json.loads(out)["kept"], json.loads(out)["pruned"]) == (9, 0)
    assert "9 pruned" in run("index", "share", "--index", "i.slice", "--prune-all").stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a terminal of POSIX")
@pytest.mark.parametrize(("answer", "pruned"), [("y", 2), ("n", 0)])
def test_prune_asks_a_terminal(tmp_path, answer, pruned):
    import pty

    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(f"Document {name}.")
    run("index", tmp_path, "--index", tmp_path / "i.slice")
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").unlink()
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [*SLICE_OS, "index", tmp_path, "--index", tmp_path / "i.slice", "--prune"],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    while b"delete them?" not in shown:
        shown += os.read(ours, 1000)
    assert b"2 documents of 2 are gone" in shown
    os.write(ours, f"{answer}\n".encode())
    out, _ = child.communicate(timeout=60)
    os.close(ours)
    assert f"{pruned} pruned" in out.decode()
    assert child.returncode == (0 if pruned else 3)


def test_an_index_within_its_corpus_does_not_read_its_rejects(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("Perfectly good words.")
    (tmp_path / "image.txt").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)))
    for _ in range(2):
        assert "1 rejected" in run("index", ".", "--index", "my.slice", ok=3).stderr
    (tmp_path / "my.slice.rejects.jsonl").unlink()
    for found in (".", "**/*"):
        own = run("index", found, "--index", "my.slice", "--rejects", "own.jsonl", ok=3)
        assert "1 rejected" in own.stderr


def test_what_is_wrong_with_a_file_is_said_at_once(tmp_path):
    (tmp_path / "a.csv").write_text("key,summary,place\n" + "1,words,here\n" * 20)
    shown = run("index", tmp_path, "--index", tmp_path / "i.slice", ok=3).stderr
    assert "Rejected: " in shown
    assert "it has key, summary" in shown
    assert "1 rejected: see" in shown


def wait_for(condition):
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never came")


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_loses_nothing(tmp_path, kind):
    for n in range(200):
        (tmp_path / f"{n}.txt").write_text(f"Conversation {n}. " + TEXTS["talk.txt"] * 4)
    for delay in (0.5, 0.2, 1, 2, 4):  # until one falls in the middle of the work
        location = tmp_path / f"{delay}.slice"
        arguments = [*SLICE_OS, "index", "*.txt", "--index", str(location)]
        child = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
        wait_for((location / "index.sqlite").exists)
        time.sleep(delay)
        child.send_signal(kind)
        _, errors = child.communicate(timeout=60)
        assert "Traceback" not in errors
        kept = json.loads(run("status", "--index", location, "--json").stdout)["documents"]
        if child.returncode == 130 and 0 < kept < 200:
            break
    assert child.returncode == 130, errors
    assert "run the command again" in errors
    assert 0 < kept < 200
    rest = json.loads(run("index", str(tmp_path / "*.txt"), "--index", location, "--json").stdout)
    assert (rest["documents"], rest["unchanged"]) == (200 - kept, kept)


def test_index_without_paths_says_what_to_give(tmp_path):
    result = run("index", "--index", tmp_path / "i.slice", ok=2)
    assert "Nothing to index: give files, folders, globs or - (stdin), as in" in result.output

"""The command line: its help, and what people get wrong."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from slice_os.cli.main import VERBS
from support.verbs import run

SLICE_OS = [str(Path(sys.executable).with_name("slice-os"))]


def test_status_and_delete(corpus, tmp_path):
    location = tmp_path / "own.slice"
    run("index", corpus, "--index", location)
    state = json.loads(run("status", "--index", location, "--json").stdout)
    assert (state["documents"], state["meta"]["dimension"]) == (3, 384)
    assert "slice-english-v2" in run("status", "--index", location).stdout
    assert (
        "1 id not in the index"
        in run("delete", "a", "corpus/rows.jsonl#r1", "--index", location, ok=3).stderr
    )
    run("delete", "--filter", "year=1", "--index", location, input="n\n", ok=1)
    gone = run("delete", "--filter", "yaer=1", "--index", location, "--yes", ok=1).stderr
    assert "has a field 'yaer'" in gone
    run("delete", "--filter", "name=talk.pdf", "--index", location, "--yes")
    assert json.loads(run("status", "--index", location, "--json").stdout)["documents"] == 2


def test_the_location_may_come_from_the_environment(location, monkeypatch):
    monkeypatch.setenv("SLICE_OS_INDEX", str(location))
    assert "documents" in run("status").stdout


def test_encoder_info():
    info = json.loads(run("encoder-info", "--check", "--json").stdout)
    assert (info["name"], info["precision"]) == ("slice-english-v2", "int8")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["search", "x", "--index", "nowhere.slice"], "There is no index at nowhere.slice"),
        (["status", "--index", "notes.txt"], "is not a slice-os index"),
        (["index", "missing.txt", "--index", "i.slice"], "missing.txt"),
        (["index", "notes.txt", "--index", "notes.txt"], "is not a slice-os index"),
        (["index", "notes.txt", "--index", "i.slice", "--encoder", "no/such"], "no/such"),
        (["index", "notes.txt", "--index", "i.slice", "--device", "cuda"], "slice-os[gpu]"),
        (["search", " ", "--index", "LOCATION"], "The query is empty"),
        (["search", "x", "--index", "LOCATION", "--filter", "year"], "write field=value"),
        (["search", "x", "--index", "ftp://localhost:9200/a"], "name a folder"),
        (["mine", "--index", "LOCATION"], "give a file of phrases, or --phrase"),
        (["mine", "absent.txt", "--index", "LOCATION"], "absent.txt"),
        (["mine", "binary.bin", "--index", "LOCATION"], "binary.bin"),
        (["mine", "empty.txt", "--index", "LOCATION"], "holds no phrase"),
        (["mine", "bad.csv", "--index", "LOCATION"], "name and phrase"),
        (["mine", "--phrase", "x", "--index", "LOCATION", "--output", "m.xls"], ".csv or .jsonl"),
        (["mine", "--phrase", "x", "--index", "LOCATION", "--output", "no/m.csv"], "no/m.csv"),
        (["delete", "--index", "LOCATION"], "give document ids or a filter"),
        (["encoder-info", "no/such"], "no/such"),
        (["export", "no/such", "out"], "no/such"),
    ],
)
def test_mistakes_are_one_sentence_that_names_the_fix(arguments, says, location):
    Path("notes.txt").write_text("Some notes.")
    Path("binary.bin").write_bytes(bytes(range(256)))
    Path("empty.txt").write_text("# nothing\n\n")
    Path("bad.csv").write_text("a,b\n1,2\n")
    result = run(*[str(location) if a == "LOCATION" else a for a in arguments], ok=1)
    assert says in result.stderr
    progress, *errors = result.stderr.strip().splitlines()
    assert not errors or progress == "loading the checkpoint"
    assert not Path("i.slice").exists()


def test_a_text_cannot_steer_the_terminal(tmp_path):
    (tmp_path / "a.txt").write_text("A \x1b]0;title\x07 bell and \x1b[31m red words.")
    run("index", tmp_path / "a.txt", "--index", tmp_path / "i.slice")
    for verb in (["search", "red words"], ["mine", "--phrase", "red words", "--min-degree", 0]):
        shown = run(*verb, "--index", tmp_path / "i.slice").stdout
        assert "red words" in shown
        assert not {"\x1b", "\x07"} & set(shown)


def test_a_full_output_is_one_sentence(location):
    command = (
        f"{SLICE_OS[0]} mine --phrase the --min-degree 0 --json --index {location} > /dev/full"
    )
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "bug" not in done.stderr
    assert "No space left" in done.stderr


def test_usage_mistakes(location):
    assert "Did you mean 'search'?" in run("serach", "x", ok=2).stderr
    assert "--index" in run("search", "x", ok=2).stderr
    assert (
        "0<=x<=1"
        in run("mine", "--phrase", "x", "--min-degree", 7, "--index", location, ok=2).stderr
    )


def test_help_has_examples_and_is_in_the_documentation():
    docs = Path(__file__).parents[3] / "docs"
    made = runpy.run_path(str(docs / "cli.py"))["document"]()
    assert made == (docs / "cli.md").read_text(encoding="utf-8"), "run `make docs`"
    _, *verbs = made.split("\n## slice-os")
    assert len(verbs) > len(VERBS)
    for text in verbs:
        assert "slice-os" in text.split("Example")[1], text
    assert run("--help").stdout.strip() in made


def test_a_closed_pipe_is_no_error(location):
    command = f"{SLICE_OS[0]} mine --phrase the --min-degree 0 --nl --index {location} | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )
    assert done.stdout.count("\n") == 1
    assert done.stderr.count("Traceback") == done.stderr.count("Error") == 0


def test_a_closed_stdout_is_no_error(location):
    command = f"{SLICE_OS[0]} search terminate --index {location} >&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_without_a_runtime_the_pip_line_is_named(tmp_path):
    (tmp_path / "onnxruntime.py").write_text("raise ImportError('not here')")
    (tmp_path / "a.txt").write_text("words")
    done = subprocess.run(
        [*SLICE_OS, "index", "a.txt", "--index", "i.slice"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 1
    assert "pip install 'slice-os[cpu]'" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_arguments_that_are_no_utf_8_or_too_large_are_no_bugs(location, tmp_path):
    odd = b"caf\xe9 latte"
    output = tmp_path / "matches.csv"
    asked = (
        ("search", odd, "--json"),
        ("mine", "--phrase", odd, "--min-degree", "0.5", "--output", output),
        ("list", "--offset", "1000000000"),
    )
    for arguments in asked:
        done = subprocess.run(
            [*SLICE_OS, *arguments, "--index", location], capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert b"bug" not in done.stderr
    assert "caf" in output.read_text(encoding="utf-8")
    run("list", "--size", 2**63, "--index", location, ok=2)


def test_a_file_of_the_folder_names_the_index(location, tmp_path, monkeypatch):
    (tmp_path / "slice-os.toml").write_text(f'index = "{location}"\n')
    assert json.loads(run("status", "--json").stdout)["documents"]
    for unusable in (b"indx = 3\n", b'index = "\xff"\n'):
        (tmp_path / "slice-os.toml").write_bytes(unusable)
        assert "slice-os.toml cannot be used" in run("status", ok=2).stderr

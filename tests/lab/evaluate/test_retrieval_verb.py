"""`slice-os evaluate retrieval`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from slice_os.cli.main import main
from slice_os.lab.evaluate import evaluate_retrieval
from slice_os.lab.evaluate.collections import read_run
from slice_os.lab.evaluate.metrics import DEFAULT_MEASURES
from support.retrieval_set import QUERIES


def invoke(*arguments, code=0):
    result = CliRunner().invoke(main, ["evaluate", "retrieval", *map(str, arguments)])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def test_the_verb_prints_a_table(folder, place):
    arguments = [folder, "--index", place, "--setting", "lexical", "--setting", "dense"]
    report = evaluate_retrieval(folder, place, settings=["lexical", "dense"])
    lines = invoke(*arguments).stdout.splitlines()
    assert lines[0] == f"{folder}: 6 queries, 10 documents."
    assert lines[1].split() == ["setting", *DEFAULT_MEASURES]
    for line, (name, result) in zip(lines[2:], report.systems.items(), strict=False):
        cells = line.replace("*", "").split()
        assert cells[:6] == [name, *(f"{value:.4f}" for value in result.means.values())]
    assert "missed" in lines[2]
    (one,) = [one for one in report.comparisons if one.measure == "nDCG@10"]
    assert lines[-1].split()[:2] == ["dense", f"{one.difference:+.4f}"]


def test_the_verb_prints_json_and_writes_files(folder, place, tmp_path):
    result = invoke(
        folder, "--index", place, "--setting", "dense", "--json", "--output", tmp_path,
        "--measure", "P@1", "--depth", 5,
    )  # fmt: skip
    found = json.loads(result.stdout)
    assert found["systems"]["dense"]["measures"].keys() == {"P@1"}
    assert found == json.loads((tmp_path / "report.json").read_text())
    assert len((tmp_path / "dense.run").read_text().splitlines()) == 5 * len(QUERIES)


def test_the_verb_measures_run_files_alone(folder, place, tmp_path):
    invoke(folder, "--index", place, "--setting", "lexical", "--output", tmp_path)
    run = tmp_path / "lexical.run"
    report = json.loads(invoke(folder, "--run", run, "--json").stdout)
    assert list(report["systems"]) == [str(run)]
    both = invoke(folder, "--run", run, "--setting", "dense", "--baseline", run, "--index", place)
    assert f"less that of {run}" in both.stdout


def test_the_verb_says_what_is_wrong_in_one_sentence(folder, tmp_path):
    assert invoke(tmp_path, code=1).stderr.count("\n") == 1
    assert "has no mode" in invoke(folder, "--setting", "fast", code=1).stderr


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_verb_with_whole_files(folder, tmp_path, kind):
    command = [str(Path(sys.executable).with_name("slice-os")), "evaluate", "retrieval"]
    command += [str(folder), "--output", str(tmp_path / "out")]
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    deadline = time.monotonic() + 240
    while not (tmp_path / "out" / "lexical.run").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(kind)
    _, said = process.communicate(timeout=240)
    assert process.returncode == 130
    assert "Interrupted." in said
    assert not list(temporary.glob("slice-os-*"))  # the index of this evaluation alone
    assert all(path.suffix == ".run" for path in (tmp_path / "out").iterdir())
    assert read_run(tmp_path / "out" / "lexical.run")

"""What a run says: its log in JSON and its metrics, whatever becomes of it, and nothing secret."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families

import slice_os
from slice_os.cli import main
from slice_os.cli.log import prometheus_text
from slice_os.errors import MissingExtraError
from support.credentials import PASSWORD, SECRETS, USER
from support.proxy import closed, proxied

SLICE_OS = str(Path(sys.executable).with_name("slice-os"))
TEXT = "Zanzibarian xylophones"
"""What no log may hold."""
ENVIRONMENT = {
    "SLICE_OS_USER": USER,
    "SLICE_OS_PASSWORD": PASSWORD,
    "AWS_SECRET_ACCESS_KEY": SECRETS[-1],
}


def start(*arguments, **environment):
    return subprocess.Popen(
        [SLICE_OS, *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **environment},
    )  # fmt: skip


def run(*arguments, code=0, **environment):
    """Return what a run writes to stdout and, line by line, what it logs in JSON."""
    out, err = start(*arguments, "--log-format", "json", **environment).communicate(timeout=60)
    lines = [json.loads(line) for line in err.splitlines()]
    for line in lines:
        assert {"time", "level", "logger", "message"} <= line.keys()
    (end,) = [line for line in lines if "exit_code" in line]
    assert end["exit_code"] == code
    return out, lines


def metrics(file="m.prom"):
    """Return the gauges of a file as Prometheus reads them, and their labels."""
    families = list(text_string_to_metric_families(Path(file).read_text(encoding="utf-8")))
    assert {family.type for family in families} == {"gauge"}
    samples = [sample for family in families for sample in family.samples]
    (labels,) = {tuple(sample.labels.items()) for sample in samples}
    return {s.name.removeprefix("slice_os_run_"): s.value for s in samples}, dict(labels)


def write(count=3):
    folder = Path("corpus")
    folder.mkdir(exist_ok=True)
    for number in range(count):
        if not (file := folder / f"{number}.txt").exists():
            file.write_text(f"{TEXT} are played here. This is text {number}.")
    return folder


def test_a_run_counts_and_says_so_at_its_end():
    out, lines = run("index", write(), "--index", "i.slice", "--metrics", "m.prom")
    assert "3 documents indexed" in out
    (end,) = lines
    assert (end["level"], end["verb"], end["index"]) == ("info", "index", "i.slice")
    told, labels = metrics()
    assert labels == {"verb": "index", "index": "i.slice"}
    assert abs(told["end_timestamp_seconds"] - time.time()) < 60
    for name in (
        "documents", "passages", "words", "spans", "retries", "rejected", "exit_code",
        "encoding_seconds", "writing_seconds", "sending_seconds", "waiting_seconds",
    ):  # fmt: skip
        assert told[name] == end[name], name
    assert (told["documents"], told["passages"], told["rejected"]) == (3, 3, 0)
    assert told["seconds"] >= told["encoding_seconds"] > 0
    report = json.loads(run("index", write(4), "--index", "i.slice", "--json")[0])
    assert report["passages"] == 1
    assert {"spans", "retries", "encoding_seconds", "waiting_seconds"} <= report.keys()
    assert not list(Path().glob(".m.prom*"))


def test_the_rate():
    write(60)
    out, _ = run("index", "corpus", "--index", "i.slice", "--max-rate", 20, "--json")
    report = json.loads(out)
    assert report["passages"] == 60 <= 20 * (report["seconds"] + 1)  # the first 20 come at once


def test_rejects_and_a_failure_have_metrics():
    folder = write()
    (folder / "binary.txt").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)))
    (folder / "odd.xyz").write_text("?")
    _, lines = run("index", folder, "--index", "i.slice", "--metrics", "m.prom", code=3)
    told, _ = metrics()
    assert (told["exit_code"], told["rejected"], told["ignored"], told["documents"]) == (3, 1, 1, 3)
    assert [line["level"] for line in lines] == ["warning"] * 3 + ["info"]
    _, lines = run("index", "nowhere", "--index", "i.slice", "--metrics", "m.prom", code=1)
    assert lines[-1]["level"] == "error"
    assert "nowhere" in lines[-1]["message"]
    told, _ = metrics()
    assert (told["exit_code"], told["documents"]) == (1, 0)
    run("index", "--index", "i.slice", "--metrics", "m.prom", code=2)
    assert metrics()[0]["exit_code"] == 2
    _, err = start("index", folder, "--index", "i", "--metrics", "no/m.prom").communicate()
    assert err == "Error: no/m.prom cannot be written: there is no such folder.\n"
    assert not Path("i").exists()


def test_an_interrupted_run_has_metrics():
    write(300)
    child = start("index", "corpus", "--index", "i.slice", "--metrics", "m.prom",
                  "--max-rate", "50", "--log-format", "json")  # fmt: skip
    end = time.monotonic() + 60
    while not Path("i.slice/index.sqlite").exists():
        assert time.monotonic() < end
        time.sleep(0.05)
    time.sleep(2)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 130, err
    told, _ = metrics()
    assert told["exit_code"] == 130
    assert 0 < told["documents"] < 300
    with slice_os.open("i.slice") as index:
        assert len(index) == told["documents"]
    warning, ended = map(json.loads, err.splitlines())
    assert warning["message"].startswith("Interrupted: every complete document")
    assert ended["exit_code"] == 130


def test_whoever_reads_the_metrics_never_reads_half():
    write()
    stop, wrong = threading.Event(), []

    def read():
        while not stop.is_set():
            if Path("m.prom").exists() and "end_timestamp" not in Path("m.prom").read_text():
                wrong.append("half")

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for _ in range(2):
            run("index", "corpus", "--index", "i.slice", "--metrics", "m.prom")
    finally:
        stop.set()
        reader.join()
    assert not wrong


def test_names_that_prometheus_quotes():
    labels = {"index": 'C:\\new "index"\nhere'}
    (family,) = text_string_to_metric_families(prometheus_text({"documents": 2}, labels))
    assert family.samples[0].labels == labels
    assert (family.samples[0].name, family.samples[0].value) == ("slice_os_run_documents", 2)


def test_every_line_is_an_object():
    """Python's warnings, other libraries' and ours; what would not be shown as text is not."""
    code = """
import logging, warnings
from slice_os.cli.log import json_log, say
with json_log():
    warnings.warn("an old way")
    logging.getLogger("other").warning("of %s", "another")
    logging.getLogger("other").info("not shown")
    logging.getLogger("slice_os.corpus").warning("of ours")
    quiet = logging.getLogger("opensearch")
    quiet.addHandler(logging.NullHandler())
    quiet.warning("not shown")
    try:
        raise KeyError("a document's text")
    except KeyError:
        logging.getLogger("other").exception("failed")
    say("said", place="here")
say("as text")
logging.getLogger("other").warning("as text too")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *lines, text, other = done.stderr.splitlines()
    assert (text, other) == ("as text", "as text too")
    told = [json.loads(line) for line in lines]
    assert [one["logger"] for one in told] == [
        "py.warnings", "other", "slice_os.corpus", "other", "slice_os.cli"
    ]  # fmt: skip
    assert [one["level"] for one in told] == ["warning"] * 3 + ["error", "warning"]
    assert "an old way" in told[0]["message"]
    assert told[1]["message"] == "of another"
    assert told[3]["exception"] == "KeyError"
    assert "document's text" not in done.stderr
    assert told[4]["place"] == "here"


def test_the_environment_chooses_the_format_too():
    child = start("index", "nowhere", "--index", "i", SLICE_OS_LOG_FORMAT="json")
    _, err = child.communicate()
    assert [json.loads(line)["level"] for line in err.splitlines()] == ["info", "error"]


@pytest.mark.parametrize("paths", [["corpus"], []])
def test_a_login_in_the_address_is_not_repeated(paths):
    write()
    place = f'https://{USER}:{PASSWORD}"@host:9200/x'
    _, lines = run("index", *paths, "--index", place, "--metrics", "m.prom", code=1 + (not paths))
    said = json.dumps(lines, ensure_ascii=False) + Path("m.prom").read_text(encoding="utf-8")
    assert "host:9200/x" in said
    assert USER not in said
    assert "wörd" not in said


@pytest.mark.parametrize("what", ["good", "bad", "refused", "away", "down"])
def test_no_log_holds_a_secret_or_a_text(what, monkeypatch):
    """Rejects, errors, a cluster that refuses: and as text, the rejects file holds what it says."""
    folder = write()
    arguments = ["--metrics", "m.prom"]
    code = 0
    if what == "bad":  # a table without a header: its first row is taken for one
        (folder / "table.csv").write_text(f"{TEXT},{TEXT}\n1,2\n")
        (folder / "broken.txt").write_bytes(f"{TEXT} \x81 caf\xe9.".encode("latin-1") + b"\xff")
        code = 3

    def refuse(headers):
        body = json.dumps({"error": f"not {headers.get('authorization')}"}).encode()
        return 401, "application/json", body

    with proxied(closed(), refuse) as proxy:
        place = {"refused": f"{proxy.url}/x", "away": f"{closed()}/x", "down": "/proc/x/i"}
        code = code or int(what in place)
        out, lines = run("index", folder, "--index", place.get(what, "i.slice"), *arguments,
                         code=code, **ENVIRONMENT)  # fmt: skip
        if what == "refused":
            assert any("authorization" in map(str.lower, one.headers) for one in proxy.requests)
    said = json.dumps(lines, ensure_ascii=False) + out + Path("m.prom").read_text()
    assert lines
    assert TEXT not in said
    assert not [secret for secret in SECRETS if secret in said]
    if what == "bad":
        rejected = Path("i.slice.rejects.jsonl").read_text(encoding="utf-8")
        assert TEXT in rejected  # the reason that the log leaves out


def test_an_interrupt_while_a_module_is_loaded_is_one(monkeypatch, tmp_path):
    failed = ImportError("initialization failed")
    failed.__cause__ = KeyboardInterrupt()

    def load(*_arguments, **_options):
        raise MissingExtraError("Encoding", "cpu") from failed

    monkeypatch.setattr(slice_os, "open", load)
    done = CliRunner().invoke(main, ["search", "rain", "--index", str(tmp_path / "a.slice")])
    assert (done.exit_code, done.output) == (130, "Interrupted.\n")

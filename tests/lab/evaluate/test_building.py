"""`slice-os dataset build-context` against a small server that answers well, badly and slowly."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from slice_os.errors import EvaluationError
from slice_os.lab.evaluate.build_context import build_context, read_sheets, write_sheet
from slice_os.lab.evaluate.context import read_context
from slice_os.lab.evaluate.language_model import Endpoint

SLICE_OS = Path(sys.executable).with_name("slice-os")
AROUND = "We met on Monday and spoke for an hour, and {} was what we heard before the rain came."
PAIRS = "score\tsentence1\tsentence2\n" + "".join(
    f"{k % 6}\tphrase number {k}\tthe saying number {k} of all\n" for k in range(10)
)


class Model:
    """An endpoint whose `answer` (said words, how often they were asked for) may be changed."""

    def __init__(self):
        self.asked: list[str] = []
        self.prompts: list[str] = []
        self.keys: set[str | None] = set()
        self.answer = lambda said, times: (200, AROUND.format(said))
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                model.prompts.append(body["messages"][0]["content"])
                said = re.search(r'(?:phrase is: |")([^"]+)', model.prompts[-1])[1]
                model.asked.append(said)
                model.keys.add(self.headers.get("Authorization"))
                status, text = model.answer(said, model.asked.count(said))
                data = text if status else json.dumps({"wrong": text})
                if status == 200:
                    data = json.dumps({"choices": [{"message": {"content": text}}]})
                self.send_response(status or 200)
                self.send_header("Content-Length", str(len(data.encode())))
                self.end_headers()
                self.wfile.write(data.encode())

            def log_message(self, *args):
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


@pytest.fixture
def model():
    one = Model()
    yield one
    one.server.shutdown()
    one.server.server_close()


@pytest.fixture
def pairs(tmp_path):
    (tmp_path / "pairs.tsv").write_text(PAIRS)
    return tmp_path / "pairs.tsv"


def endpoint(model, **more):
    return Endpoint(model.url, "writer", **more)


def test_a_set_is_built_and_can_be_evaluated_on(model, pairs, tmp_path):
    told = []
    report = build_context(
        pairs, tmp_path / "o.jsonl", endpoint(model), progress=lambda *one: told.append(one)
    )
    assert (report.pairs, report.built, report.known, report.failures) == (10, 10, 0, {})
    assert told[-1][:2] == (10, 10)
    found = read_context(tmp_path / "o.jsonl")
    assert {pair.query for pair in found} == {f"phrase number {k}" for k in range(10)}
    about = json.loads((tmp_path / "o.jsonl.about.json").read_text())
    assert about["model"] == "writer"
    assert "{paraphrase}" in about["prompt"]


def test_bad_answers_are_asked_again_and_counted(model, pairs, tmp_path):
    def answer(said, times):
        number = int(re.search(r"\d+", said)[0])
        if number == 0:
            return 200, "A passage about something else, " * 5
        if number == 1:
            return 200, f"{said} briefly"
        if number == 2 and times < 3:
            return 200, ""
        if number == 3 and times == 1:
            return 503, "busy"
        if number == 4:
            return 200, AROUND.format(said).replace(said, said.upper())
        return 200, f'"{AROUND.format(said)}"'  # quoted, as models like to

    model.answer = answer
    report = build_context(pairs, tmp_path / "o.jsonl", endpoint(model), attempts=3, words=(20, 60))
    assert report.built == 8
    assert report.failures == {"without the paraphrase": 1, "not of 20 to 60 words": 1}
    assert model.asked.count("the saying number 2 of all") == 3
    assert all(not pair.passage.startswith('"') for pair in read_context(tmp_path / "o.jsonl"))


def test_a_slow_answer_is_given_up_and_asked_again(model, pairs, tmp_path):
    def answer(said, times):
        if times == 1 and "number 4 " in said:
            time.sleep(1.5)
        return 200, AROUND.format(said)

    model.answer = answer
    report = build_context(pairs, tmp_path / "o.jsonl", endpoint(model, timeout=0.5))
    assert report.built == 10
    assert model.asked.count("the saying number 4 of all") == 2


def test_what_was_built_is_not_asked_for_again(model, pairs, tmp_path):
    out = tmp_path / "o.jsonl"

    def answer(said, times):
        return (401, "no such key") if len(model.asked) > 6 else (200, AROUND.format(said))

    model.answer = answer
    with pytest.raises(EvaluationError, match=r"status 401 .no such key.*OPENAI_API_KEY"):
        build_context(pairs, out, endpoint(model), workers=1)
    with out.open("a") as file:
        file.write('{"line": "phrase number 9", "para')  # as a killed process leaves it
    before = set(model.asked[:6])
    model.asked.clear()
    model.answer = lambda said, times: (200, AROUND.format(said))
    report = build_context(pairs, out, endpoint(model))
    assert report.known == 6
    assert report.built == 4
    assert not before & set(model.asked)
    assert len(read_context(out)) == 10
    with pytest.raises(EvaluationError, match="another model or prompt"):
        build_context(pairs, out, Endpoint(model.url, "other"))


def test_what_cannot_be_used(model, pairs, tmp_path, monkeypatch):
    for name in ("OPENAI_BASE_URL", "OPENAI_MODEL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(EvaluationError, match="set OPENAI_BASE_URL"):
        Endpoint()
    with pytest.raises(EvaluationError, match="set OPENAI_MODEL"):
        Endpoint(model.url)
    with pytest.raises(EvaluationError, match=r"end in \.jsonl"):
        build_context(pairs, tmp_path / "o.csv", endpoint(model))
    model.answer = lambda said, times: (0, "")
    with pytest.raises(EvaluationError, match="OpenAI-compatible"):
        build_context(pairs, tmp_path / "o.jsonl", endpoint(model))
    with pytest.raises(EvaluationError, match="cannot be reached"):
        build_context(pairs, tmp_path / "p.jsonl", Endpoint("http://127.0.0.1:9", "m", retries=0))


def test_a_passage_may_have_any_length_and_its_first_letter_is_drawn(model, pairs, tmp_path):
    model.answer = lambda said, times: (200, f"So {said}.")
    (tmp_path / "many.tsv").write_text(
        "score\tsentence1\tsentence2\n" + "".join(f"1\tone {k}\tother {k}\n" for k in range(200))
    )
    report = build_context(tmp_path / "many.tsv", tmp_path / "o.jsonl", endpoint(model))
    assert report.built == 200
    assert len(model.asked) == 200  # once each
    letters = [re.search(r"start with the letter ([A-Z]) ", text)[1] for text in model.prompts]
    assert len(set(letters)) > 20
    first = dict(zip(model.asked, letters, strict=True))
    (tmp_path / "o.jsonl").unlink()
    before = len(model.prompts)
    build_context(tmp_path / "many.tsv", tmp_path / "o.jsonl", endpoint(model))
    prompts = model.prompts[before:]
    again = [re.search(r"start with the letter ([A-Z]) ", text)[1] for text in prompts]
    assert dict(zip(model.asked[before:], again, strict=True)) == first


def test_a_prompt_of_ones_own_has_named_fields(model, pairs, tmp_path):
    asked = 'Begin with {letter}, say "{paraphrase}" for {phrase}, in {{JSON}}, {low}-{high} words.'
    build_context(pairs, tmp_path / "o.jsonl", endpoint(model), prompt=asked, words=(15, 50))
    pattern = (
        r'Begin with [A-Z], say "the saying number (\d) of all" for phrase number \1, '
        r"in \{JSON\}, 15-50 words\."
    )
    assert all(re.fullmatch(pattern, text) for text in model.prompts)


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ("Say {paraphrase} to {reader}.", r"'reader'.*use the fields \{phrase\}, \{paraphrase\}"),
        ("Say {paraphrase} in {low} words.", r"'low'.*--words gives"),
        ("Say {} or {paraphrase}.", "not usable"),
        ("Say {paraphrase.text}.", "'text'"),
        ("Say {paraphrase} as {JSON: 1}.", "'JSON'"),
        ("Say {paraphrase:d}.", "not usable"),
        ("Say {paraphrase.", "not usable"),
        ("Say it }.", "not usable"),
        ("Say {phrase}.", "does not say {paraphrase}"),
    ],
)
def test_a_prompt_that_is_none(model, pairs, tmp_path, prompt, message):
    with pytest.raises(EvaluationError, match=message) as caught:
        build_context(pairs, tmp_path / "o.jsonl", endpoint(model), prompt=prompt)
    assert "\n" not in str(caught.value)
    assert not model.asked
    assert not (tmp_path / "o.jsonl").exists()


def test_people_confirm_what_was_built(model, pairs, tmp_path):
    out, sheets = tmp_path / "o.jsonl", [tmp_path / "a.csv", tmp_path / "b.csv"]
    command = [SLICE_OS, "dataset", "build-context", pairs, out]
    command += ["--annotate", sheets[0], "--annotate", sheets[1]]
    environment = {**os.environ, "OPENAI_BASE_URL": model.url, "OPENAI_MODEL": "m"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert "10 rows to confirm" in done.stderr
    asked = len(model.asked)
    failed = subprocess.run(command, capture_output=True, text=True)
    assert failed.stderr == f"Error: {sheets[0]} has no answer: write yes or no into confirmed.\n"
    # The first says yes to all but number 3; the second no to number 4, and nothing to number 5.
    for sheet, answers in zip(sheets, ({"3": "no"}, {"4": "No", "5": ""}), strict=True):
        with sheet.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            row["confirmed"] = answers.get(re.search(r"\d", row["line"])[0], "yes")
        with sheet.open("w", encoding="utf-8", newline="") as file:
            made = csv.DictWriter(file, rows[0].keys(), delimiter=";")  # as Excel may save it
            made.writeheader()
            made.writerows(rows)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "7 rows confirmed; 2 refused, 1 not answered by all" in done.stdout
    assert len(model.asked) == asked
    kept = {pair.query[-1] for pair in read_context(tmp_path / "o.confirmed.jsonl")}
    assert kept == set("0126789")
    other = tmp_path / "other.jsonl"
    other.write_text(out.read_text().replace("number 7", "number 77"))
    with pytest.raises(EvaluationError, match=r"has 1 rows that .*other\.jsonl does not have"):
        read_sheets(other, sheets[:1], tmp_path / "none.jsonl")
    sheets[0].write_text(sheets[0].read_text().replace("yes", "perhaps"))
    with pytest.raises(EvaluationError, match=r"line \d+: the column confirmed says 'perhaps'"):
        read_sheets(out, sheets, tmp_path / "none.jsonl")
    with pytest.raises(EvaluationError, match=r"must end in \.csv"):
        write_sheet(out, tmp_path / "sheet.xlsx")


def test_the_command_line_keeps_the_key_to_itself(model, pairs, tmp_path):
    model.answer = lambda said, times: (403, "go away")
    command = [SLICE_OS, "dataset", "build-context", pairs, tmp_path / "o.jsonl"]
    environment = {
        **os.environ,
        "OPENAI_API_KEY": "sk-secret",
        "OPENAI_BASE_URL": model.url,
        "OPENAI_MODEL": "m",
    }
    found = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert found.returncode == 1
    assert "status 403" in found.stderr
    assert "secret" not in found.stderr + found.stdout
    assert model.keys == {"Bearer sk-secret"}
    model.answer = lambda said, times: (200, AROUND.format(said) if "number 1 " in said else "")
    found = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert found.returncode == 3
    assert "1 passage built" in found.stdout
    assert "without the paraphrase: 9" in found.stderr
    model.asked.clear()
    model.answer = lambda said, times: (200, AROUND.format(said.upper()))
    found = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert "9 passages built, 1 were there" in found.stdout
    assert len(model.asked) == 9  # what failed is asked for again, and once

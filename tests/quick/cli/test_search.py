"""The verbs search, list and show: what they print."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from slice_os.cli.output import echo_json, mark, shorten
from support.verbs import run

from .conftest import TEXTS

SLICE_OS = [str(Path(sys.executable).with_name("slice-os"))]
HIT = ["document", "passage", "title", "text", "score", "degree", "spans", "metadata",
       "document_start", "document_end", "probability"]  # fmt: skip
SPAN = ["start", "end", "text", "degree", "in_context_degree", "contributions", "opposition"]


def test_a_filter_that_is_not_utf_8(location):
    shown = run("search", "cancel", "--index", location, "--filter", "a=\udcff", ok=1).stderr
    assert "is not understood" in shown


def test_search_marks_the_words(location):
    out = run("search", "wants to cancel", "--index", location, "--size", 2).stdout
    first = out.splitlines()[1]
    assert "cancel" in first[first.index("«") : first.index("»")]
    assert "talk.txt#0" in out.splitlines()[0]
    assert "Liability" not in first


def test_search_json(location):
    found = json.loads(run("search", "wants to cancel", "--index", location, "--json").stdout)
    assert list(found) == ["query", "hits"]
    for hit in found["hits"]:
        assert list(hit) == HIT
        assert [list(span) for span in hit["spans"]] == [SPAN] * len(hit["spans"])
    lines = run("search", "wants to cancel", "--index", location, "--nl").stdout.splitlines()
    assert [json.loads(line) for line in lines] == found["hits"]
    only = run("search", "sea", "--index", location, "--filter", "year>1900", "--nl").stdout
    assert json.loads(only)["document"].endswith("rows.jsonl#r1")
    assert json.loads(only)["metadata"] == {"path": "corpus/rows.jsonl", "year": 1912}


def test_exact_words_on_the_command_line(location):
    def found(*args):
        return {
            json.loads(line)["document"].split("/")[-1]
            for line in run(*args, "--index", location, "--nl").stdout.splitlines()
        }

    assert found("search", 'the bill "my plan" is high') == {"talk.txt"}
    assert found("search", "the bill is high -plan") == {"deal.txt", "rows.jsonl#r1"}
    assert found("search", "the bill", "--must", "ship", "--must-not", "plan") == {"rows.jsonl#r1"}
    assert len(found("search", 'the "nowhere" bill', "--literal")) == 3
    only = run("search", "--index", location, "--nl", "--", '-plan "ship" sank').stdout
    assert json.loads(only)["document"].endswith("rows.jsonl#r1")
    mined = ("mine", "--phrase", "the bill is high", "--min-degree", 0)
    assert found(*mined, "--must-not", "plan") == {"deal.txt", "rows.jsonl#r1"}
    assert found("mine", "--phrase", 'a "ship" sank', "--min-degree", 0) == {"rows.jsonl#r1"}
    assert len(found("mine", "--phrase", 'a "bill"', "--min-degree", 0, "--literal")) == 3
    body = json.loads(run("query", 'late "my plan" -fee').stdout)
    assert '{"match_phrase": {"text.exact": "my plan"}}' in json.dumps(body)
    assert '"must_not": [{"match_phrase": {"text.exact": "fee"}}]' in json.dumps(body)
    assert '"late my plan"' in json.dumps(body)
    assert "only says what must not" in run("search", "--index", location, "--", "-x", ok=1).stderr


def test_list_and_show(corpus, location):
    out = run("list", "--index", location).stdout.splitlines()
    assert out[0].split() == ["document", "words", "title"]
    assert len(out) == 4
    found = json.loads(run("list", "--index", location, "--json", "--size", 2).stdout)
    assert (len(found["documents"]), found["more"]) == (2, True)
    assert list(found["documents"][0]) == ["document", "title", "words", "passages", "metadata"]
    lines = run("list", "--index", location, "--nl", "--offset", 2).stdout.splitlines()
    assert json.loads(lines[0])["document"] == "corpus/talk.txt"
    assert "--offset 2." in run("list", "--index", location, "--size", 2).stderr
    only = run("list", "--index", location, "--filter", "year=1912").stdout
    assert only.splitlines()[1].split() == ["corpus/rows.jsonl#r1", "6", "Ship"]
    assert "No documents" in run("list", "--index", location, "--filter", "year=1").stderr
    talk = "corpus/talk.txt"
    shown = run("show", talk, "--index", location).stdout
    assert shown.split() == TEXTS["talk.txt"].split()
    start = TEXTS["talk.txt"].index("cancel")
    marked = run("show", talk, "--at", f"{start}-{start + 6}", "--index", location).stdout
    assert "like to «cancel» my plan" in marked
    piece = json.loads(run("show", talk, "--at", start, "--index", location, "--json").stdout)
    assert piece["text"][start - piece["start"] :].startswith("cancel")
    assert "no character 999" in run("show", talk, "--at", 999, "--index", location, ok=1).stderr
    assert "is no offset" in run("show", talk, "--at", "x", "--index", location, ok=2).stderr
    assert "slice-os list" in run("show", "nothing", "--index", location, ok=1).stderr


def test_search_by_document_and_with_what_stands_around(location):
    asked = ("search", "the bill is too high", "--index", location)
    out = run(*asked, "--group").stdout.splitlines()
    assert out[0].split()[2].endswith("talk.txt")
    assert "«" in out[1]
    found = json.loads(run(*asked, "--group", "--json").stdout)
    assert list(found) == ["query", "documents"]
    assert list(found["documents"][0]) == ["document", "title", "degree", "metadata", "hits"]
    assert list(found["documents"][0]["hits"][0]) == HIT
    lines = run(*asked, "--group", "--nl", "--size", 1).stdout.splitlines()
    assert [json.loads(line) for line in lines] == found["documents"][:1]
    hit = json.loads(run(*asked, "--context", 1, "--size", 1, "--nl").stdout)
    assert list(hit) == [*HIT, "context"]
    assert hit["context"]["text"].split() == TEXTS["talk.txt"].split()
    shown = run(*asked, "--context", 1, "--size", 1).stdout
    assert "Hello there." in shown
    assert shown.count("«") == 1
    assert run(*asked, "--group", "--context", 1, "--size", 1).stdout.count("«") == 1


def test_what_is_shown_is_never_dots_alone():
    assert shorten("a" * 99, 10) == f"{'a' * 8} …"
    assert shorten("one two three", 9) == "one two …"
    assert mark("Hello there.  He wants to cancel.", 17, 32).startswith("He «")
    assert mark("Hello there, and he wants to cancel.", 20, 35).startswith("Hello there")
    assert mark("hello there\n\ni want to cancel", 15, 29) == "i «want to cancel»"
    assert mark(f"{'so ' * 99}he wants to cancel", 300, 315).startswith("… so so")


def test_what_is_no_number_is_null(capsys):
    echo_json({"a": float("nan"), "b": [1.5, float("inf")], "c": (True, "NaN")}, indent=None)
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [1.5, None], "c": [True, "NaN"]}


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "0"}, False),
     ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
)  # fmt: skip
def test_colour_is_as_the_environment_says(location, environment, coloured):
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_COLOR")}
    command = [*SLICE_OS, "search", "cancel", "--index", str(location)]
    done = subprocess.run(command, env={**kept, **environment}, capture_output=True, text=True)
    assert ("\x1b[" in done.stdout, "«" in done.stdout) == (coloured, not coloured)


def test_no_colour_on_a_terminal(location):
    import pty

    for environment, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
        ours, theirs = pty.openpty()
        kept = {name: value for name, value in os.environ.items() if not name.endswith("_COLOR")}
        command = [*SLICE_OS, "search", "cancel", "--size", "1", "--index", str(location)]
        subprocess.run(command, env={**kept, **environment}, stdout=theirs, check=True)
        os.close(theirs)
        assert (b"\x1b[" in os.read(ours, 10_000)) == coloured
        os.close(ours)


def test_a_hit_under_a_heading_shows_it():
    text = "Limitation of Liability\n\nThe licensor owes nothing. It pays for no loss at all."
    start = text.index("pays")
    assert mark(text, start, start + 4) == "Limitation of Liability … It «pays» for no loss at all."
    start = text.index("owes")
    shown = "Limitation of Liability The licensor «owes» nothing."
    assert mark(text, start, start + 4) == shown
    assert mark(text, 0, 10) == "«Limitation» of Liability The licensor owes nothing."


def test_quotes_that_find_nothing_hint_at_literal(location):
    result = run("search", '"no such words here"', "--index", location)
    assert "--literal" in result.stderr

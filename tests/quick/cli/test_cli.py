"""The command line: what each verb prints, its exit codes, and what people get wrong."""

from __future__ import annotations

import csv
import json
import os
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from slice_os.cli.main import VERBS, main
from slice_os.cli.output import echo_json, mark, shorten
from slice_os.engine.phrases import Sought, read_phrases

SLICE_OS = [str(Path(sys.executable).with_name("slice-os"))]
TEXTS = {
    "talk.txt": "Hello there.\nI would like to cancel my plan, please.\nThe bill is too high.\n",
    "deal.txt": "Either party may terminate this agreement upon notice. Liability is limited.\n",
}
HIT = ["document", "passage", "title", "text", "score", "degree", "spans", "metadata",
       "document_start", "document_end", "probability"]  # fmt: skip
SPAN = ["start", "end", "text", "degree", "in_context_degree", "contributions", "opposition"]
MATCH = ["name", "phrase", "document", "passage", "start", "end", "text", "degree",
         "document_start", "document_end", "probability", "speaker"]  # fmt: skip


def run(*args, code=0, stdin=None):
    result = CliRunner().invoke(main, [str(arg) for arg in args], input=stdin)
    assert result.exit_code == code, result.output
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert "Traceback" not in result.output
    return result


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    rows = [{"id": "r1", "title": "Ship", "text": "The ship sank at night.", "year": 1912}]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


@pytest.fixture(scope="module")
def location(corpus, tmp_path_factory):
    location = tmp_path_factory.mktemp("location") / "demo.slice"
    run("index", corpus, "--index", location)
    return location


def test_index_says_what_it_did_and_does_it_once(corpus, tmp_path):
    location = tmp_path / "i.slice"
    first = run("index", corpus, "--index", location)
    assert "3 documents indexed, 0 unchanged" in first.stdout
    assert "0 documents indexed, 3 unchanged" in run("index", corpus, "--index", location).stdout
    report = json.loads(run("index", corpus, "--index", location, "--json").stdout)
    assert (report["unchanged"], report["rejected"], report["encoded_words"]) == (3, 0, 0)
    piped = run("index", "-", "--index", location, stdin="A text from a pipe.")
    assert "1 document indexed" in piped.stdout
    assert run("index", corpus, "--index", location, "--prune").stdout.count("0 pruned") == 1
    run("index", "-", "--id", "pipe", "--index", location, stdin="A text.")
    again = run("index", "-", "--id", "pipe", "--index", location, stdin="Another text.")
    assert "1 document indexed (1 replaced)" in again.stdout


def test_what_is_rejected_is_written_counted_and_told_by_the_exit_code(tmp_path):
    (tmp_path / "bad.jsonl").write_text('{"text": "fine words"}\n{"text": \nno json\n')
    (tmp_path / "image.txt").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)))
    (tmp_path / "good.txt").write_text("Perfectly good words.")
    (tmp_path / "odd.xyz").write_text("?")
    result = run("index", tmp_path, "--index", tmp_path / "i.slice", "--prune", code=3)
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
    shown = run("index", "b/docs", "--index", "i.slice", code=1).stderr
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
    refused = run("index", "share", "--index", "i.slice", "--prune", code=3)
    assert "9 documents, more than a third, would have gone" in refused.stderr
    assert "--prune-all" in refused.stderr
    out = run("index", "share", "--index", "i.slice", "--prune", "--json", code=3).stdout
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
        assert "1 rejected" in run("index", ".", "--index", "my.slice", code=3).stderr
    (tmp_path / "my.slice.rejects.jsonl").unlink()
    for found in (".", "**/*"):
        own = run("index", found, "--index", "my.slice", "--rejects", "own.jsonl", code=3)
        assert "1 rejected" in own.stderr


def test_what_is_wrong_with_a_file_is_said_at_once(tmp_path):
    (tmp_path / "a.csv").write_text("key,summary,place\n" + "1,words,here\n" * 20)
    shown = run("index", tmp_path, "--index", tmp_path / "i.slice", code=3).stderr
    assert "Rejected: " in shown
    assert "it has key, summary" in shown
    assert "1 rejected: see" in shown


def test_a_filter_that_is_not_utf_8(location):
    shown = run("search", "cancel", "--index", location, "--filter", "a=\udcff", code=1).stderr
    assert "is not understood" in shown


def test_phrases_over_two_lines_of_a_csv(tmp_path):
    file = tmp_path / "p.csv"
    file.write_text('name,phrase\na,"wants\nto cancel"\n')
    assert read_phrases(file) == {"a": Sought(("wants\nto cancel",))}


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
    assert json.loads(only)["metadata"] == {"path": "corpus0/rows.jsonl", "year": 1912}


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
    assert (
        "only says what must not" in run("search", "--index", location, "--", "-x", code=1).stderr
    )


def test_list_and_show(corpus, location):
    out = run("list", "--index", location).stdout.splitlines()
    assert out[0].split() == ["document", "words", "title"]
    assert len(out) == 4
    found = json.loads(run("list", "--index", location, "--json", "--size", 2).stdout)
    assert (len(found["documents"]), found["more"]) == (2, True)
    assert list(found["documents"][0]) == ["document", "title", "words", "passages", "metadata"]
    lines = run("list", "--index", location, "--nl", "--offset", 2).stdout.splitlines()
    assert json.loads(lines[0])["document"] == "corpus0/talk.txt"
    assert "--offset 2." in run("list", "--index", location, "--size", 2).stderr
    only = run("list", "--index", location, "--filter", "year=1912").stdout
    assert only.splitlines()[1].split() == ["corpus0/rows.jsonl#r1", "6", "Ship"]
    assert "No documents" in run("list", "--index", location, "--filter", "year=1").stderr
    talk = "corpus0/talk.txt"
    shown = run("show", talk, "--index", location).stdout
    assert shown.split() == TEXTS["talk.txt"].split()
    start = TEXTS["talk.txt"].index("cancel")
    marked = run("show", talk, "--at", f"{start}-{start + 6}", "--index", location).stdout
    assert "like to «cancel» my plan" in marked
    piece = json.loads(run("show", talk, "--at", start, "--index", location, "--json").stdout)
    assert piece["text"][start - piece["start"] :].startswith("cancel")
    assert "no character 999" in run("show", talk, "--at", 999, "--index", location, code=1).stderr
    assert "is no offset" in run("show", talk, "--at", "x", "--index", location, code=2).stderr
    assert "slice-os list" in run("show", "nothing", "--index", location, code=1).stderr


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


def test_mine_to_files_and_to_the_terminal(location, tmp_path):
    phrases = tmp_path / "phrases.csv"
    phrases.write_text("name,phrase\nleave,wants to cancel\nend,terminate this agreement\n")
    arguments = ["mine", phrases, "--index", location, "--min-degree", 0.7]
    out = run(*arguments, "--output", tmp_path / "m.csv").stdout
    with (tmp_path / "m.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {(row["name"], row["phrase"]) for row in rows} == {
        ("leave", "wants to cancel"), ("end", "terminate this agreement")
    }  # fmt: skip
    assert list(rows[0]) == MATCH
    assert out.split()[:1] == ["leave"]
    run(*arguments, "--output", tmp_path / "m.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "m.jsonl").read_text().splitlines()]
    assert [list(line) for line in lines] == [MATCH] * len(rows)
    for line in lines:
        text = TEXTS[line["document"].split("/")[1]]
        assert text[line["document_start"] : line["document_end"]] == line["text"]
    shown = run(*arguments).stdout
    assert len(shown.splitlines()) == len(rows)
    found = json.loads(run(*arguments, "--json").stdout)
    assert found["matches"] == lines
    assert found["counts"]["leave"] + found["counts"]["end"] == len(lines)
    streamed = run(*arguments, "--nl").stdout.splitlines()
    assert [json.loads(line) for line in streamed] == lines
    assert not list(tmp_path.glob("*.part"))
    several = ["mine", phrases, "the bill is high", "bill", "--min-degree", 0.7, "--json"]
    counts = json.loads(run(*several, "--index", location).stdout)["counts"]
    assert list(counts) == ["leave", "end", "the bill is high", "bill"]


def test_status_and_delete(corpus, tmp_path):
    location = tmp_path / "own.slice"
    run("index", corpus, "--index", location)
    state = json.loads(run("status", "--index", location, "--json").stdout)
    assert (state["documents"], state["meta"]["dimension"]) == (3, 384)
    assert "slice-english-v2" in run("status", "--index", location).stdout
    assert (
        "1 id not in the index"
        in run("delete", "a", "corpus0/rows.jsonl#r1", "--index", location, code=3).stderr
    )
    run("delete", "--filter", "year=1", "--index", location, stdin="n\n", code=1)
    gone = run("delete", "--filter", "yaer=1", "--index", location, "--yes", code=1).stderr
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
    result = run(*[str(location) if a == "LOCATION" else a for a in arguments], code=1)
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
    assert "Did you mean 'search'?" in run("serach", "x", code=2).stderr
    assert "--index" in run("search", "x", code=2).stderr
    assert (
        "0<=x<=1"
        in run("mine", "--phrase", "x", "--min-degree", 7, "--index", location, code=2).stderr
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


def test_a_closed_pipe_is_no_error(location):
    command = f"{SLICE_OS[0]} mine --phrase the --min-degree 0 --nl --index {location} | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )
    assert done.stdout.count("\n") == 1
    assert done.stderr.count("Traceback") == done.stderr.count("Error") == 0


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


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('name,phrase\nx,"wants to cancel\ny,thank you\n', "line 2 is not CSV"),
        ("name,phrase\nx,wants to cancel, right now\n", "line 2 has 3 columns"),
        ("name,text\nx,y\n", "needs the columns name and phrase"),
        ("name,phrase,not\nx,,y\n", "'x' has counter-examples and no phrase"),
        ("name,phrase,not\nx,,\n", "the phrase named 'x' is empty"),
        ("name,phrase\n", "it holds no phrase"),
    ],
)
def test_a_phrases_file_that_is_not_sound(tmp_path, location, content, said):
    (tmp_path / "p.csv").write_text(content)
    assert said in run("mine", tmp_path / "p.csv", "--index", location, code=1).stderr


def test_phrases_in_other_encodings_and_with_other_separators(tmp_path):
    (tmp_path / "p.csv").write_text("name;phrase\nx;wants to cancel\n", encoding="utf-16")
    assert read_phrases(tmp_path / "p.csv") == {"x": Sought(("wants to cancel",))}
    (tmp_path / "p.txt").write_text("# all\nwants to cancel\n\n", encoding="utf-16")
    assert read_phrases(tmp_path / "p.txt") == {"wants to cancel": Sought(("wants to cancel",))}


def test_a_name_has_several_phrases_and_counter_examples(tmp_path):
    file = tmp_path / "p.csv"
    file.write_text("name,phrase,not\nx,one,\ny,two,never\nx,three,no way\nx,,not at all\nx,one,\n")
    assert read_phrases(file) == {
        "x": Sought(("one", "three"), ("no way", "not at all")), "y": Sought(("two",), ("never",))
    }  # fmt: skip


def test_mining_as_it_is_used(location, tmp_path):
    file = tmp_path / "p.csv"
    rows = ("name,phrase", "leave,stop my plan", "leave,terminate this agreement", "ship,boat")
    file.write_text("\n".join(rows))

    def mined(*options):
        lines = run("mine", file, "--index", location, "--min-degree", 0.6, "--nl", *options).stdout
        return [json.loads(line) for line in lines.splitlines()]

    every = mined()
    said = {(m["phrase"], m["document"].split("/")[-1]) for m in every if m["degree"] > 0.8}
    assert {("stop my plan", "talk.txt"), ("terminate this agreement", "deal.txt")} <= said
    by_degree = mined("--sort", "degree")
    assert sorted(every, key=lambda m: -m["degree"]) == by_degree
    best = mined("--per-document")
    assert len(best) == len({(m["name"], m["document"]) for m in every}) < len(every)
    top = mined("--top", 1)
    assert [m["name"] for m in top] == ["leave", "ship"]
    assert top[0] == by_degree[0]
    against = mined("--not", "leave=cancel my plan")
    assert any("cancel" in m["text"] for m in every if m["name"] == "leave")
    assert not any("cancel" in m["text"] for m in against if m["name"] == "leave")
    assert [m for m in against if m["name"] == "ship"] == [m for m in every if m["name"] == "ship"]
    shown = run("mine", file, "--index", location, "--min-degree", 0.9).stdout
    assert "leave (terminate this agreement)" in shown
    said = run("mine", file, "--index", location, "--not", "ships=x", code=1).stderr
    assert "does not say whose it is: write NAME=TEXT, NAME one of 'leave', 'ship'" in said
    alone = ("mine", "--phrase", "stop my plan", "--index", location, "--min-degree", 0.8, "--json")
    assert "talk.txt" in run(*alone).stdout
    assert "talk.txt" not in run(*alone, "--not", "cancel my plan").stdout


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


def test_phrases_that_the_encoder_does_not_know_are_left_out_and_counted(location, tmp_path):
    file = tmp_path / "phrases.csv"
    file.write_text("name,phrase\nend,cancel my plan\nchinese,取消订阅\nface,\U0001f600\n")
    result = run("mine", file, "--min-degree", "0.7", "--index", location, code=3)
    assert "cancel my plan" in result.output
    assert (
        "2 phrases left out, of which the encoder knows no word: 取消订阅, \U0001f600."
        in result.output
    )
    found = json.loads(run("mine", file, "--index", location, "--json", code=3).stdout)
    assert found["unknown"] == ["取消订阅", "\U0001f600"]
    assert found["counts"]["chinese"] == 0
    result = run("mine", "--phrase", "取消", "--index", location, code=1)
    assert "holds no word that the encoder knows: mine with an encoder" in result.output
    assert "--mode" not in result.output


def test_phrases_from_stdin(location):
    result = run("mine", "-", "--min-degree", "0.7", "--index", location, stdin="cancel my plan\n")
    assert "talk.txt" in result.output


def test_index_without_paths_says_what_to_give(tmp_path):
    result = run("index", "--index", tmp_path / "i.slice", code=2)
    assert "Nothing to index: give files, folders, globs or - (stdin), as in" in result.output


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
    run("list", "--size", 2**63, "--index", location, code=2)


def test_a_file_of_the_folder_names_the_index(location, tmp_path, monkeypatch):
    (tmp_path / "slice-os.toml").write_text(f'index = "{location}"\n')
    assert json.loads(run("status", "--json").stdout)["documents"]
    (tmp_path / "slice-os.toml").write_text("indx = 3\n")
    assert "slice-os.toml cannot be used" in run("status", code=2).stderr


def test_a_phrase_may_stand_where_the_file_is_named(location):
    plain = run("mine", "the bill is high", "-i", location, "--threshold", 0.6, "--nl").stdout
    option = run("mine", "--phrase", "the bill is high", "--index", location, "--min-degree", 0.6,
                 "--nl").stdout  # fmt: skip
    assert plain == option
    assert plain


def test_quotes_that_find_nothing_hint_at_literal(location):
    result = run("search", '"no such words here"', "--index", location)
    assert "--literal" in result.stderr


def test_cells_are_never_formulas(tmp_path, location):
    (tmp_path / "=cmd.txt").write_text("=HYPERLINK the bill is high")
    run("index", tmp_path / "=cmd.txt", "--index", "own.slice")
    run("mine", "the bill is high", "--index", "own.slice", "--output", "m.csv")
    rows = list(csv.DictReader(Path("m.csv").read_text(encoding="utf-8").splitlines()))
    assert rows[0]["document"] == "'=cmd.txt"

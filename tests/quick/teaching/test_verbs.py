"""The verbs: teach in a terminal and without one, mine and search with what was taught."""

from __future__ import annotations

import csv
import json

import pytest

from slice_os.cli.teach import _nearest
from slice_os.teaching.record import read_taught
from support import verbs

from .conftest import PHRASE, turns


@pytest.fixture
def run(location):
    return lambda *arguments, **options: verbs.run(*arguments, "--index", location, **options)


@pytest.fixture
def keys(monkeypatch):
    """A terminal in which these keys are pressed, one after the other; then Ctrl-C."""
    pressed = []

    def press():
        if not pressed:
            raise KeyboardInterrupt
        return pressed.pop(0)

    monkeypatch.setattr("slice_os.cli.teach.click.getchar", press)
    monkeypatch.setattr("slice_os.cli.teach._has_terminal", lambda: True)
    return pressed


@pytest.fixture
def labels(tmp_path):
    file = tmp_path / "labels.csv"
    with file.open("w", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(["correct", "document", "start", "end", "text"])
        for one in turns()[::2]:
            at = one.text.index("\n") + 1
            said = "yes" if one.id.startswith("leave") else "no"
            table.writerow([said, one.id, at, len(one.text), one.text[at:]])
    return file


def test_a_terminal(run, keys, tmp_path):
    file = tmp_path / "leave.json"
    keys += ["y", "n", "x", "s", "n", "n", "y", "b", "y", "q"]
    done = run("teach", PHRASE, "--output", file)
    assert "4 labels" in done.output
    assert "precision" in done.output
    assert "recall" in done.output
    found = read_taught(file)
    assert len(found.labels) == 5
    keys += ["n", "n"]  # and then Ctrl-C
    done = run("teach", "--output", file)
    assert len(read_taught(file).labels) == 7


def test_marked_words(run, keys, tmp_path):
    file = tmp_path / "leave.json"
    keys += ["m", "m"]
    done = run("teach", PHRASE, "--output", file, input="no such words at all\nthe\n")
    assert "copy some of it" in done.output or read_taught(file).labels
    for label in read_taught(file).labels:
        assert label.marked
        assert label.text.lower() == "the"


def test_labels_from_a_file_then_mine_and_search(run, labels, tmp_path):
    file = tmp_path / "leave.json"
    done = run("teach", PHRASE, "--labels", labels, "--output", file, "--name", "leaves", "--json")
    said = json.loads(done.stdout)
    assert said["labels"] == 24
    assert said["estimate"]["right"] == 6
    done = run("mine", file, "--min-probability", "0.4", "--nl")
    matches = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert matches
    assert all(one["probability"] >= 0.4 and one["name"] == "leaves" for one in matches)
    done = run("search", "--taught", file, "--json", "--size", "4")
    hits = json.loads(done.stdout)["hits"]
    assert len(hits) == 4
    assert hits[0]["probability"] >= hits[3]["probability"]
    phrases = tmp_path / "phrases.csv"
    phrases.write_text("name,phrase\nleaves,@leave.json\nrain,it rains\n")
    output = tmp_path / "matches.csv"
    run("mine", phrases, "--min-degree", "0.7", "--output", output)
    with output.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {row["name"] for row in rows} == {"leaves", "rain"}
    assert all(bool(row["probability"]) == (row["name"] == "leaves") for row in rows)


def test_a_phrases_file_teaches_the_phrases_of_one_name(run, labels, tmp_path):
    file, phrases = tmp_path / "leave.json", tmp_path / "topics.csv"
    phrases.write_text(f"name,phrase\nleaves,{PHRASE}\nleaves,they go away\nrain,it rains\n")
    begin = ["teach", phrases, "--labels", labels, "--output", file]
    assert "(leaves, rain): say which is taught with --name" in run(*begin, ok=1).output
    run(*begin, "--name", "leaves")
    assert read_taught(file).name == "leaves"
    assert read_taught(file).phrases == (PHRASE, "they go away")
    phrases.write_text(f"name,phrase\nleaves,{PHRASE}\n")
    run(*begin[:-1], tmp_path / "only.json")
    assert read_taught(tmp_path / "only.json").name == "leaves"
    (tmp_path / "my files").mkdir()
    phrases.rename(tmp_path / "my files" / "topics.csv")
    run("teach", tmp_path / "my files" / "no.csv", *begin[2:-1], tmp_path / "none.json", ok=1)
    assert not (tmp_path / "none.json").exists()
    assert "topics.csv cannot be read" in run(*begin[:-1], tmp_path / "none.json", ok=1).output


def test_two_taught_phrases_of_one_name_are_told(run, labels, tmp_path):
    first, second, named = (tmp_path / name for name in ("a.json", "b.json", "c.json"))
    for file in (first, second):
        run("teach", PHRASE, "--labels", labels, "--output", file)
    run("teach", "--from", second, "--name", "other", "--output", named)
    run("mine", first, named)
    assert "Two taught phrases are called" in run("mine", first, second, ok=1).output
    assert "A phrase and a taught phrase" in run("mine", first, PHRASE, ok=1).output
    (tmp_path / "both.txt").write_text("@a.json\n@b.json\n")
    assert "--name" in run("mine", tmp_path / "both.txt", ok=1).output


def test_teach_anew_from_stored_labels(run, labels, tmp_path):
    file, anew = tmp_path / "leave.json", tmp_path / "anew.json"
    run("teach", PHRASE, "--labels", labels, "--output", file)
    made = json.loads(file.read_text())
    made["prototypes"] = "damaged"
    file.write_text(json.dumps(made))
    done = run("mine", file, ok=1)
    assert "teach --from" in done.output
    run("teach", "--from", file, "--output", anew)
    assert read_taught(anew).labels == tuple(
        one for one in read_taught(anew).labels if one.document
    )
    assert len(read_taught(anew).labels) == 24


def test_without_a_terminal_or_a_phrase(run, tmp_path, monkeypatch):
    monkeypatch.setattr("slice_os.cli.teach._has_terminal", lambda: False)
    done = run("teach", PHRASE, "--output", tmp_path / "a.json", ok=1)
    assert "no terminal to ask in" in done.output
    done = run("teach", "--output", tmp_path / "a.json", ok=1)
    assert "no phrase to teach" in done.output
    done = run("search", ok=1)
    assert "query" in done.output.lower()
    done = run("search", "a", "--taught", tmp_path / "b.json", ok=1)
    assert "check the path" in done.output or "not both" in done.output


def test_evaluate_teaching(run, tmp_path):
    gold = tmp_path / "gold.jsonl"
    rows = []
    for one in turns():
        at = one.text.index("\n") + 1
        query = PHRASE if one.id.startswith("leave") else "something else"
        rows.append({"query": query, "document": one.id, "start": at, "end": len(one.text)})
    gold.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run("evaluate", "teaching", gold, "--json", "--seed", "1")
    report = json.loads(done.stdout)
    assert set(report["ways"]) == {
        "taught", "phrase alone", "several phrases", "nearest label", "passage vectors",
    }  # fmt: skip
    for measured in report["ways"].values():
        assert [one["labels"] for one in measured] == [0, 10, 20, 40, 60]
    taught, alone = report["ways"]["taught"], report["ways"]["phrase alone"]
    assert taught[0]["average_precision"] == alone[0]["average_precision"]
    assert taught[2]["average_precision"] > alone[2]["average_precision"] - 0.1
    shown = run("evaluate", "teaching", gold, "--no-peers", "--phrases", "1", "--seed", "1")
    assert "average precision, by labels" in shown.stdout
    gold.write_text('{"query": "a", "document": "leave-00", "start": 0, "end": 4}\n')
    done = run("evaluate", "teaching", gold, ok=1)
    assert "mark more spans" in done.output


def test_the_nearest_words_are_meant():
    assert _nearest("the cat and the dog", "the", 11) == 12
    assert _nearest("the cat", "", 0) == -1
    assert _nearest("the cat", "dog", 0) == -1

"""The verb mine, and files of phrases."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from slice_os.engine.phrases import Sought, is_phrase, read_phrases
from support.verbs import run

from .conftest import TEXTS

MATCH = ["name", "phrase", "document", "passage", "start", "end", "text", "degree",
         "document_start", "document_end", "probability", "speaker"]  # fmt: skip


def test_phrases_over_two_lines_of_a_csv(tmp_path):
    file = tmp_path / "p.csv"
    file.write_text('name,phrase\na,"wants\nto cancel"\n')
    assert read_phrases(file) == {"a": Sought(("wants\nto cancel",))}


def test_matches_do_not_take_the_place_of_phrases(location, tmp_path):
    phrases = tmp_path / "phrases.csv"
    phrases.write_text("name,phrase\nleave,wants to cancel\n")
    arguments = ["mine", phrases, "--index", location, "--output"]
    assert "another file" in run(*arguments, phrases, ok=1).output
    run(*arguments, tmp_path / "m.csv")
    assert read_phrases(phrases) == {"leave": Sought(("wants to cancel",))}


@pytest.mark.parametrize("text", ["refund", "wants to cancel", "Node.js", "e.g.", "24/7 help", ""])
def test_what_is_no_file_nor_called_like_one_is_a_phrase(text):
    assert is_phrase(text)


@pytest.mark.parametrize("text", ["a.csv", "my phrases.txt", "my dir/a.json", "a/b", "-", __file__])
def test_what_is_called_like_a_file_is_one(text):
    assert not is_phrase(text)


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
    assert said in run("mine", tmp_path / "p.csv", "--index", location, ok=1).stderr


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
    said = run("mine", file, "--index", location, "--not", "ships=x", ok=1).stderr
    assert "does not say whose it is: write NAME=TEXT, NAME one of 'leave', 'ship'" in said
    alone = ("mine", "--phrase", "stop my plan", "--index", location, "--min-degree", 0.8, "--json")
    assert "talk.txt" in run(*alone).stdout
    assert "talk.txt" not in run(*alone, "--not", "cancel my plan").stdout


def test_phrases_that_the_encoder_does_not_know_are_left_out_and_counted(location, tmp_path):
    file = tmp_path / "phrases.csv"
    file.write_text("name,phrase\nend,cancel my plan\nchinese,取消订阅\nface,\U0001f600\n")
    result = run("mine", file, "--min-degree", "0.7", "--index", location, ok=3)
    assert "cancel my plan" in result.output
    assert (
        "2 phrases left out, of which the encoder knows no word: 取消订阅, \U0001f600."
        in result.output
    )
    found = json.loads(run("mine", file, "--index", location, "--json", ok=3).stdout)
    assert found["unknown"] == ["取消订阅", "\U0001f600"]
    assert found["counts"]["chinese"] == 0
    result = run("mine", "--phrase", "取消", "--index", location, ok=1)
    assert "holds no word that the encoder knows: mine with an encoder" in result.output
    assert "--mode" not in result.output


def test_phrases_from_stdin(location):
    result = run("mine", "-", "--min-degree", "0.7", "--index", location, input="cancel my plan\n")
    assert "talk.txt" in result.output


def test_a_phrase_may_stand_where_the_file_is_named(location):
    plain = run("mine", "the bill is high", "-i", location, "--threshold", 0.6, "--nl").stdout
    option = run("mine", "--phrase", "the bill is high", "--index", location, "--min-degree", 0.6,
                 "--nl").stdout  # fmt: skip
    assert plain == option
    assert plain
    word = run("mine", "bill", "--index", location, "--min-degree", 0.6, "--nl").stdout
    assert (
        word == run("mine", "--phrase", "bill", "-i", location, "--threshold", 0.6, "--nl").stdout
    )
    assert "bill" in word
    for name in ("phrases.csv", "folder/bill"):
        assert "give a phrase by --phrase" in run("mine", name, "-i", location, ok=1).stderr
    longer = "the customer wants to cancel " * 20  # longer than a file's name may be
    assert run("mine", longer, "--index", location).exit_code == 0


def test_cells_are_never_formulas(tmp_path, location):
    (tmp_path / "=cmd.txt").write_text("=HYPERLINK the bill is high")
    run("index", tmp_path / "=cmd.txt", "--index", "own.slice")
    run("mine", "the bill is high", "--index", "own.slice", "--output", "m.csv")
    rows = list(csv.DictReader(Path("m.csv").read_text(encoding="utf-8").splitlines()))
    assert rows[0]["document"] == "'=cmd.txt"

"""Labels of drawn samples, of rows, and of what other tools export."""

from __future__ import annotations

import gzip
import json

import pytest

from slice_os.calibration.labels import draw_sample
from slice_os.errors import TeachingError
from slice_os.teaching.labels import check_labels, read_labels
from slice_os.teaching.record import Label
from slice_os.types import Match

TEXT = "Good day. I want to cancel my plan."
RIGHT = Label("a", 110, 126, True, TEXT[10:26], True)


def write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_drawn_sample(tmp_path):
    file = tmp_path / "sample.csv"
    matches = [
        Match("cancels", "wants to cancel", f"d{n}", 0, 0, 5, "words", 0.7 + n / 100, 10, 15)
        for n in range(6)
    ]
    draw_sample(matches, file)
    rows = file.read_text().splitlines()
    said = [
        rows[0],
        *(
            f"{word}{row}"
            for word, row in zip(["yes", "no", "", "x", "0", "1"], rows[1:], strict=True)
        ),
    ]
    file.write_text("\n".join(said))
    labels = read_labels(file)
    assert len(labels) == 5
    assert sum(one.right for one in labels) == 3
    assert {(one.start, one.end, one.text) for one in labels} == {(10, 15, "words")}
    assert read_labels(file, "whatever it is called") == labels


@pytest.mark.parametrize(
    "row",
    [
        {"text": TEXT, "meta": {"document": "a", "offset": 100}, "answer": "accept",
         "spans": [{"start": 10, "end": 26, "label": "LEAVE"}]},
        {"data": {"text": TEXT, "document": "a", "offset": 100}, "annotations": [
            {"result": [{"value": {"start": 10, "end": 26, "labels": ["LEAVE"]}}]}]},
        {"fields": {"text": TEXT}, "metadata": {"document": "a", "offset": 100}, "responses": [
            {"values": {"spans": {"value": [{"start": 10, "end": 26, "label": "LEAVE"}]}}}]},
        {"text": TEXT, "document": "a", "offset": 100,
         "spans.responses": [[{"start": 10, "end": 26, "label": "LEAVE"}]]},
        {"text": TEXT, "metadata": {"document": "a", "offset": 100}, "responses": {"spans": [
            {"value": [{"start": 10, "end": 26, "label": "LEAVE"}]}]}},
    ],
    ids=["prodigy", "label-studio", "argilla", "argilla-flat", "argilla-dict"],
)  # fmt: skip
def test_marked_spans_of_other_tools(tmp_path, row):
    assert read_labels(write(tmp_path / "a.jsonl", row), "LEAVE") == [RIGHT]
    (tmp_path / "a.json").write_text(json.dumps([row]))
    assert read_labels(tmp_path / "a.json") == [RIGHT]


def test_what_was_read_and_not_marked_says_no(tmp_path):
    read = {"text": TEXT, "meta": {"document": "a"}, "spans": [], "answer": "accept"}
    file = write(tmp_path / "a.jsonl", read, {**read, "answer": "ignore"})
    assert read_labels(file) == [Label("a", 0, len(TEXT), False, TEXT)]
    marked = {**read, "spans": [{"start": 0, "end": 4, "label": "X"}], "answer": "reject"}
    assert read_labels(write(tmp_path / "b.jsonl", marked)) == [Label("a", 0, 4, False, "Good")]


def test_of_several_names_one_is_to_be_said(tmp_path):
    rows = [
        {"document": "a", "start": 0, "end": 4, "correct": "yes", "name": name}
        for name in ("one", "two")
    ]
    file = write(tmp_path / "a.jsonl", *rows)
    with pytest.raises(TeachingError, match="say which with --name"):
        read_labels(file)
    assert len(read_labels(file, "two")) == 1
    with pytest.raises(TeachingError, match="no label of 'three'"):
        read_labels(file, "three")


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.csv", "document,start,end,correct\na,0,4,perhaps\n", "line 2.*yes or no"),
        ("a.csv", "document,start,end\na,0,4\n", "no column correct"),
        ("a.csv", "document,start,end,correct\na,x,4,yes\n", "whole numbers"),
        ("a.csv", "document,start,end,correct\na,4,4,yes\n", "end must be past start"),
        ("a.csv", "document,start,end,correct\na,4,8,\n", "has no label"),
        ("a.csv", "start,end,correct\n4,8,yes\n", "of which document"),
        ("a.jsonl", '{"document": "a"\n', "line 1, is not JSON"),
        ("a.jsonl", "[3]\n", "is list, not an object"),
        ("a.json", "[3]", "holds what is no record"),
        ("a.json", "[3", "is no JSON that can be read"),
        (
            "a.json",
            '[{"document": "a", "text": "b", "spans": [{"start": null, "end": 1}]}]',
            "can be read",
        ),
        (
            "a.json",
            '[{"document": "a", "annotations": [{"result": null}]}]',
            "line 1, holds no labels",
        ),
        (
            "a.json",
            '[{"document": "a", "document_start": "b", "spans": []}]',
            "line 1, holds no labels",
        ),
        ("a.jsonl", "", "has no label"),
        ("a.docx", "", "not read by its name"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, text, says):
    (tmp_path / name).write_text(text)
    with pytest.raises(TeachingError, match=says):
        read_labels(tmp_path / name)


def test_no_file_and_no_text(tmp_path):
    for name in ("none.jsonl", "none.json"):
        with pytest.raises(TeachingError, match="check the path"):
            read_labels(tmp_path / name)
    (tmp_path / "a.jsonl").write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(TeachingError, match="line 1, is not JSON"):
        read_labels(tmp_path / "a.jsonl")


def test_labels_in_another_encoding_and_packed(tmp_path):
    row = {"document": "ä", "start": 0, "end": 4, "correct": "yes"}
    (tmp_path / "a.jsonl").write_text(json.dumps(row, ensure_ascii=False), encoding="utf-16")
    packed = write(tmp_path / "b.jsonl", row)
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(packed.read_bytes()))
    assert read_labels(tmp_path / "a.jsonl") == read_labels(tmp_path / "b.jsonl.gz")


def test_contradictions_and_labels_of_one_kind():
    yes, no = Label("a", 0, 4, True), Label("a", 5, 9, False)
    assert check_labels([yes, no, yes]) == [yes, no]
    with pytest.raises(TeachingError, match="Characters 0 to 4 of the document 'a'"):
        check_labels([yes, no, Label("a", 0, 4, False)])
    with pytest.raises(TeachingError, match="All 1 labels say yes"):
        check_labels([yes])

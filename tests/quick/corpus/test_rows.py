from __future__ import annotations

import gzip
import json
import random
import tracemalloc
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from slice_os.corpus import Corpus, read
from slice_os.types import Document
from support.corpus import read_rows, read_sound, workbook


def test_json_lines(tmp_path: Path) -> None:
    lines = [
        '{"id": 7, "title": "T", "text": "hello", "year": 2020, "who": {"name": "a", "x": [1]}}',
        "",
        '{"content": ["turn one", "turn two"], "id": null}',
        '{"_id": "u", "text": null, "body": "b\\r\\nc\\u0000d\\ud800", "n": NaN, "big": 1e999}',
    ]
    documents = read_sound(tmp_path, "a.jsonl", "\n".join(lines))
    assert documents == [
        Document("a.jsonl#7", "T\nhello", "T", {"year": 2020, "who.name": "a", "who.x": [1]}),
        Document("a.jsonl#3", "turn one\nturn two", "", {"id": None}),
        Document("a.jsonl#u", "b \nc d\ufffd", "", {"text": None, "n": "nan", "big": "inf"}),
    ]


def test_bad_json_rows_are_rejected_one_by_one(tmp_path: Path) -> None:
    lines: list[bytes] = [
        b'{"text": "kept"}',
        b'{"text": "cut',
        b'["a list"]',
        b'{"text": "broken \xff byte \xc3\xa9\xc3\xa9"}',
        b'{"words": "x"}',
        b'{"text": "  "}',
        b'{"text": [{"role": "user"}]}',
        b"[" * 100_000,
        b'{"text": 1' + b"0" * 5000 + b"}",
        b'{"text": "kept too"}',
    ]
    documents, rejects = read_rows(tmp_path, "a.ndjson", b"\n".join(lines))
    assert [d.text for d in documents] == ["kept", "kept too"]
    assert [d.id for d in documents] == ["a.ndjson#1", "a.ndjson#10"]
    assert [place for place, _ in rejects] == list("23456789")
    reasons = [reason for _, reason in rejects]
    assert "not JSON" in reasons[0]
    assert "list, not an object" in reasons[1]
    assert "bytes" in reasons[2]
    assert "it has words" in reasons[3]
    assert reasons[4] == "no text"
    assert "'text'" in reasons[5]
    assert all("not usable JSON" in reason for reason in reasons[6:])


@pytest.mark.parametrize("text", ['""', '" "', "null", "[]"])
def test_a_title_alone_is_a_document(tmp_path: Path, text: str) -> None:
    rows = f'{{"title": "It crashes", "text": {text}}}\n{{"title": " ", "text": {text}}}'
    documents, rejects = read_rows(tmp_path, "a.jsonl", rows)
    assert documents == [Document("a.jsonl#1", "It crashes", "It crashes")]
    assert rejects == [("2", "no text")]


def test_named_fields(tmp_path: Path) -> None:
    row = {"key": 1.5, "head": "H", "a": "x", "b": {"c": "y", "d": True}, "text": "t"}
    missing = {"key": 1, "head": "H", "a": "x"}
    empty = {"key": 2, "head": "H", "b": None}
    no_id = {"key": "", "head": "H", "a": "x", "b": {"c": "y"}}
    documents, rejects = read_rows(
        tmp_path,
        "a.jsonl",
        "\n".join(json.dumps(r) for r in (row, missing, empty, no_id)),
        id_field="key",
        title_field="head",
        text_fields=["a", "b.c"],
    )
    assert documents == [
        Document("a.jsonl#1.5", "H\nx\ny", "H", {"b.d": True, "text": "t"}),
        Document("a.jsonl#1", "H\nx", "H"),
    ]
    assert rejects == [
        ("3", "has no field 'a' or 'b.c'; it has key, head, b"),
        ("4", "the field 'key' holds no id"),
    ]


def test_csv(tmp_path: Path) -> None:
    data = (
        'id,title,text,n\n1,T,"quoted, ""text""\nof two lines",5\n\n2,U\n'
        "3,V,plain,6\n4,W,a,b,c\n5,X,\0nul,7\n"
    )
    documents, rejects = read_rows(tmp_path, "a.csv", data)
    assert documents == [
        Document("a.csv#1", 'T\nquoted, "text"\nof two lines', "T", {"n": "5"}),
        Document("a.csv#3", "V\nplain", "V", {"n": "6"}),
        Document("a.csv#5", "X\n nul", "X", {"n": "7"}),
    ]
    assert rejects == [
        ("2", "has 2 columns, the header 4 (line 5)"),
        ("4", "has 5 columns, the header 4 (line 7)"),
    ]


@pytest.mark.parametrize(
    ("name", "data", "metadata"),
    [
        ("a.csv", "text;n\na, b;1\n", {"n": "1"}),
        ("a.csv", "text\na, b\n".replace(", ", " "), {}),
        ("a.csv", "text,a;b\na, b,1\n".replace(", ", " "), {"a;b": "1"}),
        ("a.tsv", "text\tn\na, b\t1\n", {"n": "1"}),
        ("a.csv", "\ufefftext,\na b,1\n", {"column 2": "1"}),
    ],
)
def test_separators(tmp_path: Path, name: str, data: str, metadata: dict[str, str]) -> None:
    documents = read_sound(tmp_path, name, data)
    assert [d.text.replace(",", "") for d in documents] == ["a b"]
    assert documents[0].metadata == metadata


def test_csv_rows_with_broken_bytes_or_quotes(tmp_path: Path) -> None:
    data = 'text,n\né,1\nx\udcff,2\n"a"b,3\nü,4\n"open,5\nlost,6\n'.encode(
        "utf-8", "surrogateescape"
    )
    documents, rejects = read_rows(tmp_path, "a.csv", data)
    assert [(d.id, d.text) for d in documents] == [("a.csv#1", "é"), ("a.csv#4", "ü")]
    assert [place for place, _ in rejects] == ["2", "3", "5"]
    assert "bytes" in rejects[0][1]
    assert "from line 6 to 7" in rejects[2][1]


@pytest.mark.parametrize("header", ["", "\n", "\ufeff\n", '"open'])
def test_a_csv_file_without_a_usable_header_is_one_reject(tmp_path: Path, header: str) -> None:
    documents, rejects = read_rows(tmp_path, "a.csv", header)
    assert documents == []
    assert len(rejects) == 1
    assert "header" in rejects[0][1]


@pytest.mark.parametrize("encoding", ["utf-16", "cp1252", "utf-8-sig"])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_rows_of_other_encodings(tmp_path: Path, name: str, encoding: str) -> None:
    row = "Größe und Übermut über die schöne Straße"
    data = f"text\n{row}\n{row}\n" if name == "a.csv" else f'{{"text": "{row}"}}\n' * 2
    documents = read_sound(tmp_path, name, data.encode(encoding))
    assert [d.text for d in documents] == [row] * 2


def test_a_huge_csv_field(tmp_path: Path) -> None:
    text = "word " * 200_000
    documents = read_sound(tmp_path, "a.csv", f'text\n"{text}"\n')
    assert documents[0].text == text


def test_rows_before_the_end_of_a_cut_gz_stay(tmp_path: Path) -> None:
    rng = random.Random(1)
    rows = [json.dumps({"text": f"row {n} {rng.random()}"}) for n in range(5000)]
    data = gzip.compress("\n".join(rows).encode())
    documents, rejects = read_rows(tmp_path, "a.jsonl.gz", data[: len(data) // 2])
    assert 1000 < len(documents) < 4000
    assert documents[1000].text == json.loads(rows[1000])["text"]
    assert len(rejects) == 1
    assert "damaged" in rejects[0][1]


@pytest.mark.parametrize("size", [5, 9])
def test_a_gz_that_is_cut_within_its_header_is_a_reject(tmp_path: Path, size: int) -> None:
    documents, rejects = read_rows(tmp_path, "a.jsonl.gz", gzip.compress(b'{"text": "a"}')[:size])
    assert documents == []
    assert "damaged" in rejects[0][1]


def test_rows_are_streamed(tmp_path: Path) -> None:
    with (tmp_path / "a.jsonl").open("w") as out:
        for number in range(20_000):
            out.write(json.dumps({"text": f"{number} " + "word " * 100}) + "\n")
    corpus: Corpus = read(tmp_path / "a.jsonl")
    done = []
    tracemalloc.start()
    for document in corpus:
        if document.id.endswith("000"):
            done.append(corpus.bytes_done)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 20 < (corpus.bytes_total or 0)
    assert done == sorted(done)
    assert len(set(done)) > 15
    assert corpus.bytes_done == corpus.bytes_total
    assert corpus.documents == 20_000


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_usual_names_are_found_in_any_case(tmp_path: Path, name: str) -> None:
    data = "ID,Title,Text\n7,T,words\n"
    if name == "a.jsonl":
        data = json.dumps({"ID": 7, "Title": "T", "Text": "words"})
    documents = read_sound(tmp_path, name, data)
    assert documents == [Document(f"{name}#7", "T\nwords", "T")]


def test_a_table_without_a_text_column_says_so_once(tmp_path: Path) -> None:
    rows = "key,summary,place\n" + "1,some words,a place\n" * 50
    documents, rejects = read_rows(tmp_path, "a.csv", rows)
    assert documents == []
    ((_, reason),) = rejects
    assert "it has key, summary, place" in reason
    assert "--text-field NAME" in reason
    documents = read_sound(tmp_path, "a.csv", rows, text_fields="*")
    assert documents[0].text == "key: 1\nsummary: some words\nplace: a place"


ISSUES = [{"key": 1, "body": "one", "labels": [{"name": "bug"}]}, {"key": 2, "body": "two"}]


@pytest.mark.parametrize(
    ("value", "ids"),
    [
        (ISSUES, ["a.json#1", "a.json#2"]),
        ({"A-1": ISSUES[0], "A-2": ISSUES[1]}, ["a.json#A-1", "a.json#A-2"]),
        ({"total": 2, "startAt": 0, "issues": ISSUES}, ["a.json#1", "a.json#2"]),
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_json(tmp_path: Path, value: Any, ids: list[str], indent: int | None) -> None:
    documents = read_sound(tmp_path, "a.json", json.dumps(value, indent=indent))
    assert [(d.id, d.text) for d in documents] == list(zip(ids, ["one", "two"], strict=True))
    assert documents[0].metadata == {"key": 1, "labels": [{"name": "bug"}]}


def test_json_of_one_document_and_of_none(tmp_path: Path) -> None:
    one = {"text": "words", "labels": [{"name": "bug"}]}
    assert [d.text for d in read_rows(tmp_path, "a.json", json.dumps(one))[0]] == ["words"]
    assert read_rows(tmp_path, "a.json", "[]") == ([], [])
    for data, reason in {
        '[{"text": "one"}, {"text": ': "is not JSON",
        '[{"text": "one"} {"text": "two"}]': "goes on with",
        "7": "no JSON array or object",
        "": "no JSON array or object",
        '[{"text": "one"}, 7, "x"]': "is int, not an object",
    }.items():
        documents, rejects = read_rows(tmp_path, "a.json", data)
        assert [d.text for d in documents] == (["one"] if "one" in data else [])
        assert reason in rejects[0][1]


def test_json_is_read_in_pieces(tmp_path: Path) -> None:
    rows = [{"text": f"row {n} é", "n": n, "pad": "x" * 5000} for n in range(100)]
    rows.append({"text": "last", "pad": "y" * 300_000})
    documents = read_sound(tmp_path, "a.json", json.dumps(rows))
    assert [d.metadata.get("n") for d in documents] == [*range(100), None]


def test_workbooks(tmp_path: Path) -> None:
    issues = (["ID", "Text", None, "When"], [1, "one", None, date(2024, 5, 1)], [], [None, "b"])
    file = workbook(Issues=issues, More=(["text"], ["three"]), Empty=())
    documents = read_sound(tmp_path, "a.xlsx", file)
    assert documents == [
        Document("a.xlsx#Issues!1", "one", "", {"sheet": "Issues", "When": "2024-05-01"}),
        Document("a.xlsx#Issues!4", "b", "", {"sheet": "Issues"}),
        Document("a.xlsx#More!2", "three", "", {"sheet": "More"}),
    ]
    documents, rejects = read_rows(tmp_path, "b.xlsx", file[:3000])
    assert documents == []
    assert "not a readable workbook" in rejects[0][1]


def test_several_objects_of_a_json_file_are_documents_and_what_follows_is_told(
    tmp_path: Path,
) -> None:
    lines = '{"text": "one"}\n{"text": "two"} {"text": "three"}\n'
    documents, rejects = read_rows(tmp_path, "a.json", lines)
    assert [d.text for d in documents] == ["one", "two", "three"]
    assert rejects == []
    for name, text in (("b.json", '[{"text": "one"}] [{"text": "two"}]'), ("c.json", lines + "]")):
        documents, rejects = read_rows(tmp_path, name, text)
        assert documents[0].text == "one"
        (reject,) = rejects
        assert "goes on after its end" in reject[1]


def test_rows_of_two_files_and_two_sheets_do_not_meet(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(f"id,text\n1,one of {name}\n2,two\n")
    found = list(read(tmp_path, root=tmp_path, id_prefix="p/"))
    assert [d.id for d in found] == ["p/a.csv#1", "p/a.csv#2", "p/b.csv#1", "p/b.csv#2"]
    assert [d.metadata["path"] for d in found] == ["p/a.csv"] * 2 + ["p/b.csv"] * 2
    own = read(tmp_path / "a.csv", root=tmp_path, id_prefix="p/", id_global=True)
    assert [d.id for d in own] == ["p/1", "p/2"]
    rows = (["id", "text"], [1, "one"])
    documents = read_sound(tmp_path, "a.xlsx", workbook(Sheet=rows, More=rows))
    assert [d.id for d in documents] == ["a.xlsx#Sheet!1", "a.xlsx#More!1"]


def test_columns_of_one_name_are_joined(tmp_path: Path) -> None:
    rows = "id,text,Comment,Comment,Comment\n1,one,a,,b\n2,two,,,\n"
    documents = read_sound(tmp_path, "a.csv", rows)
    assert documents == [
        Document("a.csv#1", "one", "", {"Comment": "a\nb"}),
        Document("a.csv#2", "two"),
    ]
    documents = read_sound(tmp_path, "b.csv", "text,text\na,b\n")
    assert [d.text for d in documents] == ["a\nb"]


def test_optional_fields_may_be_lacking(tmp_path: Path) -> None:
    rows = '{"a": "one"}\n{"b": "two"}\n{"a": null, "b": "three"}\n{"c": "none"}\n'
    documents, rejects = read_rows(tmp_path, "a.jsonl", rows, text_fields=["a", "b"])
    assert [d.text for d in documents] == ["one", "two", "three"]
    assert [place for place, _ in rejects] == ["4"]
    documents, rejects = read_rows(tmp_path, "a.csv", "id,a\n1,one\n", text_fields=["a", "b"])
    assert [d.text for d in documents] == ["one"]


LONG = "The delivery came far too late and nobody told me why."


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("a.csv", f"day,review\n2024-05-01,{LONG}\n2024-05-02,{LONG}\n", LONG),
        ("a.csv", f"product,Complaint\nA red chair,{LONG}\nA table,{LONG}\n", LONG),
        ("a.jsonl", json.dumps({"key": "K-1", "url": "x.org/a/b", "said": "fine"}), "fine"),
    ],
)
def test_the_one_column_of_text_is_taken_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, data: str, text: str
) -> None:
    documents = read_sound(tmp_path, name, data)
    assert documents[0].text == text
    assert "is taken for the text" in caplog.text


def test_titles_above_the_header_of_a_table(tmp_path: Path) -> None:
    table = "Complaints of May,,\n\nid,text,n\n1,one,5\n"
    documents = read_sound(tmp_path, "a.csv", table)
    assert documents == [Document("a.csv#1", "one", "", {"table": "Complaints of May", "n": "5"})]
    no_text = "Complaints of the month of May,,\n\nkey,n,m\n1,2,5\n"
    assert "--text-field" in read_rows(tmp_path, "b.csv", no_text)[1][0][1]  # the title is no text
    rows = (["Complaints"], [], ["id", "text"], [1, "one"])
    documents = read_sound(tmp_path, "a.xlsx", workbook(Sheet=rows))
    about = {"table": "Complaints", "sheet": "Sheet"}
    assert documents == [Document("a.xlsx#Sheet!1", "one", "", about)]


def test_markup_in_a_cell_and_times_with_offsets(tmp_path: Path) -> None:
    row = {
        "text": "<p>One &amp; two</p><ul><li>three</li></ul>",
        "at": "2024-05-01T01:30:00+02:00",
        "then": "2024-05-01 10:00",
    }
    plain = {"text": "if a <b and c> d: the <b> tag"}
    documents = read_sound(tmp_path, "a.jsonl", f"{json.dumps(row)}\n{json.dumps(plain)}")
    assert documents[0].text == "One & two\nthree"
    assert documents[0].metadata == {"at": "2024-04-30T23:30:00Z", "then": "2024-05-01 10:00"}
    assert documents[1].text == plain["text"]

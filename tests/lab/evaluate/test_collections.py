"""Test collections: what is read of each form, and one sentence for everything that cannot be."""

from __future__ import annotations

import gzip

import pytest

from slice_os.errors import EvaluationError
from slice_os.lab.evaluate.collections import read_collection
from slice_os.lab.evaluate.retrieval import survey
from support.retrieval_set import (
    DOCUMENTS,
    JUDGEMENTS,
    QRELS,
    QUERIES,
    write_beir,
    write_beir_qrels,
    write_smart,
    write_trec,
    write_trec_qrels,
)


def read_all(folder, split=None):
    collection = read_collection(folder, split)
    survey(collection)
    return collection


def error(folder, split=None):
    with pytest.raises(EvaluationError) as caught:
        read_all(folder, split)
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    return message


@pytest.mark.parametrize("write", [write_beir, write_trec])
def test_beir_and_trec(tmp_path, write):
    collection = read_collection(write(tmp_path / "set"))
    found = {document.id: document for document in collection.documents()}
    assert list(found) == list(DOCUMENTS)
    titles = {name: title if write is write_beir else "" for name, (title, _) in DOCUMENTS.items()}
    for name, (_, text) in DOCUMENTS.items():
        assert found[name].title == titles[name]
        assert found[name].text == f"{titles[name]}\n{text}".strip()
    assert collection.queries == QUERIES  # the one that nobody judged is left out
    assert collection.qrels.relevance == QRELS
    assert [d.id for d in collection.documents()] == list(DOCUMENTS)  # again, from the start


def test_smart(tmp_path):
    collection = read_collection(write_smart(tmp_path / "set"))
    documents = list(collection.documents())
    assert [document.id for document in documents] == [str(n) for n in range(1, 11)]
    assert documents[0].title == "Leaving"
    assert [documents[k].text for k in (0, 1, 3)] == [
        f"{title}\n{text}".strip()
        for title, text in map(DOCUMENTS.get, ("cancel", "refund", "bread"))
    ]
    assert collection.queries == QUERIES
    assert collection.qrels.relevance["3"] == {"5": 1, "6": 1}


def test_parts_of_beir_and_trec_go_together_and_may_be_packed(tmp_path):
    folder = write_beir(tmp_path / "set")
    corpus, queries = folder / "corpus.jsonl", folder / "queries.jsonl"
    (folder / "corpus.jsonl.gz").write_bytes(gzip.compress(corpus.read_bytes()))
    (folder / "queries.tsv.gz").write_bytes(gzip.compress(b"1\tend the agreement early\n"))
    corpus.unlink()
    queries.unlink()
    (folder / "qrels" / "test.tsv").unlink()
    (folder / "qrels.txt").write_text("1 Q0 cancel 1\n")
    collection = read_all(folder)
    assert collection.queries == {"1": "end the agreement early"}
    assert len(list(collection.documents())) == len(DOCUMENTS)


def test_a_title_alone_is_a_document(tmp_path):
    folder = write_beir(tmp_path / "set")
    with (folder / "corpus.jsonl").open("a") as file:
        file.write('{"_id": 7, "title": "Only this", "text": ""}\n{"_id": "8", "text": null}\n')
        file.write('{"_id": "9", "title": " ", "text": ""}\n')
    *_, only, nothing, blank = read_collection(folder).documents()
    assert (only.id, only.title, only.text) == ("7", "Only this", "Only this")
    assert (nothing.id, nothing.text) == ("8", "")
    assert (blank.id, blank.text) == ("9", "")


def test_the_split_is_test_or_the_only_one_or_named(tmp_path):
    folder = write_beir(tmp_path / "set")
    write_beir_qrels(folder / "qrels" / "dev.tsv", JUDGEMENTS[:1])
    write_beir_qrels(folder / "qrels" / "train.tsv", JUDGEMENTS[:2])
    assert list(read_collection(folder).queries) == list(QUERIES)
    assert len(read_collection(folder, "dev").qrels.document_lines) == 1
    assert "no split 'prod': choose one of dev, test, train." in error(folder, "prod")
    (folder / "qrels" / "test.tsv").unlink()
    assert "no split 'test': choose one of dev, train." in error(folder)
    (folder / "qrels" / "dev.tsv").unlink()
    assert len(read_collection(folder).qrels.document_lines) == 2
    for write in (write_trec, write_smart):
        assert "no splits" in error(write(tmp_path / write.__name__), "dev")


def test_a_folder_that_is_none(tmp_path):
    assert "There is no folder" in error(tmp_path / "missing")
    message = error(tmp_path)
    assert all(name in message for name in ("corpus.jsonl", "collection.tsv", "*.ALL"))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("corpus.jsonl", "holds no document"),
        ("queries.jsonl", "queries.jsonl holds no query"),
        ("qrels/test.tsv", "has no header line"),
    ],
)
def test_an_empty_file(tmp_path, name, message):
    folder = write_beir(tmp_path / "set")
    (folder / name).write_text("\n\n")
    assert message in error(folder)


@pytest.mark.parametrize(
    ("write", "name", "what"),
    [
        (write_beir, "queries.jsonl", "no queries: add queries.jsonl"),
        (write_beir, "qrels/test.tsv", "no judgements: add qrels.txt"),
        (write_smart, "SET.QRY", "no queries: add *.QRY"),
        (write_smart, "SET.REL", "no judgements: add *.REL"),
    ],
)
def test_a_missing_file(tmp_path, write, name, what):
    folder = write(tmp_path / "set")
    (folder / name).unlink()
    assert what in error(folder)


@pytest.mark.parametrize(
    ("write", "name", "line", "message"),
    [
        (write_beir, "corpus.jsonl", '{"_id": "x", "body": "words"}', "no field 'text'"),
        (write_beir, "corpus.jsonl", '{"text": "words"}', "no column id or _id"),
        (write_beir, "corpus.jsonl", '{"_id": "x", "text": ', "is not JSON"),
        (write_beir, "corpus.jsonl", '{"_id": "x", "text": [1, 2]}', "not text"),
        (write_beir, "queries.jsonl", '{"_id": "x"}', "no field 'text'"),
        (write_beir, "queries.jsonl", '{"_id": "x", "text": " "}', "has no text"),
        (write_beir, "queries.jsonl", '{"_id": "1", "text": "else"}', "another text"),
        (write_beir, "qrels/test.tsv", "1\tcancel", "has 2 columns"),
        (write_beir, "qrels/test.tsv", "1\tbread\thigh", "'high' is not a score"),
        (write_beir, "qrels/test.tsv", "1\tcancel\t1", "an earlier line 2"),
        (write_beir, "qrels/test.tsv", "q\tcancel\t1", "the query 'q', which"),
        (write_trec, "collection.tsv", "words without an id", "is not an id, a tab and a text"),
        (write_trec, "collection.tsv", " \twords", "is not an id, a tab and a text"),
        (write_trec, "queries.tsv", "7\ttwo\tcolumns", "is not an id, a tab and a text"),
        (write_trec, "queries.tsv", "7\t ", "has no text"),
        (write_trec, "qrels.txt", "1 cancel 1", "is not a query, an iteration"),
        (write_trec, "qrels.txt", "1 0 bread 0.5", "is not a query, an iteration"),
        (write_trec, "qrels.txt", "1 0 bread 3000000000", "a whole number of at most 1,000"),
        (write_trec, "qrels.txt", "q 0 cancel 1", "the query 'q', which"),
        (write_smart, "SET.REL", "1", "has one column"),
        (write_smart, "SET.REL", "77 1 0 0", "the query '77', which"),
        (write_smart, "SET.QRY", ".I 7", "'7' has no text"),
    ],
)
def test_a_bad_line_is_named(tmp_path, write, name, line, message):
    file = write(tmp_path / "set") / name
    with file.open("a") as stream:
        stream.write(f"{line}\n")
    said = error(tmp_path / "set")
    assert said.startswith(f"{file}, line {len(file.read_text().splitlines())}")
    assert message in said


def test_a_missing_column_of_the_judgements(tmp_path):
    file = write_beir(tmp_path / "set") / "qrels" / "test.tsv"
    file.write_text("query-id\tscore\n1\t1\n")
    assert f"{file}, line 2, has no column corpus-id" in error(tmp_path / "set")
    file.write_text("query-id\tcorpus-id\tscore\n")
    assert f"{file} holds no judgement" in error(tmp_path / "set")
    write_trec_qrels(file)
    assert f"{file}, line 2, has no column query-id" in error(tmp_path / "set")


def test_a_smart_file_that_begins_with_something_else(tmp_path):
    file = write_smart(tmp_path / "set") / "SET.ALL"
    file.write_text("\nWords.\n" + file.read_text())
    assert f"{file}, line 2, is 'Words.'" in error(tmp_path / "set")


def test_bytes_that_are_no_text(tmp_path):
    file = write_trec(tmp_path / "set") / "queries.tsv"
    file.write_bytes(file.read_bytes() + "7\tné né né\n8\tn".encode() + b"\xff words\n")
    assert f"{file}, line 8, holds bytes that are not utf-8" in error(tmp_path / "set")
    file.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)))
    assert "looks binary" in error(tmp_path / "set")


def test_a_packed_file_that_is_cut_off(tmp_path):
    folder = write_trec(tmp_path / "set")
    (folder / "queries.tsv").unlink()
    (folder / "queries.tsv.gz").write_bytes(gzip.compress(b"1\twords\n" * 9)[:-9])
    assert "cannot be unpacked" in error(folder)


def test_a_survey_counts_judged_documents_and_those_that_are_not_there(tmp_path):
    folder = write_trec(tmp_path / "set")
    surveyed = survey(read_collection(folder))
    assert (surveyed.documents, surveyed.warnings) == (len(DOCUMENTS), ())
    assert set(surveyed.judged) == {document for _, document, _ in JUDGEMENTS}
    with (folder / "qrels.txt").open("a") as file:
        file.write("1 0 gone 1\n2 0 gone 1\n2 0 lost 1\n")
    (warning,) = survey(read_collection(folder)).warnings
    assert warning.startswith("2 of 11 documents that")
    assert "'gone' in line 11" in warning
    (folder / "qrels.txt").write_text("1 0 gone 1\n1 0 lost 1\n")
    assert f"{folder / 'qrels.txt'}, line 1, judges the document 'gone'" in error(folder)

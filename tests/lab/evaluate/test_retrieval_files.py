"""What an evaluation writes, and run files that it reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from slice_os.lab.evaluate import evaluate_retrieval
from slice_os.lab.evaluate.metrics import DEFAULT_MEASURES
from support.retrieval_set import QUERIES, THREE, retrieval_error, write_beir


def test_run_files_go_out_and_in_again(folder, place, tmp_path):
    out = tmp_path / "out"
    report = evaluate_retrieval(folder, place, settings=THREE, output=out)
    assert {Path(file).name for file in report.files} == {path.name for path in out.iterdir()}
    first = (out / "dense.run").read_text().splitlines()[0].split()
    assert first[:2] == ["1", "Q0"]
    assert first[3] == "1"
    again = evaluate_retrieval(folder, settings=(), runs=[out / "dense.run", out / "lexical.run"])
    assert again.systems[str(out / "dense.run")] == report.systems["dense"]
    assert again.systems[str(out / "lexical.run")] == report.systems["lexical"]
    rows = [line.split("\t") for line in (out / "per_query.tsv").read_text().splitlines()]
    assert rows[0] == ["system", "query", *DEFAULT_MEASURES]
    for system, query, *values in rows[1:]:
        result = report.systems[system]
        assert [float(v) for v in values] == [result.per_query[m][query] for m in DEFAULT_MEASURES]
    assert len(rows) == 1 + len(THREE) * len(QUERIES)
    assert json.loads((out / "report.json").read_text()) == json.loads(json.dumps(report.to_dict()))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 Q0 bread 1 0.5", "is not a query, Q0, a document"),
        ("1 Q0 bread 1 high tag", "is not a query, Q0, a document"),
        ("1 Q0 bread 1 nan tag", "no number as its score"),
        ("1 Q0 cancel 2 0.5 tag", "'cancel' again for query '1'"),
    ],
)
def test_a_bad_run_file(folder, tmp_path, line, message):
    file = tmp_path / "other.run"
    file.write_text(f"1 Q0 cancel 1 0.9 tag\n{line}\n")
    said = retrieval_error(folder, runs=[file])
    assert said.startswith(f"{file}, line 2,")
    assert message in said


def test_run_files_that_fit_nothing(folder, tmp_path):
    file = tmp_path / "other.run"
    file.write_text("77 Q0 cancel 1 0.9 tag\n")
    assert "ranks no query that" in retrieval_error(folder, runs=[file])
    file.write_text("")
    assert f"{file} is empty" in retrieval_error(folder, runs=[file])
    assert "There is no file" in retrieval_error(folder, runs=[tmp_path / "none.run"])


def test_ids_with_spaces_stand_in_no_run_file(tmp_path):
    folder = write_beir(tmp_path / "set")
    text = (folder / "corpus.jsonl").read_text().replace('"bread"', '"rye bread"')
    (folder / "corpus.jsonl").write_text(text)
    assert "'rye bread'" in retrieval_error(folder, settings=["dense"], output=tmp_path / "out")
    assert list((tmp_path / "out").glob("*")) == []
    evaluate_retrieval(folder, settings=["dense"])


def test_an_interruption_leaves_whole_files(folder, place, tmp_path):
    def interrupt(stage, done, count):
        if stage == "dense" and done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate_retrieval(folder, place, settings=THREE, output=tmp_path, progress=interrupt)
    assert [path.name for path in tmp_path.iterdir()] == ["lexical.run"]
    whole = evaluate_retrieval(folder, place, settings=["lexical"])
    again = evaluate_retrieval(folder, settings=(), runs=[tmp_path / "lexical.run"])
    assert [*again.systems.values()] == [*whole.systems.values()]


def test_an_output_that_cannot_be_written(folder, place, tmp_path):
    (tmp_path / "file").write_text("words")
    said = retrieval_error(folder, place, settings=["lexical"], output=tmp_path / "file")
    assert f"{tmp_path / 'file'} cannot be made (File exists)" in said
    assert (tmp_path / "file").read_text() == "words"
    (tmp_path / "out" / "lexical.run" / "inside").mkdir(parents=True)
    said = retrieval_error(folder, place, settings=["lexical"], output=tmp_path / "out")
    assert f"{tmp_path / 'out' / 'lexical.run'} cannot be written" in said
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["lexical.run"]

"""Retrieval on a test collection: rankings, measures, settings, run files, and the verb."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import ir_measures
import pytest
from click.testing import CliRunner

import slice_os
from slice_os.cli.main import main
from slice_os.errors import EvaluationError, MissingExtraError
from slice_os.lab.evaluate import evaluate_retrieval
from slice_os.lab.evaluate.collections import read_run
from slice_os.lab.evaluate.metrics import DEFAULT_MEASURES, Metrics
from slice_os.lab.evaluate.search_settings import SETTINGS, Setting, parse_setting, rank_documents
from support.retrieval_set import (
    DOCUMENTS,
    QRELS,
    QUERIES,
    THREE,
    retrieval_error,
    write_beir,
    write_smart,
    write_trec,
)


def test_measures_agree_with_ir_measures_to_the_last_digit(folder, place, tmp_path):
    report = evaluate_retrieval(folder, place, settings=THREE, output=tmp_path / "out")
    measures = {name: ir_measures.parse_measure(name) for name in DEFAULT_MEASURES}
    qrels = list(ir_measures.read_trec_qrels(str(folder / "qrels.txt")))
    for name, file in zip(THREE, report.files, strict=False):
        run = list(ir_measures.read_trec_run(file))
        theirs = ir_measures.calc_aggregate(measures.values(), qrels, run)
        ours = report.systems[name]
        assert ours.means == {name: theirs[measure] for name, measure in measures.items()}
        each = {(m.query_id, m.measure): m.value for m in ir_measures.iter_calc(
            measures.values(), qrels, run)}  # fmt: skip
        assert {
            (query, measures[measure]): value
            for measure, values in ours.per_query.items()
            for query, value in values.items()
        } == each
    assert len({report.systems[name].means["MAP"] for name in THREE}) > 1


def test_a_missed_query_counts_as_zero(folder, place):
    report = evaluate_retrieval(folder, place, settings=["lexical"])
    (result,) = report.systems.values()
    assert report.queries == len(QUERIES) == 6
    values = result.per_query["nDCG@10"]
    assert list(values) == list(QUERIES)
    assert values["5"] == 0  # no document has the word
    assert result.missed >= 1
    assert result.means["nDCG@10"] == pytest.approx(sum(values.values()) / 6)
    judge = Metrics(["MRR"], QRELS)
    assert judge.measure({"2": {"penguins": 1.0}}).means == {"MRR": 1 / 6}
    assert judge.measure({"2": {"penguins": 1.0}, "5": {}}).missed == 5
    assert judge.measure({"2": {"penguins": 1.0}, "unjudged": {"x": 1.0}}).means["MRR"] == 1 / 6


def test_a_query_that_cannot_be_encoded_counts_as_zero_and_is_told(tmp_path):
    folder = write_trec(tmp_path / "set")
    text = (folder / "queries.tsv").read_text().replace("zymurgy", "\u200b")
    (folder / "queries.tsv").write_text(text)
    report = evaluate_retrieval(folder, settings=["dense"])
    assert report.systems["dense"].per_query["MRR"]["5"] == 0
    assert report.systems["dense"].missed == 1
    assert len(report.warnings) == 1
    assert "'5'" in report.warnings[0]


def test_graded_judgements_and_measures_by_name(folder, place):
    report = evaluate_retrieval(folder, place, settings=["dense"], measures=["AP(rel=2)", "P@1"])
    assert list(report.systems["dense"].means) == ["AP(rel=2)", "P@1"]
    assert set(report.systems["dense"].per_query["AP(rel=2)"]) == set(QUERIES)
    assert report.systems["dense"].per_query["AP(rel=2)"]["4"] == 0  # judged 1, not 2
    assert report.systems["dense"].per_query["P@1"]["4"] == 1


def test_a_document_counts_once_with_its_best_passage(folder, place):
    with slice_os.open(place) as index:
        query = QUERIES["3"]
        hits = index.search(query, mode="dense", size=5, rescore=0)
        assert [hit.document for hit in hits[:3]] == ["ship"] * 3  # it is long
        ranking = rank_documents(index, query, Setting("dense", "dense"), depth=3)
        assert len(ranking) == 3  # beyond the first three passages
        assert ranking["ship"] == hits[0].score
        assert list(ranking.values()) == sorted(ranking.values(), reverse=True)
        everything = rank_documents(index, query, Setting("dense", "dense"), depth=1000)
        assert set(everything) == set(DOCUMENTS)
        assert list(everything)[:3] == list(ranking)


def test_the_settings_are_those_of_a_search(folder, place, tmp_path):
    text = "hybrid:saturation:0.4:all-lengths:late=0.7"
    evaluate_retrieval(folder, place, settings=[text], output=tmp_path, depth=4)
    run = read_run(tmp_path / "hybrid-saturation-0.4-all-lengths-late-0.7.run")
    with slice_os.open(place) as index:
        for number, query in QUERIES.items():
            hits = index.search(query, weight=0.4, all_lengths=True, size=100, rescore=0, late=0.7)
            best = {}
            for hit in hits:
                best[hit.document] = max(hit.score, best.get(hit.document, 0))
            assert run[number] == dict(list(best.items())[:4])


def test_the_forms_of_a_collection_measure_the_same(tmp_path):
    sets = [write_beir(tmp_path / "beir"), write_smart(tmp_path / "smart")]
    found = [evaluate_retrieval(one, settings=["lexical"], measures=["Success@1"]) for one in sets]
    assert [report.documents for report in found] == [10, 10]
    values = [report.systems["lexical"].per_query["Success@1"] for report in found]
    assert values[0] == values[1]
    assert set(values[0].values()) == {0.0, 1.0}


def test_an_index_that_is_there_is_used_as_it_is(folder, tmp_path):
    place = tmp_path / "kept.slice"
    with slice_os.open(place) as index:
        index.add([slice_os.Document("bread", "Bake the loaf."), slice_os.Document("x", "Other.")])
    report = evaluate_retrieval(folder, place, settings=["dense"])
    assert report.systems["dense"].per_query["Success@1"]["4"] == 1
    assert report.systems["dense"].means["Success@1"] == 1 / 6
    assert "misses 8 of 9 judged documents" in report.warnings[0]
    with slice_os.open(place) as index:
        assert index.status().documents == 2
    report = evaluate_retrieval(folder, place, settings=["dense"], update=True)
    assert report.warnings == ()
    with slice_os.open(place) as index:
        assert index.status().documents == len(DOCUMENTS) + 1


def test_an_index_of_something_else_is_refused(folder, tmp_path):
    place = tmp_path / "other.slice"
    with slice_os.open(place) as index:
        index.add([slice_os.Document("x", "Some other text.")])
    assert "holds none of the documents that are judged" in retrieval_error(folder, place)
    with slice_os.open(place) as index:
        assert index.status().documents == 1


def test_nothing_stays_behind_of_an_index_for_one_evaluation(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    seen = []
    evaluate_retrieval(
        folder, settings=["lexical"], progress=lambda *_: seen.extend(tmp_path.iterdir())
    )
    assert seen
    assert list(tmp_path.iterdir()) == []


def test_each_system_is_compared_with_the_baseline(folder, place):
    report = evaluate_retrieval(folder, place, settings=THREE, baseline="dense", measures=["MRR"])
    assert [one.system for one in report.comparisons] == ["lexical", "hybrid:saturation:0.3"]
    means = {name: result.means["MRR"] for name, result in report.systems.items()}
    for one in report.comparisons:
        assert one.difference == pytest.approx(means[one.system] - means["dense"])
        assert one.t_test <= one.t_test_holm <= 1
        assert one.randomisation <= one.randomisation_holm <= 1
    assert evaluate_retrieval(folder, place, settings=["dense"]).comparisons == ()


def test_a_single_query_is_compared_with_nothing(tmp_path):
    folder = write_trec(tmp_path / "set")
    (folder / "qrels.txt").write_text("4 0 bread 1\n")
    report = evaluate_retrieval(folder, settings=["lexical", "dense"])
    assert report.comparisons == ()
    assert report.systems["dense"].means["MRR"] == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"settings": ["dens"]}, "'dens' is not usable: The option 'mode' must be one of"),
        ({"settings": ["hybrid:sum"]}, "cannot have 'sum'"),
        ({"settings": ["dense:rrf"]}, "cannot have 'rrf'"),
        ({"settings": ["hybrid:rrf:min_max"]}, "cannot have 'min_max'"),
        ({"settings": ["hybrid:1.5"]}, "'hybrid:1.5' is not usable"),
        ({"settings": ["dense:late=2"]}, "'dense:late=2' is not usable: The option 'late' must be"),
        ({"settings": ["hybrid:rrf:late=0"]}, "late= is for the mode dense and the fusion"),
        ({"settings": ["dense:late=some"]}, "cannot have 'late=some'"),
        ({"settings": ["lexical:late=0.5"]}, "cannot have 'late=0.5'"),
        ({"settings": ["dense", "dense"]}, "'dense' is given twice"),
        ({"settings": [], "runs": ["a.run", "a.run"]}, "'a.run' is given twice"),
        ({"settings": ["dense:all-lengths", Setting("Dense all-lengths")]}, "too like another"),
        ({"settings": []}, "Nothing to evaluate"),
        ({"settings": ["dense"], "baseline": "lexical"}, "'lexical' is not compared"),
        ({"measures": ["nDCG@ten"]}, "cannot compute the measure 'nDCG@ten'"),
        ({"measures": ["MAP", "AP"]}, "'AP' is given twice"),
        ({"depth": 0}, "A depth of 0"),
        ({"depth": 1001}, "A depth of 1,001"),
    ],
)
def test_settings_that_are_not_usable(folder, options, message):
    assert message in retrieval_error(folder, **options)


@pytest.mark.parametrize("package", ["ir_measures", "scipy"])
def test_a_missing_package_is_told_before_anything_is_done(folder, tmp_path, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'slice-os\[evaluate\]'"):
        evaluate_retrieval(folder, tmp_path / "i.slice", output=tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_setting_of_ones_own_is_checked_too():
    with pytest.raises(EvaluationError, match="'mine' is not usable: The option 'mode'"):
        Setting("mine", "Hybrid")
    with pytest.raises(EvaluationError, match="'mine' is not usable"):
        Setting("mine", weight=2)


def test_settings_in_short():
    assert parse_setting("hybrid") == Setting("hybrid")
    assert parse_setting("dense:all-lengths") == Setting(
        "dense:all-lengths", "dense", all_lengths=True
    )
    assert parse_setting("hybrid:0.1:rrf") == Setting("hybrid:0.1:rrf", "hybrid", "rrf", 0.1)
    assert parse_setting("dense:late=0.5") == Setting("dense:late=0.5", "dense", late=0.5)
    assert len({parse_setting(text) for text in SETTINGS}) == len(SETTINGS) == 13


@pytest.mark.parametrize("name", ["nDCG@0", "P@0", "ERR@10", "Accuracy@10", "nothing"])
def test_a_measure_that_cannot_be_computed_is_refused_first(name):
    with pytest.raises(EvaluationError, match=f"cannot compute the measure '{name}'"):
        Metrics([name], {"q": {"d": 1}})


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


def invoke(*arguments, code=0):
    result = CliRunner().invoke(main, ["evaluate", "retrieval", *map(str, arguments)])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return result


def test_the_verb_prints_a_table(folder, place):
    arguments = [folder, "--index", place, "--setting", "lexical", "--setting", "dense"]
    report = evaluate_retrieval(folder, place, settings=["lexical", "dense"])
    lines = invoke(*arguments).stdout.splitlines()
    assert lines[0] == f"{folder}: 6 queries, 10 documents."
    assert lines[1].split() == ["setting", *DEFAULT_MEASURES]
    for line, (name, result) in zip(lines[2:], report.systems.items(), strict=False):
        cells = line.replace("*", "").split()
        assert cells[:6] == [name, *(f"{value:.4f}" for value in result.means.values())]
    assert "missed" in lines[2]
    (one,) = [one for one in report.comparisons if one.measure == "nDCG@10"]
    assert lines[-1].split()[:2] == ["dense", f"{one.difference:+.4f}"]


def test_the_verb_prints_json_and_writes_files(folder, place, tmp_path):
    result = invoke(
        folder, "--index", place, "--setting", "dense", "--json", "--output", tmp_path,
        "--measure", "P@1", "--depth", 5,
    )  # fmt: skip
    found = json.loads(result.stdout)
    assert found["systems"]["dense"]["measures"].keys() == {"P@1"}
    assert found == json.loads((tmp_path / "report.json").read_text())
    assert len((tmp_path / "dense.run").read_text().splitlines()) == 5 * len(QUERIES)


def test_the_verb_measures_run_files_alone(folder, place, tmp_path):
    invoke(folder, "--index", place, "--setting", "lexical", "--output", tmp_path)
    run = tmp_path / "lexical.run"
    report = json.loads(invoke(folder, "--run", run, "--json").stdout)
    assert list(report["systems"]) == [str(run)]
    both = invoke(folder, "--run", run, "--setting", "dense", "--baseline", run, "--index", place)
    assert f"less that of {run}" in both.stdout


def test_the_verb_says_what_is_wrong_in_one_sentence(folder, tmp_path):
    assert invoke(tmp_path, code=1).stderr.count("\n") == 1
    assert "'mode' must be one of" in invoke(folder, "--setting", "fast", code=1).stderr


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_verb_with_whole_files(folder, tmp_path, kind):
    command = [str(Path(sys.executable).with_name("slice-os")), "evaluate", "retrieval"]
    command += [str(folder), "--output", str(tmp_path / "out")]
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        deadline = time.monotonic() + 240
        while not (tmp_path / "out" / "lexical.run").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(kind)
        _, said = process.communicate(timeout=240)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 130
    assert "Interrupted." in said
    assert not list(temporary.glob("slice-os-*"))  # the index of this evaluation alone
    assert all(path.suffix == ".run" for path in (tmp_path / "out").iterdir())
    assert read_run(tmp_path / "out" / "lexical.run")

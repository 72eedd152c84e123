"""Retrieval on a test collection: rankings, measures and settings."""

from __future__ import annotations

import sys
import tempfile

import ir_measures
import pytest

import slice_os
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
        ({"settings": ["dens"]}, "'dens' has no mode"),
        ({"settings": ["hybrid:sum"]}, "cannot have 'sum'"),
        ({"settings": ["dense:rrf"]}, "cannot have 'rrf'"),
        ({"settings": ["hybrid:rrf:min_max"]}, "cannot have 'min_max'"),
        ({"settings": ["hybrid:1.5"]}, "'hybrid:1.5' is not usable"),
        ({"settings": ["dense:late=2"]}, "'dense:late=2' is not usable: late= must be from 0"),
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
    with pytest.raises(EvaluationError, match="'mine' has no mode"):
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

"""Documents of known degree: what they are made of, and how their ranks are measured."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from slice_os.errors import EvaluationError
from slice_os.lab.ranking import SentenceRanker, degree_set, measure_degrees
from slice_os.lab.ranking.sets import (
    DEGREES,
    IRRELEVANT,
    RELEVANT,
    TYPES,
    DegreeReport,
    reciprocal_ranks,
)


def collection(queries=3, texts=20):
    """Texts of two to four sentences; each query has a relevant text and judged or unjudged others.

    The first query's others are judged, the second's are found by BM25.
    """
    rng = random.Random(0)

    def sentence(topic):
        words = "".join(rng.choices("bcdfgklmnprst", k=6)), "".join(rng.choices("aeiou", k=6))
        return f"{topic} {' '.join(words)} said so."

    asked = {f"q{k}": f"topic{k} question" for k in range(queries)}
    documents = {
        f"{query}-{n}": " ".join(sentence(f"topic{k}") for _ in range(rng.randint(2, 4)))
        for k, query in enumerate(asked)
        for n in range(texts)
    }
    qrels = {query: {f"{query}-{n}": 3 for n in range(2)} for query in asked}
    qrels["q0"] |= {f"q0-{n}": 1 for n in range(2, texts)}
    return asked, documents, qrels


@pytest.fixture(scope="module")
def cases():
    return degree_set(*collection(), relevant=2, per_query=2)


def test_each_type_is_there_as_often_as_published(cases):
    assert len(cases) == 6
    for case in cases:
        assert case.documents.keys() == case.types.keys()
        kinds = list(case.types.values())
        assert [kinds.count(one) for one in (RELEVANT, IRRELEVANT, *TYPES)] == [1, 15] + [4] * 6


def test_a_document_of_degree_k_is_a_relevant_text_and_k_less_one_others(cases):
    for case in cases:
        of = dict(zip(TYPES, DEGREES, strict=True))
        (relevant,) = (case.documents[k] for k, one in case.types.items() if one == RELEVANT)
        others = [case.documents[k] for k, one in case.types.items() if one == IRRELEVANT]
        texts = {sentence: text for text in [relevant, *others] for sentence in text}
        for name, kind in case.types.items():
            if kind not in of:
                continue
            degree, split = of[kind]
            document = case.documents[name]
            # Runs of sentences of one text: whole texts, but for what is split.
            runs = [tuple(run) for _, run in itertools.groupby(document, texts.get)]
            own = [run for run in runs if texts[run[0]] == relevant]
            assert len(own) == (2 if split else 1)
            assert tuple(itertools.chain(*own)) == relevant
            strangers = [run for run in runs if run not in own]
            assert all(run in others for run in strangers)
            assert len(set(strangers)) == len(strangers) == degree - 1


def test_where_the_relevant_text_stands_is_drawn(cases):
    first = [
        case.types[name] in TYPES and case.documents[name][0] in next(iter(case.documents.values()))
        for case in cases
        for name in case.documents
        if case.types[name] in TYPES
    ]
    assert 0.1 < sum(first) / len(first) < 0.5


def test_irrelevant_texts_are_judged_so_or_near_the_query(cases):
    for case in cases:
        topic = case.query.split()[0]
        named = [name for name, kind in case.types.items() if kind == IRRELEVANT]
        assert all(case.documents[name][0].startswith(topic) for name in named)
        assert not {f"q{topic[-1]}-0", f"q{topic[-1]}-1"} & set(named)


def test_a_seed_decides():
    first = degree_set(*collection(), relevant=2, seed=1)
    assert degree_set(*collection(), relevant=2, seed=1) == first
    assert degree_set(*collection(), relevant=2, seed=2) != first


@pytest.mark.parametrize(
    ("change", "message"),
    [({"irrelevant": 6}, "needs 7 irrelevant"), ({"irrelevant": 100}, "larger collection")],
)
def test_a_collection_that_does_not_suffice(change, message):
    with pytest.raises(EvaluationError, match=message):
        degree_set(*collection(), relevant=2, **change)


def test_equal_documents_share_their_ranks():
    types = ["a", "b", "b", "c"]
    found = reciprocal_ranks(np.array([1, 1, 0.5, 2], np.float32), types)
    half = (1 / 2 + 1 / 3) / 2
    assert found == pytest.approx({"a": half, "b": (half + 1 / 4) / 2, "c": 1})
    even = reciprocal_ranks(np.array([3, 3 + 1e-7, 3, 3], np.float32), types)
    assert list(even.values()) == pytest.approx([25 / 48] * 3)


def test_shuffling_gives_the_same_in_the_mean():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 3, 12).astype(np.float32)
    types = ["a", "b", "c"] * 4
    total = dict.fromkeys("abc", 0.0)
    for _ in range(4000):
        order = rng.permutation(12)
        order = order[np.argsort(-scores[order], kind="stable")]
        for rank, k in enumerate(order.tolist(), start=1):
            total[types[k]] += 1 / rank / 4 / 4000
    assert reciprocal_ranks(scores, types) == pytest.approx(total, abs=0.01)


def test_the_report_has_two_differences():
    mrr = {RELEVANT: 0.9, IRRELEVANT: 0.2, **dict(zip(TYPES, np.arange(6) / 10, strict=True))}
    report = DegreeReport(mrr)
    assert report.relevance == pytest.approx(0.7)
    assert report.length == pytest.approx(0.9 - 0.25)


def test_a_method_that_sees_length_alone_ranks_types_apart(cases):
    def longest(case):
        return np.array([len(text) for text in case.documents.values()], np.float32)

    report = measure_degrees(cases, longest)
    assert report.length < -0.1
    tied = measure_degrees(cases, lambda case: np.zeros(40, np.float32))
    assert tied.mrr == pytest.approx(dict.fromkeys(tied.mrr, sum(1 / k for k in range(1, 41)) / 40))


def test_shared_sentences_are_blind_to_length(cases):
    """With the encoder inside: a relevant text is found in whatever stands around it."""

    def score(case, method):
        return SentenceRanker(None, case.documents).scores([case.query], method)

    lcs, average = (
        measure_degrees(cases[:2], lambda case, method=method: score(case, method))
        for method in ("lcs", "average")
    )
    assert abs(lcs.length) < abs(average.length)

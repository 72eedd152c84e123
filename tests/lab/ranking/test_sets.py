"""Sets of known relevance: what they are made of, and how ranks are measured."""

from __future__ import annotations

import itertools
import random
from itertools import pairwise

import numpy as np
import pytest

from slice_os.errors import EvaluationError
from slice_os.lab.ranking import (
    SentenceRanker,
    degree_set,
    lcs_scores,
    mean_reciprocal_rank,
    measure_degrees,
    shared_sentence_set,
)
from slice_os.lab.ranking.sets import (
    DEGREES,
    IRRELEVANT,
    RELEVANT,
    TYPES,
    DegreeReport,
    reciprocal_ranks,
)


def made(seed=0, same=120, other=400):
    """Pairs of sentences of made-up words: "... a7" says the same as "... b7"."""
    rng = random.Random(seed)

    def words(count):
        return " ".join("".join(rng.choices("bcdfgklmnprst", k=6)) for _ in range(count))

    pairs = [(f"{words(5)} a{k}.", f"{words(5)} b{k}.", 4.5) for k in range(same)]
    pairs += [(f"{words(5)} u{k}.", f"{words(5)} v{k}.", rng.uniform(0, 3)) for k in range(other)]
    rng.shuffle(pairs)
    return pairs


def shared(query, document, pairs):
    """Places of the sentences that are the two of a pair that says the same."""
    likes = {first: second for first, second, score in pairs if score >= 4}
    return [
        (i, document.index(likes[sentence]))
        for i, sentence in enumerate(query)
        if likes.get(sentence) in document
    ]


@pytest.mark.parametrize(("degree", "split"), DEGREES)
def test_a_query_and_its_document_share_so_many_sentences(degree, split):
    pairs = made()
    made_set = shared_sentence_set(pairs, degree, split=split, queries=12, distractors=30, seed=3)
    assert len(made_set.queries) == 12
    assert len(made_set.documents) == 42
    assert made_set.qrels.keys() == made_set.queries.keys()
    for name, query in made_set.queries.items():
        assert len(set(query)) == len(query)
        for number, document in made_set.documents.items():
            places = shared(query, document, pairs)
            if number not in made_set.qrels[name]:
                assert places == []
                assert not set(query) & set(document)
                continue
            assert len(places) == degree
            assert places == sorted(places)
            rows, columns = zip(*places, strict=True)
            for side in (rows, columns):
                steps = {b - a for a, b in pairwise(side)}
                assert 1 not in steps if split else steps == {1}
            least = max(2, degree - 1) if split else 2
            assert least <= len(query) - degree <= max(6, least)
            assert not set(query) & set(document)
    relevant = [next(iter(one)) for one in made_set.qrels.values()]
    assert len(set(relevant)) == len(relevant)


def test_lengths_do_not_tell_what_is_relevant():
    made_set = shared_sentence_set(made(), 2, queries=50, distractors=300)
    relevant = {next(iter(one)) for one in made_set.qrels.values()}
    lengths = [[len(text) for name, text in made_set.documents.items() if (name in relevant) == is_]
               for is_ in (True, False)]  # fmt: skip
    means = [sum(one) / len(one) for one in lengths]
    assert abs(means[0] - means[1]) < 3
    assert all(6 <= n <= 26 for one in lengths for n in one)


def test_a_seed_decides():
    pairs = made()
    first = shared_sentence_set(pairs, 3, seed=1)
    assert shared_sentence_set(pairs, 3, seed=1) == first
    assert shared_sentence_set(pairs, 3, seed=2) != first


def test_fillers_say_something_else():
    pairs = made()
    pairs += [(f"{first[:-1]} too.", "filler", 1.0) for first, _, score in pairs if score > 4]
    made_set = shared_sentence_set(pairs, 4, queries=20)
    for query in made_set.queries.values():
        assert not any(f"{sentence[:-1]} too." in query for sentence in query)


def test_a_sentence_of_two_pairs_is_used_once():
    pairs = [*made(), *[("The same sentence.", f"number {k} of many.", 5.0) for k in range(30)]]
    made_set = shared_sentence_set(pairs, 2, queries=200)
    texts = [text for query in made_set.queries.values() for text in query]
    assert texts.count("The same sentence.") <= 1


@pytest.mark.parametrize(
    ("pairs", "degree", "message"),
    [
        (made(same=3), 4, "3 pairs score 4.0 or more, a query needs 4"),
        (made(), 0, "cannot share 0 sentences"),
        (made(other=4), 2, "sentences are needed that say something else"),
        ([], 2, "0 pairs"),
    ],
)
def test_pairs_that_do_not_suffice(pairs, degree, message):
    with pytest.raises(EvaluationError, match=message):
        shared_sentence_set(pairs, degree)


def test_the_mean_reciprocal_rank():
    qrels = {"q0": {"a": 1}, "q1": {"b": 1}, "q2": {"c": 1}}
    rankings = {
        "q0": {"a": 3.0, "b": 2.0, "c": 1.0},
        "q1": {"a": 3.0, "b": 2.0, "c": 1.0},
        "q2": {"a": 3.0, "b": 2.0},
    }
    assert mean_reciprocal_rank(rankings, qrels) == pytest.approx((1 + 1 / 2 + 0) / 3)


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
        topic = case.query[0].split()[0]
        named = [name for name, kind in case.types.items() if kind == IRRELEVANT]
        assert all(case.documents[name][0].startswith(topic) for name in named)
        assert not {f"q{topic[-1]}-0", f"q{topic[-1]}-1"} & set(named)


def degree_scores(case, of_text):
    """Return the published score of the relevant text, and those of the degrees."""
    query = np.stack([of_text[sentence] for sentence in case.query])
    documents = [np.stack([of_text[text] for text in said]) for said in case.documents.values()]
    scores = lcs_scores(query, documents, score="cosine")
    return scores[0], scores[[kind in TYPES for kind in case.types.values()]]


def random_vectors(case, rng):
    said = {*case.query, *itertools.chain(*case.documents.values())}
    vectors = rng.standard_normal((len(said), 256)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return dict(zip(sorted(said), vectors, strict=True))


def test_of_one_sentence_every_degree_ties_with_the_relevant_text(cases):
    for case in cases:
        of_text = random_vectors(case, np.random.default_rng(0))
        relevant = next(iter(case.documents.values()))
        of_text[relevant[0]] = of_text[case.query[0]]
        own, degrees = degree_scores(case, of_text)
        np.testing.assert_allclose(degrees, own, atol=1e-6)


def test_of_several_sentences_what_else_is_said_counts():
    for case in degree_set(*several_sentences(), relevant=2):
        of_text = random_vectors(case, np.random.default_rng(0))
        relevant, *others = [*case.documents.values()][:16]
        of_text[relevant[0]] = of_text[case.query[0]]
        for text in others:  # says the query's second sentence, nearly
            near = of_text[case.query[1]] + of_text[text[0]]
            of_text[text[0]] = near / np.linalg.norm(near)
        own, degrees = degree_scores(case, of_text)
        assert own == pytest.approx(1)
        assert (degrees < 0.99).any()


def several_sentences():
    asked, documents, qrels = collection()
    cut = {name: text.split(". ") for name, text in documents.items()}
    return {name: [text, "and then what"] for name, text in asked.items()}, cut, qrels


def test_queries_and_documents_may_be_sentences():
    asked, documents, _ = several_sentences()
    for case in degree_set(*several_sentences(), relevant=2):
        assert list(case.query) in asked.values()
        for name, kind in case.types.items():
            if kind not in TYPES:
                assert list(case.documents[name]) == documents[name]


def test_a_seed_decides_the_degree_set():
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
        return SentenceRanker(None, case.documents).scores(case.query, method)

    lcs, average = (
        measure_degrees(cases[:2], lambda case, method=method: score(case, method))
        for method in ("lcs", "average")
    )
    assert abs(lcs.length) < abs(average.length)

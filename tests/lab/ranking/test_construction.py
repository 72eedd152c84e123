"""Sets of shared sentences: what is shared, what is not, and that a seed decides."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from slice_os.errors import EvaluationError
from slice_os.lab.ranking import mean_reciprocal_rank, shared_sentence_set
from slice_os.lab.ranking.sets import DEGREES


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

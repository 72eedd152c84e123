"""Each baseline against a second computation, one document and one pair at a time."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slice_os.errors import MissingExtraError, QueryError
from slice_os.lab.ranking import baselines, subsequence
from slice_os.lab.ranking.baselines import BM25, Doc2Vec
from slice_os.lab.ranking.subsequence import Stack
from slice_os.text import terms

TEXTS = [
    "The customer cancels. She was cancelling her plans all day.",
    "A plan to cancel a plan, and nothing else but a plan.",
    "Nobody answered the telephone.",
    "Payments are due on the first; payment of what is due.",
]


def units(seed, lengths, dimension=7):
    rng = np.random.default_rng(seed)
    for n in lengths:
        rows = rng.normal(size=(n, dimension))
        yield (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def cosine(first, second):
    return float(first @ second / (np.linalg.norm(first) * np.linalg.norm(second)))


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.integers(0, 10**6),
    st.integers(1, 6),
    st.lists(st.integers(1, 9), min_size=1, max_size=12),
    st.sampled_from([1, 200, 1 << 20]),
)
def test_vector_baselines_are_their_definitions(monkeypatch, seed, m, lengths, block_bytes):
    monkeypatch.setattr(subsequence, "BLOCK_BYTES", block_bytes)
    query, *documents = units(seed, [m, *lengths])
    stacked = Stack.of(documents)
    means, maxima = baselines.means(stacked), baselines.maxima(stacked)
    best_pairs = baselines.best_pair_scores(query, stacked)
    thresholds = baselines.threshold_mean_scores(query, stacked, 0.3)
    for k, document in enumerate(documents):
        close = {"rel": 1e-4, "abs": 1e-5}
        np.testing.assert_allclose(means[k], document.mean(0), atol=1e-6)
        np.testing.assert_allclose(maxima[k], document.max(0), atol=1e-6)
        cosines = [[float(q @ d) for d in document] for q in query]
        assert best_pairs[k] == pytest.approx(max(map(max, cosines)), **close)
        alike = [d for d in document if max(float(q @ d) for q in query) >= 0.3]
        expected = cosine(query.mean(0), np.mean(alike, axis=0)) if alike else -1.0
        assert thresholds[k] == pytest.approx(expected, **close)


def test_vectors_need_no_length():
    documents = np.array([[2, 0], [0, 0], [-3, 3]], np.float32)
    found = baselines.vector_scores(np.array([0.5, 0], np.float32), documents)
    np.testing.assert_allclose(found, [1, 0, -math.sqrt(0.5)], rtol=1e-6)


def naive(query, texts, normal, idf):
    def count(text):
        found: dict[str, int] = {}
        for term, times in terms(text).items():
            found[normal(term)] = found.get(normal(term), 0) + times
        return found

    counts = [count(text) for text in texts]
    scores = []
    for own in counts:
        score = 0.0
        for term, asked in count(query).items():
            holding = sum(term in other for other in counts)
            weight = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5)) if idf else 1
            tf = own.get(term, 0)
            score += asked * weight * tf / (tf + 1.2)
        scores.append(score)
    return scores


@pytest.mark.parametrize("stem", [True, False])
@pytest.mark.parametrize("idf", [True, False])
def test_bm25_is_its_formula(stem, idf):
    from Stemmer import Stemmer

    normal = Stemmer("english").stemWord if stem else str
    ranked = BM25(TEXTS, stem=stem, idf=idf)
    for query in ("cancel the plans", "payment due, payment", "xylophone", ""):
        found = ranked.scores(query)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, naive(query, TEXTS, normal, idf), rtol=1e-6)


def test_stems_find_other_forms_and_length_does_not_count():
    assert BM25(TEXTS).scores("cancelled")[0] > 0
    assert BM25(TEXTS, stem=False).scores("cancelled").tolist() == [0] * 4
    long = [TEXTS[2], TEXTS[2] + " Something else entirely, quite often." * 50]
    first, second = BM25(long, idf=False).scores("nobody telephone")
    assert first == second


def test_doc2vec_is_repeatable_and_tells_texts_apart():
    # Words of its own and enough of them: Doc2vec learns little from a sentence.
    texts = [" ".join(f"{word}{k}" for word in " ".join(TEXTS * 5).split()) for k in "abcdefgh"]
    small = {"dimension": 64, "epochs": 60}
    model = Doc2Vec(texts, **small)
    vectors = model.encode(texts)
    assert vectors.shape == (8, 64)
    assert vectors.dtype == np.float32
    others = model.encode([" ".join(text.split()[::-1]) for text in texts])
    found = [int(baselines.vector_scores(vector, vectors).argmax()) for vector in others]
    assert found == list(range(8))
    np.testing.assert_array_equal(model.encode(texts[:1]), vectors[:1])
    np.testing.assert_array_equal(Doc2Vec(texts, **small).encode(texts), vectors)
    assert (Doc2Vec(texts, 1, **small).encode(texts) != vectors).any()
    assert Doc2Vec(texts[:1], epochs=1).encode(["a"]).shape == (1, 1024)


def test_stop_words_do_not_count_and_no_word_is_said():
    assert baselines._content("The parcel, and NOT the letter!") == ["parcel", "letter"]
    with pytest.raises(QueryError, match="no word to learn from"):
        Doc2Vec(["the of and", ""])


@pytest.mark.parametrize(
    ("package", "code", "what"),
    [
        ("gensim", "baselines import Doc2Vec; Doc2Vec(['x'])", "Doc2vec"),
        ("sentencex", "ranker import cut_sentences; cut_sentences('x')", "Cutting"),
    ],
)
def test_a_package_that_is_not_there_is_named(package, code, what):
    """A child process that cannot import it."""
    program = f"import sys; sys.modules[{package!r}] = None; from slice_os.lab.ranking.{code}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"slice_os.errors.{MissingExtraError.__name__}: {what}")
    assert "pip install 'slice-os[ranking]'" in last

"""The ranker with the encoder that comes with slice-os."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import slice_os
from slice_os.errors import EncoderError, QueryError
from slice_os.lab.ranking import Doc2Vec, SentenceRanker, cut_sentences, lcs_pairs, lcs_scores
from slice_os.lab.ranking.baselines import vector_scores

DOCUMENTS = {
    "phone": [
        "Hello there.",
        "My internet connection has not worked since Monday.",
        "I have restarted the router twice.",
        "Please send a technician to my house.",
        "Have a nice day.",
    ],
    "refund": "The parcel came broken. I want my money back. Please send it to my bank account.",
    "alice": "Alice was tired of sitting by her sister. A white rabbit ran past. It had a watch.",
    "mixed": ["A white rabbit ran past.", "Please send somebody to repair it."],
}
QUERY = ["The internet is down.", "Rebooting the modem did not help.", "Send someone to repair it."]


@pytest.fixture(scope="module")
def encoder():
    with slice_os.load_encoder(threads=1) as loaded:
        yield loaded


@pytest.fixture(scope="module")
def ranker(encoder):
    return SentenceRanker(encoder, DOCUMENTS)


def test_the_document_that_says_the_same_in_order_comes_first(ranker):
    best, *others = ranker.rank(QUERY)
    assert best.id == "phone"
    assert [pair.query for pair in best.pairs] == QUERY
    assert [pair.document for pair in best.pairs] == DOCUMENTS["phone"][1:4]
    assert all(pair.cosine >= 0.4 for pair in best.pairs)
    assert "alice" not in [one.id for one in others]
    assert best.score == pytest.approx(sum(pair.cosine for pair in best.pairs), rel=1e-5)
    json.dumps(best.to_dict())


def test_the_published_score_asks_how_alike_and_not_how_much(ranker):
    """One sentence said word for word beats three said in other words."""
    assert ranker.rank(QUERY, "lcs", size=1)[0].id == "mixed"


def test_scores_are_those_of_the_functions(ranker, encoder):
    cut = [text if isinstance(text, list) else cut_sentences(text) for text in DOCUMENTS.values()]
    vectors = [encoder.encode(sentences) for sentences in cut]
    query = encoder.encode(QUERY)
    for method, score in (("lcs", "cosine"), ("lcs-sum", "sum"), ("lcs-count", "count")):
        expected = lcs_scores(query, vectors, score=score)
        np.testing.assert_allclose(ranker.scores(QUERY, method), expected, rtol=1e-5)
    mean = query.mean(0)
    every_pair = [float(np.mean([[q @ d for d in rows] for q in query])) for rows in vectors]
    np.testing.assert_allclose(ranker.scores(QUERY, "all-pairs"), every_pair, atol=1e-5)
    for method, pooled, asked in (
        ("average", [rows.mean(0) for rows in vectors], mean),
        ("maximum", [rows.max(0) for rows in vectors], query.max(0)),
    ):
        expected = vector_scores(asked, np.stack(pooled))
        np.testing.assert_allclose(ranker.scores(QUERY, method), expected, atol=1e-5)
    whole = encoder.encode([" ".join(sentences) for sentences in cut])
    asked = encoder.encode([" ".join(QUERY)])[0]
    np.testing.assert_allclose(ranker.scores(QUERY, "vector"), whole @ asked, atol=1e-5)
    pairs = ranker.rank(QUERY, size=1)[0].pairs
    assert [pair.cosine for pair in pairs] == pytest.approx(
        [pair.cosine for pair in lcs_pairs(query, vectors[0])], abs=1e-5
    )


def test_every_method_ranks_with_and_without_lengths(ranker):
    weights = np.array([5, 3, 3, 2]) / 3
    for method in ranker.methods:
        scores = ranker.scores(QUERY, method)
        assert scores.shape == (4,)
        weighted = ranker.scores(QUERY, method, length_weighted=True)
        np.testing.assert_allclose(weighted, scores * weights, rtol=1e-6)
        found = ranker.rank(QUERY, method, size=2, length_weighted=True)
        assert [one.score for one in found] == sorted(weighted[weighted > 0].tolist())[::-1][:2]


def test_doc2vec_may_have_learnt_from_other_texts(encoder):
    model = Doc2Vec([text for text in DOCUMENTS.values() if isinstance(text, str)], dimension=8)
    ranker = SentenceRanker(encoder, DOCUMENTS, doc2vec=model)
    texts = [" ".join([text] if isinstance(text, str) else text) for text in DOCUMENTS.values()]
    expected = vector_scores(model.encode([" ".join(QUERY)])[0], model.encode(texts))
    np.testing.assert_array_equal(ranker.scores(QUERY, "doc2vec"), expected)


def test_the_documentation_has_every_method(ranker):
    text = (Path(__file__).parents[3] / "docs/ranking.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    assert tuple(re.findall(r"`([^`]+)`", " ".join(rows))) == ranker.methods


def test_texts_are_cut_and_may_be_documents(encoder):
    named = SentenceRanker(encoder, {"a": DOCUMENTS["refund"]})
    plain = SentenceRanker(encoder, [DOCUMENTS["refund"]])
    records = SentenceRanker(encoder, [slice_os.Document("a", DOCUMENTS["refund"])])
    (first,) = named.rank("Give me my money back!")
    (second,) = plain.rank(["Give me my money back!"])
    assert records.rank("Give me my money back!") == [first]
    assert (second.id, second.score, second.pairs) == ("0", first.score, first.pairs)
    assert first.pairs[0].document == "I want my money back."


def test_equal_documents_stay_in_their_order(encoder):
    ranker = SentenceRanker(encoder, {name: ["A rabbit ran past."] for name in "zxy"})
    assert [one.id for one in ranker.rank(["A rabbit ran by."])] == ["z", "x", "y"]


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ({}, "no document to rank"),
        ([], "no document to rank"),
        ({"a": "Words.", "b": " \n "}, "Document 'b' holds no sentence"),
        ({"a": []}, "Document 'a' holds no sentence"),
        ([slice_os.Document("a", "One."), slice_os.Document("a", "Two.")], "the same id"),
    ],
)
def test_documents_that_cannot_be_ranked(encoder, documents, message):
    with pytest.raises(QueryError, match=message):
        SentenceRanker(encoder, documents)


def test_one_text_is_no_documents_and_a_threshold_is_a_cosine(encoder):
    with pytest.raises(QueryError, match="are one text: give a list"):
        SentenceRanker(encoder, "Hello there.")
    with pytest.raises(QueryError, match="The threshold 2 must be"):
        SentenceRanker(encoder, DOCUMENTS, threshold=2)


def test_questions_that_cannot_be_answered(ranker):
    with pytest.raises(QueryError, match="no method 'magic': use one of lcs, lcs-sum"):
        ranker.rank(QUERY, "magic")
    with pytest.raises(QueryError, match="The query holds no sentence"):
        ranker.rank("  ")
    with pytest.raises(QueryError, match="ask for at least 1"):
        ranker.rank(QUERY, size=0)


def test_a_closed_encoder_says_so():
    encoder = slice_os.load_encoder(threads=1)
    ranker = SentenceRanker(encoder, DOCUMENTS)
    encoder.close()
    with pytest.raises(EncoderError, match="closed"):
        ranker.rank(QUERY)


def test_sentences_end_at_lines_and_full_stops():
    text = 'Mr. Smith left at 5 p.m. on Friday. "Stop!" he said.\nhello\nhow are you'
    assert cut_sentences(text) == [
        "Mr. Smith left at 5 p.m. on Friday.",
        '"Stop!" he said.',
        "hello",
        "how are you",
    ]
    wrapped = "A line that was broken by an editor at\nforty characters is one sentence. Next."
    assert cut_sentences(wrapped)[-1] == "Next."
    assert len(cut_sentences(wrapped)) == 2
    assert cut_sentences("") == []


def test_importing_the_room_is_light():
    code = (
        "import sys, slice_os.lab.ranking as r; print([m for m in ('numpy', 'gensim', 'sentencex',"
        " 'Stemmer') if m in sys.modules]);"
        "r.SentenceRanker; print([m for m in ('gensim', 'sentencex') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "[]"]

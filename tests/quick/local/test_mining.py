"""Mining of an embedded index: what it finds and what it encodes."""

from __future__ import annotations

import pytest

import slice_os
from slice_os.engine import mine

TEXTS = ["I want to cancel my order now.", "They want to cancel my order too.", "Good day."]


def test_each_text_is_encoded_once_and_many_passages_at_once(tmp_path, monkeypatch):
    documents = [slice_os.Document(str(n), TEXTS[n % 3]) for n in range(30)]
    slice_os.index(documents, tmp_path / "index.slice")
    with slice_os.open(tmp_path / "index.slice") as index:
        runs, encode = [], index.encoder.encode

        def encoded(texts):
            runs.append(texts)
            return encode(texts)

        monkeypatch.setattr(index.encoder, "encode", encoded)
        for batch in (mine.BATCH, 4):
            monkeypatch.setattr(mine, "BATCH", batch)
            runs.clear()
            index._vectors = None
            found = list(index.mine("cancelled an order", min_degree=0.8))
            assert {match.document for match in found} == {str(n) for n in range(30) if n % 3 < 2}
            _, *spans = runs  # the phrase itself comes first
            texts = [text for some in spans for text in some]
            assert texts
            assert len(set(texts)) == len(texts)
            runs.clear()
            assert list(index.mine("cancelled an order", min_degree=0.8)) == found
            assert len(runs) == 1  # what was encoded is remembered


@pytest.mark.parametrize("rescore", [True, False])
def test_the_very_words_are_found_wherever_they_stand_with_a_degree_of_one(tmp_path, rescore):
    said = [
        "He said: \u201cThank you,\u201d and left.",
        "agent: that is settled then\ncustomer: THANK YOU!!! bye",
        "No thank you. I would rather walk, if it is all the same to you.",
        "It was, thank\u00adyou notwithstanding, a long and very tiring thank you speech",
        "(thank you)",
    ]
    with slice_os.open(tmp_path / "index.slice") as index:
        index.add(slice_os.Document(str(n), text) for n, text in enumerate(said))
        found = [m for m in index.mine("Thank you", rescore=rescore) if m.degree == 1]
        assert [m.document for m in found] == ["0", "1", "2", "3", "4"]
        (hit, *_) = index.search("thank you", rescore=int(rescore))
        assert hit.degree == 1


def test_typography_and_case_do_not_change_a_degree(tmp_path):
    forms = ["don't", "don\u2019t", "DON'T"]
    with slice_os.open(tmp_path / "index.slice") as index:
        index.add([slice_os.Document("a", "I just don't want the refund that was offered to me.")])
        degrees = {
            max(match.degree for match in index.mine(f"{form} want a refund{end}", min_degree=0.7))
            for form in forms
            for end in ("", ".", "!", "\u201d")
        }
        assert len(degrees) == 1


def test_a_counter_example_takes_what_is_nearer_to_it(tmp_path):
    with slice_os.open(tmp_path / "index.slice", judge=None) as index:
        index.add([slice_os.Document("a", "She would like to keep it, not to cancel the order.")])
        assert list(index.mine("cancel the order"))
        against = {"cancel the order": "not to cancel the order"}
        assert not list(index.mine("cancel the order", counter_examples=against))

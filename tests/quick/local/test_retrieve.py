"""What an embedded index finds: degrees, BM25, filters, scans."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from slice_os.engine.rerank import RANKS
from slice_os.spans import PhraseBatch, degree, query_words, span_norms
from slice_os.storage.contract import MiningQuery
from slice_os.text.filters import parse_filters
from support.local import (
    DIMENSION,
    SENTENCES,
    candidates,
    encode,
    fill,
    late_interaction,
    naive_degree,
    put,
    search,
    unit,
)


@pytest.mark.parametrize("lengths", [range(1, 21), range(3, 6), range(15, 21)])
def test_dense_degrees_are_those_of_every_span_formed_one_by_one(index, lengths):
    rng = np.random.default_rng(5)
    texts = {f"d{n}": " ".join(rng.choice(SENTENCES[0].split(), n)) for n in range(1, 60)}
    fill(index, texts)
    vector = unit(2)
    found = dict(search(index, vector=vector, lengths=lengths, mode="dense", size=100))
    assert found.keys() == texts.keys()
    for name, text in texts.items():
        # Two roundings to 8 bits, of the words and of the query, in only 32 dimensions.
        assert found[name] == pytest.approx(naive_degree(text, vector, lengths), abs=0.006)


def test_blocks_of_ranks_are_scored_again_and_pages_are_cut_from_them(index):
    rng = np.random.default_rng(11)
    texts = {f"d{n}": " ".join(rng.choice(" ".join(SENTENCES).split(), 25)) for n in range(80)}
    fill(index, texts)
    query = encode("the crew called about a refund")
    asked = {"vector": unit(4), "lengths": range(4, 9), "mode": "dense", "size": 99}
    plain = search(index, **asked)
    late = {**asked, "words": query_words(query.vectors), "late": 0.5}
    found = search(index, **late)
    assert found != plain
    for first in range(0, 80, RANKS["dense"]):
        block = dict(plain[first : first + RANKS["dense"]])
        scores = {
            name: 0.5 * naive_degree(texts[name], unit(4), range(4, 9))
            + 0.5 * degree(late_interaction(late["words"], encode(texts[name]).vectors))
            for name in block
        }
        again = found[first : first + RANKS["dense"]]
        assert dict(again) == pytest.approx(scores, abs=0.006)
        assert [score for _, score in again] == sorted(dict(again).values(), reverse=True)
    paged = [
        one for at in range(0, 80, 7) for one in search(index, **{**late, "offset": at, "size": 7})
    ]
    assert paged == found


@pytest.mark.parametrize("lengths", [range(4, 9), range(1, 5)])
def test_deep_pages_show_every_passage_once(index, lengths):
    rng = np.random.default_rng(12)
    words = " ".join(SENTENCES).split()
    with index.writer() as out:
        for n in range(1100):
            put(out, f"d{n}", [" ".join(rng.choice(words, 9))])
    query = query_words(encode("the crew called about a refund").vectors)
    asked = {"vector": unit(4), "lengths": lengths, "mode": "dense", "words": query}
    for late in (0.0, 0.5):
        pages = [
            search(index, **asked, late=late, offset=at, size=64) for at in range(840, 1100, 64)
        ]
        shown = [name for page in pages for name, _ in page]
        assert len(shown) == len({*shown}) == 260


def test_stored_words_keep_degrees_and_size_within_bounds(index, folder):
    text = " ".join(SENTENCES * 10)
    fill(index, {"d": [text]})
    words = encode(text)
    (candidate,) = candidates(index, mode="dense", vector=unit(3))
    stored = candidate.stored
    true = span_norms(words.vectors)
    for seed in range(50):
        vector = unit(seed)
        sums = np.concatenate(([0], np.cumsum(words.vectors.astype(np.float64) @ vector)))
        kept = np.concatenate(([0], np.cumsum(stored.packed.vectors.astype(np.float64) @ vector)))
        for n in (1, 2, 5, 20):
            row, last = n - 1, len(words) - n + 1
            wanted = (sums[n:] - sums[:-n]) / true[row, :last]
            got = (kept[n:] - kept[:-n]) / stored.packed.span_norms[row, :last]
            assert np.abs(wanted - got).max() / 2 < 0.004  # 32 dimensions; 384 are 3 times better
    assert (stored.packed.starts == words.starts).all()
    assert (stored.packed.ends == words.ends).all()
    (segment,) = (folder / "segments").iterdir()
    assert segment.stat().st_size <= len(words) * (DIMENSION + 60) + 2048


def test_lexical_scores_are_lucenes_bm25_and_common_words_still_count(index):
    texts = {
        "a": "the red ship's mast, and at dawn it is red",
        "b": "red plan early again " * 14 + "dawn",
        "c": "blue offices red",
    }
    fill(index, texts)
    stop_words = ("the", "and", "at", "it", "is", "s")
    tokens = {
        name: [word for word in re.findall(r"\w+", text.lower()) if word not in stop_words]
        for name, text in texts.items()
    }
    mean = sum(map(len, tokens.values())) / 3
    wanted = dict.fromkeys(texts, 0.0)
    for term in ("red", "red", "offices", "ship"):
        holding = sum(term in words for words in tokens.values())
        for name, words in tokens.items():
            kept = {57: 56}.get(len(words), len(words))  # in one byte
            length = 1.2 * (0.25 + 0.75 * kept / mean)
            idf = math.log(1 + (3 - holding + 0.5) / (holding + 0.5))
            wanted[name] += idf * words.count(term) / (words.count(term) + length)
    found = search(index, text="Red, the ship, the OFFICES: red!", mode="lexical")
    assert dict(found) == pytest.approx(wanted)
    assert [name for name, _ in found] == sorted(wanted, key=wanted.get, reverse=True)


def test_what_is_written_between_two_searches_counts_in_the_second(index):
    for name, text in {"a": "red ship", "b": "red plan early again " * 5}.items():
        fill(index, {name: [text]})
        found = dict(search(index, text="red", mode="lexical"))
    idf = math.log(1 + 0.5 / 2.5)
    wanted = {
        name: idf * times / (times + 1.2 * (0.25 + 0.75 * length / 11))
        for name, times, length in (("a", 1, 2), ("b", 5, 20))
    }
    assert found == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("e.g.", {"e.g. the crew"}),
        ("over 1,000", {"1,000 ships"}),
        ("U.S. node_id", {"the U.S. crew", "node_id is red"}),
        ("the customer’s", {"a customer called"}),
        ("ships.Red", set()),
    ],
)
def test_what_is_one_word_to_lucene_is_one_word_of_a_query(index, query, wanted):
    texts = [
        *("e.g. the crew", "e is not g", "1,000 ships", "1 ship of 000", "the U.S. crew"),
        *("u and s", "node_id is red", "a node with an id", "a customer called", "the plan's dawn"),
    ]
    with index.writer() as out:
        for text in texts:
            put(out, text, [text])
    assert {name for name, _ in search(index, text=query, mode="lexical")} == wanted


def test_any_text_is_a_query(index):
    fill(index, {"d": [SENTENCES[0]]})
    assert search(index, text='"; DROP * NEAR( \0 ^ \U0001f600 -', mode="lexical") == []
    assert search(index, text="plan " * 2000 + " ".join(map(str, range(2000))), mode="lexical")
    assert search(index, text="plan" + ".a.b" * 20_000, mode="lexical") == []
    assert search(index, text="\u0301", mode="lexical") == []  # a mark without a letter
    assert search(index, text="the", mode="lexical")  # a stop word alone still counts
    assert search(index, text='plan AND NOT "the" OR (cancel)', mode="lexical")


def test_filters_reach_every_leg(index):
    with index.writer() as out:
        for year in range(2000, 2020):
            put(out, f"d{year}", [SENTENCES[year % 4]], year=year, tags=["even", "odd"][year % 2 :])
    for mode in ("dense", "lexical", "hybrid"):
        wanted = parse_filters(["year>=2010", "year<2014", "tags=even"])
        found = search(
            index, text="nobody crew liability cancel", mode=mode, filters=wanted, size=50
        )
        assert {d for d, _ in found} == {"d2010", "d2012"}, mode
    assert index.matching(parse_filters({"year": 2007})) == ["d2007"]


def test_a_scan_yields_every_passage_that_reaches_and_whole_short_ones(index):
    rng = np.random.default_rng(7)
    texts = {f"d{n}": " ".join(rng.choice(SENTENCES[2].split(), 1 + n % 30)) for n in range(90)}
    fill(index, texts)
    vectors, windows = np.stack([unit(s) for s in range(5)]), [range(1, 5), *[range(4, 9)] * 4]
    for threshold in (0.3, 0.5):
        found = {
            (stored.passage.document, k)
            for stored, phrases in index.scan(
                MiningQuery(PhraseBatch(vectors, windows, np.full(5, threshold, dtype=np.float32)))
            )
            for k in phrases
        }
        for name, text in texts.items():
            for k in range(5):
                if naive_degree(text, vectors[k], windows[k]) > degree(threshold) + 0.003:
                    assert (name, k) in found
                if naive_degree(text, vectors[k], windows[k]) < degree(threshold) - 0.005:
                    assert (name, k) not in found


def test_a_cut_off_ranking_has_the_bm25_scores_of_the_best_by_degree(index):
    with index.writer() as out:
        for n in range(30):
            put(out, f"d{n}", [f"{SENTENCES[n % 4]} Number {n}."])
    asked = {"text": "plan number 7 crew", "mode": "hybrid", "late": 0.0, "size": 30}
    whole = {c.stored.passage.document: c.bm25 for c in candidates(index, **asked)}
    assert len({*whole.values()}) == 5
    cut = candidates(index, **asked, depth=3)
    assert {c.stored.passage.document: c.bm25 for c in cut} == {
        c.stored.passage.document: whole[c.stored.passage.document] for c in cut
    }

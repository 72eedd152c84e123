"""A large index is scanned by its bits: what ranks best is what every vector would rank best."""

from __future__ import annotations

import numpy as np
import pytest

from slice_os.spans import PackedPassage, word_bits
from slice_os.storage.local import LocalBackend, candidates, scan
from slice_os.storage.local.compaction import segment_file
from slice_os.storage.local.database import connect, recorded_segments
from slice_os.storage.local.segments import Segment
from slice_os.text.filters import parse_filters
from slice_os.types import Document, Passage, Words
from support.local import DIMENSION, SENTENCES, encode, put, search, unit

MODES = [
    {"mode": "dense"},
    {"mode": "hybrid"},
    {"mode": "hybrid", "fusion": "rrf"},
    {"mode": "hybrid", "fusion": "min_max"},
]


def segments(folder):
    with connect(folder) as database:
        recorded = recorded_segments(database)
    return [Segment.open(segment_file(folder, number), row) for number, row in recorded.items()]


@pytest.fixture
def large(index):
    """Return an index of 1,200 passages, every twentieth of which answers a query."""
    rng = np.random.default_rng(7)
    words = " ".join(SENTENCES).split()
    with index.writer() as out:
        for n in range(1200):
            text = " ".join(rng.choice(words, 12))
            passage = Passage(f"d{n}", 0, 0, len(text), text)
            known = encode(text)
            vectors = known.vectors
            if n % 20 == 0:
                vectors[3:9] += (
                    2 * n / 1200 * np.linalg.norm(vectors[3:9], axis=1)[:, None] * unit(4)
                )
            out.begin(Document(f"d{n}", text))
            moved = Words(known.starts, known.ends, vectors)
            out.put(passage, PackedPassage.pack(moved, 20, passage))
            out.finish()
    return index


@pytest.mark.parametrize("asked", MODES, ids=lambda asked: asked.get("fusion", asked["mode"]))
def test_the_best_by_bits_are_the_best_by_vectors(large, asked, monkeypatch):
    query = {"text": "customer refund", "vector": unit(4), "lengths": range(4, 9), **asked}
    by_bits = search(large, **query)
    monkeypatch.setattr(candidates, "REFINED", 10_000)
    monkeypatch.setattr(scan, "_by_bits", lambda *given: 1 / 0)
    by_vectors = search(large, **query)
    assert [name for name, _ in by_bits] == [name for name, _ in by_vectors]
    assert dict(by_bits) == pytest.approx(dict(by_vectors), abs=0.001)


@pytest.mark.parametrize("asked", MODES, ids=lambda asked: asked.get("fusion", asked["mode"]))
def test_a_filter_that_nothing_meets_leaves_nothing(large, asked):
    query = {"text": "customer refund", "lengths": range(4, 9), **asked}
    assert search(large, **query, filters=parse_filters(["author=nobody"])) == []


@pytest.mark.parametrize("queries", [1, scan.FEW, scan.FEW + 1, scan.TOGETHER + 1])
@pytest.mark.parametrize("lengths", [range(1, 5), range(3, 9), range(15, 21)])
def test_cosines_by_bits_are_near_the_exact_ones(large, folder, queries, lengths):
    vectors = np.stack([unit(4 + n) for n in range(queries)])
    (segment,) = segments(folder)
    exact = scan.best_cosines([segment], vectors, [lengths] * queries, exact=True)
    likely = scan.best_cosines([segment], vectors, [lengths] * queries, exact=False)
    near = exact[0] > 0.6
    assert near.sum() > 15
    assert np.abs(likely[0] - exact[0])[near].mean() < 0.1  # 32 dimensions; 384 are 3 times better
    some = [(segment, place) for place in (1199, 0, 7)]
    again = scan.exact_cosines(some, vectors[0], lengths)
    assert again == pytest.approx(exact[0, [1199, 0, 7]], abs=1e-5)


@pytest.mark.parametrize("lengths", [range(1, 5), range(15, 21)])
def test_segments_scanned_together_are_what_each_is_alone(index, folder, lengths):
    for n, factor in enumerate((1, 64, 1 / 64)):
        with index.writer() as out:
            for words in (3, 40, 1, 17):
                text = " ".join([*" ".join(SENTENCES).split()] * 4)
                text = " ".join(text.split()[n : n + words])
                known, passage = encode(text), Passage(f"d{n}-{words}", 0, 0, len(text), text)
                out.begin(Document(passage.document, text))
                moved = Words(known.starts, known.ends, known.vectors * np.float32(factor))
                out.put(passage, PackedPassage.pack(moved, 20, passage))
                out.finish()
    parts = segments(folder)
    assert len({int(part.exponent[0]) for part in parts}) == 3
    alone = [scan.best_cosines([part], unit(4)[None], [lengths], exact=False) for part in parts]
    together = scan.best_cosines(parts, unit(4)[None], [lengths], exact=False)
    likely = [np.maximum(best, scan.DOUBTFUL) for best in (together, np.concatenate(alone, axis=1))]
    assert likely[0].tolist() == likely[1].tolist()
    assert likely[0].max() > 0.2


def test_groups_hold_every_segment_once_and_few_words(monkeypatch):
    monkeypatch.setattr(scan, "GROUP", 10)
    groups = [
        [len(part) for part in group]
        for group in scan.grouped(("a" * n for n in (4, 6, 1, 99, 9, 1)), 1, exact=False)
    ]
    assert groups == [[4, 6], [1], [99], [9, 1]]
    assert [*scan.grouped([], 1, exact=False)] == []
    for queries, exact in ((1, True), (scan.FEW + 1, False)):
        assert [*scan.grouped(["aa", "a"], queries, exact=exact)] == [["aa"], ["a"]]


def test_lengths_are_thinned_and_none_of_the_shortest_is_left_out():
    assert scan._thinned(range(1, 6)) == [1, 2, 3, 4]
    assert scan._thinned(range(3, 9)) == [3, 4, 6]
    assert scan._thinned(range(1, 21)) == [1, 2, 3, 4, 6, 9, 13, 19]
    assert scan._thinned(range(7, 8)) == [7]


def test_a_merged_segment_has_the_bits_of_its_words(index, folder):
    for n in range(8):
        with index.writer() as out:
            put(out, f"d{n}", SENTENCES)
    (segment,) = segments(folder)
    bits, ratios = word_bits(segment.vectors)
    assert segment.bits.tobytes() == bits.tobytes()
    assert segment.ratios.tobytes() == ratios.tobytes()


@pytest.mark.parametrize("longest", [9, 300, 70_000])
def test_words_of_any_size_are_stored_where_they_are(index, folder, longest):
    starts = np.array([0, 4, 4, 5, longest + 9], np.int32)  # two words of one character
    ends = np.array([3, 5, 5, longest + 5, longest + 12], np.int32)
    text = "abc d" + "e" * longest + "    xyz"
    passage = Passage("d", 0, 0, len(text), text)
    pieces = np.array([1, longest, 2, 3, 4], np.int32)
    words = Words(starts, ends, np.ones((5, DIMENSION), np.float32), pieces, np.ones(5, np.uint8))
    with index.writer() as out:
        for name in ("d", "e"):
            out.begin(Document(name, text))
            out.put(passage, PackedPassage.pack(words, 20, passage))
            out.finish()
    for stored in index.passages():
        assert (stored.packed.starts == starts).all()
        assert (stored.packed.ends == ends).all()
        assert (stored.packed.pieces == pieces).all()
    (segment,) = segments(folder)
    assert segment.widths.dtype == np.min_scalar_type(longest)


def test_an_index_of_another_layout_is_refused(index, folder):
    put_in = LocalBackend(folder)
    put_in.close()
    with connect(folder) as database:
        database.execute(
            "UPDATE meta SET value = json_set(value, '$.format', 2) WHERE name='index'"
        )
    with pytest.raises(Exception, match="format 2, this slice-os reads 3: index anew"):
        LocalBackend(folder)

"""The embedded index as such: commits, crashes, locks, tidying, damage."""

from __future__ import annotations

import math
import re
import sqlite3

import numpy as np
import pytest

from slice_os.backends.base import Retrieval
from slice_os.backends.local import LocalBackend, tidy, writer
from slice_os.backends.local.lexical import bm25, bm25_of
from slice_os.errors import IndexDamagedError, IndexLockedError, PlaceError
from slice_os.filters import parse_filters
from slice_os.records import Document, EncodedPassage, Passage
from slice_os.spans import degree, fit_window, span_norms
from support.local import DIMENSION, SENTENCES, encode, put


def unit(seed):
    vector = np.random.default_rng(seed).normal(size=DIMENSION).astype(np.float32)
    return vector / np.linalg.norm(vector)


def search(index, **wanted):
    retrieval = Retrieval(**{"text": "", "vector": unit(1), "lengths": range(1, 21), **wanted})
    return [(c.stored.passage.document, c.score) for c in index.retrieve(retrieval)]


def naive_degree(text, vector, lengths):
    vectors = encode(text).vectors.astype(np.float64)
    window = fit_window(lengths, len(vectors))
    best = max(
        (vectors[i : i + n].sum(0) @ vector) / np.linalg.norm(vectors[i : i + n].sum(0))
        for n in window
        for i in range(len(vectors) - n + 1)
    )
    return degree(best)


@pytest.mark.parametrize("lengths", [range(1, 21), range(3, 6), range(15, 21)])
def test_dense_degrees_are_those_of_every_span_formed_one_by_one(index, lengths):
    rng = np.random.default_rng(5)
    texts = {f"d{n}": " ".join(rng.choice(SENTENCES[0].split(), n)) for n in range(1, 60)}
    with index.writer() as out:
        for name, text in texts.items():
            put(out, name, [text])
    vector = unit(2)
    found = dict(search(index, vector=vector, lengths=lengths, mode="dense", size=100))
    assert found.keys() == texts.keys()
    for name, text in texts.items():
        # Two roundings to 8 bits, of the words and of the query, in only 32 dimensions.
        assert found[name] == pytest.approx(naive_degree(text, vector, lengths), abs=0.006)


def test_stored_words_keep_degrees_within_two_thousandths_and_size_within_the_budget(index, folder):
    text = " ".join(SENTENCES * 10)
    with index.writer() as out:
        put(out, "d", [text])
    words = encode(text)
    (candidate,) = index.retrieve(Retrieval("", unit(3), range(1, 21), "dense"))
    stored = candidate.stored
    true = span_norms(words.vectors)
    for seed in range(50):
        vector = unit(seed)
        sums = np.concatenate(([0], np.cumsum(words.vectors.astype(np.float64) @ vector)))
        kept = np.concatenate(([0], np.cumsum(stored.words.vectors.astype(np.float64) @ vector)))
        for n in (1, 2, 5, 20):
            row, last = n - 1, len(words) - n + 1
            wanted = (sums[n:] - sums[:-n]) / true[row, :last]
            got = (kept[n:] - kept[:-n]) / stored.norms[row, :last]
            assert np.abs(wanted - got).max() / 2 < 0.004  # 32 dimensions; 384 are 3 times better
    assert (stored.words.starts == words.starts).all()
    assert (stored.words.ends == words.ends).all()
    (segment,) = (folder / "segments").iterdir()
    assert segment.stat().st_size <= len(words) * (DIMENSION + 60) + 2048


def test_lexical_scores_are_lucenes_bm25_and_common_words_still_count(index):
    texts = {"a": "red ship, dawn red", "b": "red plan early again", "c": "blue offices red"}
    with index.writer() as out:
        for name, text in texts.items():
            put(out, name, [text])
    tokens = {name: re.findall(r"\w+", text.lower()) for name, text in texts.items()}
    mean = sum(map(len, tokens.values())) / 3
    wanted = dict.fromkeys(texts, 0.0)
    for term in ("red", "red", "offices", "ship"):
        holding = sum(term in words for words in tokens.values())
        for name, words in tokens.items():
            length = 1.2 * (0.25 + 0.75 * len(words) / mean)
            idf = math.log(1 + (3 - holding + 0.5) / (holding + 0.5))
            wanted[name] += idf * words.count(term) / (words.count(term) + length)
    found = search(index, text="Red, the ship, the OFFICES: red!", mode="lexical")
    assert dict(found) == pytest.approx(wanted)
    assert [name for name, _ in found] == sorted(wanted, key=wanted.get, reverse=True)


def test_any_text_is_a_query(index):
    with index.writer() as out:
        put(out, "d", [SENTENCES[0]])
    assert search(index, text='"; DROP * NEAR( \0 ^ \U0001f600 -', mode="lexical") == []
    assert search(index, text="plan " * 2000 + " ".join(map(str, range(2000))), mode="lexical")
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


def test_a_document_is_replaced_whole_and_unchanged_passages_keep_their_vectors(index, folder):
    with index.writer() as out:
        put(out, "d", SENTENCES[:3])
    before = {f.name for f in (folder / "segments").iterdir()}
    text = "\n".join([SENTENCES[3], SENTENCES[1]])
    with index.writer() as out:
        assert out.begin(Document("d", text))
        start = len(SENTENCES[3]) + 1
        out.add(EncodedPassage(Passage("d", 0, 0, start - 1, SENTENCES[3]), encode(SENTENCES[3])))
        out.keep(Passage("d", 1, start, len(text), SENTENCES[1]))
        out.finish()
    assert index.status().passages == 2
    hits = index.retrieve(Retrieval("office crew liability", unit(1), range(1, 21)))
    assert {(c.stored.passage.text, c.stored.passage.start) for c in hits} == {
        (SENTENCES[3], 0),
        (SENTENCES[1], start),
    }
    assert before != {f.name for f in (folder / "segments").iterdir()}


def test_what_was_not_finished_is_hidden_and_then_reused(index):
    with index.writer() as out:
        assert out.begin(Document("d", "…"))
        out.add(EncodedPassage(Passage("d", 0, 0, 9, SENTENCES[0]), encode(SENTENCES[0])))
    for mode in ("dense", "lexical", "hybrid"):
        assert search(index, text="cancel", mode=mode) == []
    assert index.status().details["incomplete_documents"] == 1
    assert index.stored(["d"])["d"].hash is None
    assert index.stored(["d"])["d"].passages.total() == 1
    with index.writer() as out:
        assert out.begin(Document("d", SENTENCES[0]))
        out.keep(Passage("d", 0, 0, len(SENTENCES[0]), SENTENCES[0]))
        out.finish()
    for mode in ("dense", "lexical", "hybrid"):
        assert [d for d, _ in search(index, text="cancel", mode=mode)] == ["d"]


def test_one_run_sees_an_id_once_and_prune_drops_what_it_did_not_see(index):
    with index.writer() as out:
        for name in ("a", "b", "c"):
            put(out, name, [SENTENCES[0]])
        assert not out.begin(Document("a", "again"))
        assert not out.touch("a")
    with index.writer() as out:
        assert out.touch("a")
        assert not out.touch("a")
        assert out.prune() == 2
    assert index.status().documents == 1


def test_a_second_writer_gets_a_clear_error_and_readers_are_not_blocked(index, folder):
    with index.writer() as out:
        put(out, "a", [SENTENCES[0]])
        with pytest.raises(IndexLockedError, match="Another process is writing"):
            LocalBackend(folder).writer()
        assert search(index, text="cancel") == []
        out.commit()
        assert [d for d, _ in search(index, text="cancel")] == ["a"]
        put(out, "b", [SENTENCES[0]])
    assert len(search(index, text="cancel")) == 2


def test_the_next_writer_removes_a_segment_that_no_transaction_names(index, folder):
    orphan = folder / "segments" / "00000042.slice"
    orphan.write_bytes(b"half")
    index.status()
    assert orphan.exists()
    index.writer().close()
    assert not orphan.exists()


def test_many_small_segments_are_merged_and_holes_are_closed(index, folder, monkeypatch):
    monkeypatch.setattr(writer, "SEGMENT_WORDS", 200)
    for n in range(3 * tidy.MANY_SEGMENTS):
        with index.writer() as out:
            put(out, f"d{n}", [f"{SENTENCES[n % 4]} Number {n}."])
    before = search(index, text="number", size=100)
    assert len(before) == 3 * tidy.MANY_SEGMENTS
    assert index.status().details["segments"] <= tidy.MANY_SEGMENTS
    with index.writer() as out:
        assert out.delete([f"d{n}" for n in range(20)]) == 20
    state = index.status()
    assert state.words == state.details["stored_words"]
    after = dict(search(index, text="number", size=100, mode="dense"))
    kept = {d: s for d, s in search(index, text="number", size=100, mode="dense") if d in after}
    assert after == kept
    assert len(after) == 4
    assert len(list((folder / "segments").iterdir())) == state.details["segments"]


def test_a_reader_survives_the_tidying_of_what_it_has_open(index, folder, monkeypatch):
    with index.writer() as out:
        for n in range(10):
            put(out, f"d{n}", [f"{SENTENCES[0]} {n}"])
    other = LocalBackend(folder)
    assert len(search(other, mode="dense")) == 10
    scanning = other.scan(unit(1)[None], [range(1, 21)], np.array([-1], np.float32))
    next(scanning)
    with index.writer() as out:
        out.delete([f"d{n}" for n in range(9)])
    assert len(list(scanning)) == 9  # the state in which the scan began
    assert [d for d, _ in search(other, mode="dense")] == ["d9"]
    other.close()


def test_scan_yields_every_passage_that_reaches_and_counts_short_ones_whole(index):
    rng = np.random.default_rng(7)
    texts = {f"d{n}": " ".join(rng.choice(SENTENCES[2].split(), 1 + n % 30)) for n in range(90)}
    with index.writer() as out:
        for name, text in texts.items():
            put(out, name, [text])
    vectors, windows = np.stack([unit(s) for s in range(5)]), [range(1, 5), *[range(4, 9)] * 4]
    for threshold in (0.3, 0.5):
        found = {
            (stored.passage.document, k)
            for stored, phrases in index.scan(
                vectors, windows, np.full(5, threshold, dtype=np.float32)
            )
            for k in phrases
        }
        for name, text in texts.items():
            for k in range(5):
                if naive_degree(text, vectors[k], windows[k]) > degree(threshold) + 0.003:
                    assert (name, k) in found
                if naive_degree(text, vectors[k], windows[k]) < degree(threshold) - 0.005:
                    assert (name, k) not in found


def test_places_that_are_no_index(tmp_path, index, folder):
    assert LocalBackend.open(str(tmp_path / "nothing")) is None
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("mine")
    with pytest.raises(PlaceError, match="is not a slice-os index"):
        LocalBackend.open(str(tmp_path / "notes"))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "index.sqlite").write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    with pytest.raises(IndexDamagedError, match="damaged"):
        LocalBackend(tmp_path / "broken")
    database = sqlite3.connect(folder / "index.sqlite")
    database.execute("UPDATE meta SET value = json_set(value, '$.format', 99) WHERE name='index'")
    database.commit()
    database.close()
    with pytest.raises(PlaceError, match="install a newer slice-os"):
        LocalBackend(folder)


@pytest.mark.parametrize("harm", ["cut", "garbage", "gone"])
def test_a_damaged_segment_is_one_clear_error(index, folder, harm):
    with index.writer() as out:
        put(out, "a", SENTENCES)
    (segment,) = (folder / "segments").iterdir()
    data = segment.read_bytes()
    segment.unlink()
    if harm != "gone":
        segment.write_bytes(data[: len(data) // 2] if harm == "cut" else b"garbage" * 99)
    with pytest.raises(IndexDamagedError, match="index again"):
        search(LocalBackend(folder), mode="dense")


def test_a_reader_is_not_fooled_when_everything_is_replaced(index):
    with index.writer() as out:
        put(out, "a", [SENTENCES[0]])
    assert [d for d, _ in search(index, mode="dense")] == ["a"]
    with index.writer() as out:
        out.delete(["a"])
    with index.writer() as out:
        put(out, "b", [SENTENCES[1], SENTENCES[2]])
    found = index.retrieve(Retrieval("", unit(1), range(1, 21), "dense"))
    for candidate in found:
        wanted = naive_degree(candidate.stored.passage.text, unit(1), range(1, 21))
        assert candidate.score == pytest.approx(wanted, abs=0.006)
    assert len(found) == 2


def breaking(function, at, error):
    """Return `function` that raises when it is called for the `at`-th time."""
    calls = 0

    def broken(*args, **kwargs):
        nonlocal calls
        calls += 1
        if calls == at:
            raise error
        return function(*args, **kwargs)

    return broken


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
@pytest.mark.parametrize("name", ["pack", "write_segment", "flatten", "next_segment"])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_whatever_interrupts_the_writer_the_index_stays_whole(index, monkeypatch, name, at, error):
    monkeypatch.setattr(writer, "SEGMENT_WORDS", 40)
    with index.writer() as out:
        put(out, "old", SENTENCES)
    with monkeypatch.context() as patch:
        patch.setattr(writer, name, breaking(getattr(writer, name), at, error))
        try:
            with index.writer() as out:
                for n in range(6):
                    put(out, f"d{n}", SENTENCES[: 1 + n % 4])
                out.delete(["old"])
        except (KeyboardInterrupt, OSError, PlaceError):
            pass
    for mode in ("dense", "lexical", "hybrid"):
        search(index, text="customer", mode=mode)
    held = {c.stored.passage.document for c in index.retrieve(
        Retrieval("", unit(1), range(1, 21), "dense", size=99))}  # fmt: skip
    with index.writer() as out:
        for n in range(6):
            if getattr(index.stored([f"d{n}"]).get(f"d{n}"), "hash", None) is None:
                assert f"d{n}" not in held
                put(out, f"d{n}", SENTENCES[: 1 + n % 4])
    assert {d for d, _ in search(index, mode="dense", size=99)} >= {f"d{n}" for n in range(6)}


def test_a_full_database_leaves_the_last_commit(index, folder):
    with index.writer() as out:
        put(out, "a", SENTENCES)
    with pytest.raises(PlaceError, match="full"), index.writer() as out:  # noqa: PT012
        (pages,) = out._database.execute("PRAGMA page_count").fetchone()
        out._database.execute(f"PRAGMA max_page_count = {pages + 8}")
        for n in range(3000):
            put(out, f"b{n}", [f"{SENTENCES[1]} {n}"])
    assert [d for d, _ in search(index, mode="dense", size=9)] == ["a"] * 4
    with index.writer() as out:
        put(out, "b", SENTENCES)
    assert len(search(index, mode="dense", size=9)) == 8


def test_bm25_of_given_passages_is_that_of_the_ranking(index):
    with index.writer() as out:
        for n in range(30):
            put(out, f"d{n}", [f"{SENTENCES[n % 4]} Number {n}."])
    with index._snapshot() as database:
        ranked = {(s, o): v for _, s, o, v in bm25(database, "plan number 7 crew", 99, [])}
        places = list(ranked)[::3]
        assert bm25_of(database, "plan number 7 crew", places) == {p: ranked[p] for p in places}
        assert bm25_of(database, "zebra", places) == {}

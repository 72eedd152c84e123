"""The embedded index as such: commits, crashes, locks, merging, damage."""

from __future__ import annotations

import mmap  # noqa: F401 - numpy imports it late, where a test may not read it
import os
import sqlite3
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest

import slice_os
from slice_os.errors import IndexDamagedError, IndexLockedError, LocationError
from slice_os.spans import PhraseBatch
from slice_os.storage.contract import IndexMeta, MiningQuery
from slice_os.storage.local import LocalBackend, compaction
from slice_os.storage.local import write as writer
from slice_os.storage.local.database import as_error, connect
from slice_os.text.filters import parse_filters
from slice_os.types import Document, Passage
from support.local import (
    DIMENSION,
    SENTENCES,
    candidates,
    fill,
    naive_degree,
    put,
    put_passage,
    search,
    unit,
)

EVERYTHING = PhraseBatch(unit(1)[None], [range(1, 21)], np.array([-1], np.float32))
NEAR = PhraseBatch(unit(1)[None], [range(1, 4)], np.zeros(1, np.float32))


def test_unchanged_passages_of_a_replaced_document_keep_their_vectors(index, folder):
    fill(index, {"d": SENTENCES[:3]})
    before = {f.name for f in (folder / "segments").iterdir()}
    text = "\n".join([SENTENCES[3], SENTENCES[1]])
    with index.writer() as out:
        assert out.begin(Document("d", text))
        start = len(SENTENCES[3]) + 1
        put_passage(out, "d", 0, 0, SENTENCES[3])
        out.keep(Passage("d", 1, start, len(text), SENTENCES[1]))
        out.finish()
    assert index.status().passages == 2
    hits = candidates(index, text="office crew liability")
    assert {(c.stored.passage.text, c.stored.passage.start) for c in hits} == {
        (SENTENCES[3], 0),
        (SENTENCES[1], start),
    }
    assert before != {f.name for f in (folder / "segments").iterdir()}


def test_what_was_not_finished_is_hidden_and_then_reused(index):
    with index.writer() as out:
        assert out.begin(Document("d", "…"))
        put_passage(out, "d", 0, 0, SENTENCES[0])
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
        assert list(out.unseen()) == [("b", ""), ("c", "")]
        assert out.delete(["b", "c"]) == 2
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
    for n in range(3 * compaction.MANY_SEGMENTS):
        with index.writer() as out:
            put(out, f"d{n}", [f"{SENTENCES[n % 4]} Number {n}."])
    before = dict(search(index, text="number", size=100, mode="dense"))
    assert len(before) == 3 * compaction.MANY_SEGMENTS
    assert index.status().details["segments"] <= compaction.MANY_SEGMENTS
    with index.writer() as out:
        assert out.delete([f"d{n}" for n in range(20)]) == 20
    state = index.status()
    assert state.words == state.details["stored_words"]
    after = dict(search(index, text="number", size=100, mode="dense"))
    assert after == {document: before[document] for document in after}
    assert len(after) == 4
    assert len(list((folder / "segments").iterdir())) == state.details["segments"]


def test_a_reader_survives_the_merging_of_what_it_has_open(index, folder, monkeypatch):
    with index.writer() as out:
        for n in range(10):
            put(out, f"d{n}", [f"{SENTENCES[0]} {n}"])
    other = LocalBackend(folder)
    assert len(search(other, mode="dense")) == 10
    scanning = other.scan(MiningQuery(EVERYTHING))
    next(scanning)
    with index.writer() as out:
        out.delete([f"d{n}" for n in range(9)])
    assert len(list(scanning)) == 9  # the state in which the scan began
    assert [d for d, _ in search(other, mode="dense")] == ["d9"]
    other.close()


def test_places_that_are_no_index(tmp_path, index, folder):
    assert LocalBackend.open(str(tmp_path / "nothing")) is None
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("mine")
    with pytest.raises(LocationError, match="is not a slice-os index"):
        LocalBackend.open(str(tmp_path / "notes"))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "index.sqlite").write_bytes(b"SQLite format 3\0" + b"x" * 5000)
    with pytest.raises(IndexDamagedError, match="damaged"):
        LocalBackend(tmp_path / "broken")
    database = sqlite3.connect(folder / "index.sqlite")
    database.execute("UPDATE meta SET value = json_set(value, '$.format', 99) WHERE name='index'")
    database.commit()
    database.close()
    with pytest.raises(LocationError, match="reads 3: install a newer one"):
        LocalBackend(folder)


def test_a_reader_is_not_fooled_when_everything_is_replaced(index):
    fill(index, {"a": [SENTENCES[0]]})
    assert [d for d, _ in search(index, mode="dense")] == ["a"]
    with index.writer() as out:
        out.delete(["a"])
    fill(index, {"b": [SENTENCES[1], SENTENCES[2]]})
    found = candidates(index, mode="dense")
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
@pytest.mark.parametrize(
    "name", ["record_segment", "write_segment", "flat_metadata", "next_segment"]
)
@pytest.mark.parametrize("at", [1, 2, 3])
def test_whatever_interrupts_the_writer_the_index_stays_whole(index, monkeypatch, name, at, error):
    monkeypatch.setattr(writer, "SEGMENT_WORDS", 40)
    fill(index, {"old": SENTENCES})
    with monkeypatch.context() as patch:
        patch.setattr(writer, name, breaking(getattr(writer, name), at, error))
        try:
            with index.writer() as out:
                for n in range(6):
                    put(out, f"d{n}", SENTENCES[: 1 + n % 4])
                out.delete(["old"])
        except (KeyboardInterrupt, OSError, LocationError):
            pass
    for mode in ("dense", "lexical", "hybrid"):
        search(index, text="customer", mode=mode)
    held = {c.stored.passage.document for c in candidates(index, mode="dense", size=99)}
    with index.writer() as out:
        for n in range(6):
            if getattr(index.stored([f"d{n}"]).get(f"d{n}"), "hash", None) is None:
                assert f"d{n}" not in held
                put(out, f"d{n}", SENTENCES[: 1 + n % 4])
    assert {d for d, _ in search(index, mode="dense", size=99)} >= {f"d{n}" for n in range(6)}


@contextmanager
def no_right_to_write(folder):
    """Take the right to write into `folder` away: root has it everywhere, so as somebody else."""
    mode, root = folder.stat().st_mode, os.geteuid() == 0
    folder.chmod(0o555)
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(mode)


def test_an_index_that_may_only_be_read(tmp_path):
    with tempfile.TemporaryDirectory() as place:  # pytest's own folders are closed to others
        Path(place).chmod(0o755)
        folder = Path(place) / "a ?#%.slice"
        made = LocalBackend.create(str(folder), IndexMeta("random", "weights_hash", DIMENSION))
        fill(made, {"a": SENTENCES[:2]})
        made.close()
        with no_right_to_write(folder):
            index = LocalBackend.open(str(folder))
            assert {d for d, _ in search(index, mode="dense", size=9)} == {"a"}
            assert list(index.scan(MiningQuery(NEAR)))
            with pytest.raises(LocationError, match="cannot be written"):
                index.writer()
        fill(index, {"b": SENTENCES[:3]})
        with no_right_to_write(folder):
            assert {d for d, _ in search(index, mode="dense", size=9)} == {"a", "b"}
            again = LocalBackend.open(str(folder))
            scan = again.scan(MiningQuery(NEAR))
            next(scan)
        fill(index, {"c": SENTENCES[:1]})
        with pytest.raises(LocationError, match="was written to while it was read"):
            list(scan)
        index.close()
        again.close()
        (folder / "index.sqlite-wal").write_bytes(b"of a run that was killed")
        with no_right_to_write(folder), pytest.raises(LocationError, match="open the index once"):
            LocalBackend.open(str(folder))
    error = as_error(folder, sqlite3.OperationalError("attempt to write a readonly database"))
    assert "cannot be written: get the right to" in str(error)


class Interrupting:
    """A database that raises after the statement in which an interrupt comes was executed."""

    def __init__(self, database, statement, at):
        self._database, self._statement, self._at = database, statement, at

    def execute(self, statement, *values):
        done = self._database.execute(statement, *values)
        if statement.startswith(self._statement):
            self._at -= 1
            if not self._at:
                raise KeyboardInterrupt
        return done

    def __getattr__(self, name):
        return getattr(self._database, name)


@pytest.mark.parametrize("statement", ["SAVEPOINT", "RELEASE", "INSERT", "COMMIT", "BEGIN"])
@pytest.mark.parametrize("at", range(1, 8))
def test_an_interrupt_after_a_statement_leaves_the_index_whole(index, monkeypatch, statement, at):
    monkeypatch.setattr(writer, "SEGMENT_WORDS", 40)
    names, written = [], writer.write_segment
    monkeypatch.setattr(
        writer, "write_segment", lambda path, some: names.append(path) or written(path, some)
    )
    try:
        with index.writer() as out:
            out._database = Interrupting(out._database, statement, at)
            for n in range(6):
                put(out, f"d{n}", SENTENCES[: 1 + n % 4])
    except KeyboardInterrupt:
        pass
    with index.writer() as out:
        beyond = "SELECT count(*) FROM passages JOIN segments ON segments.number = segment"
        (lost,) = out._database.execute(f"{beyond} WHERE ordinal >= segments.passages").fetchone()
        assert lost == 0
        for n in range(6):
            if getattr(index.stored([f"d{n}"]).get(f"d{n}"), "hash", None) is None:
                put(out, f"d{n}", SENTENCES[: 1 + n % 4])
    if statement in ("COMMIT", "BEGIN"):
        assert len(names) == len(set(names))  # what is committed is not written again
    for mode in ("dense", "lexical", "hybrid"):
        assert search(index, text="customer", mode=mode)
    assert {d for d, _ in search(index, mode="dense", size=99)} >= {f"d{n}" for n in range(6)}


def test_a_full_database_leaves_the_last_commit(index, folder):
    fill(index, {"a": SENTENCES})
    with pytest.raises(LocationError, match="full"), index.writer() as out:  # noqa: PT012
        (pages,) = out._database.execute("PRAGMA page_count").fetchone()
        out._database.execute(f"PRAGMA max_page_count = {pages + 8}")
        for n in range(3000):
            put(out, f"b{n}", [f"{SENTENCES[1]} {n}"])
    assert [d for d, _ in search(index, mode="dense", size=9)] == ["a"] * 4
    fill(index, {"b": SENTENCES})
    assert len(search(index, mode="dense", size=9)) == 8


def test_what_was_broken_off_is_pruned_with_its_file(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "SEGMENT_WORDS", 40)
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "kept.txt").write_text("Please cancel my plan.")
    (corpus / "large.txt").write_text("The bill is far too high this month. " * 200)
    location = str(tmp_path / "pruned.slice")

    def stop(report):
        if report.passages > 5:
            raise KeyboardInterrupt

    with slice_os.open(location) as opened:
        with pytest.raises(KeyboardInterrupt):
            opened.add(slice_os.read(corpus), on_progress=stop)
        assert opened.status().details["incomplete_documents"] == 1
        (corpus / "large.txt").unlink()
        opened.add(slice_os.read(corpus), prune="all")
        assert opened.status().details["incomplete_documents"] == 0
        assert len(opened) == 1


def test_keys_with_gaps_of_any_size_cost_nothing(index):
    """An index whose documents change for years has few passages of large keys."""
    with index.writer() as out:
        put(out, "a", SENTENCES, year=2020)
        before = search(index, text="customer", mode="lexical")
        out._database.execute(
            "INSERT INTO passages SELECT 1000000000000, document, 99, start, end, title, text,"
            " hash, words, segment, 99, 0, length FROM passages LIMIT 1"
        )
        put(out, "b", SENTENCES, year=2020)
        out._database.execute("DELETE FROM passages WHERE key = 1000000000000")
    found = search(index, text="customer", mode="lexical", size=99)
    assert {name for name, _ in found} == {"a", "b"}
    assert len(found) > len(before)
    for mode in ("lexical", "hybrid"):  # while a writer has passages that are not complete
        with index.writer() as out:
            assert out.begin(slice_os.Document("a", "other", metadata={"year": 2020}))
            put_passage(out, "a", 0, 0, "The customer again.")
            out.commit()
            asked = {"text": "customer", "mode": mode, "size": 99}
            filters = parse_filters(["year=2020"])
            assert {name for name, _ in search(index, **asked, filters=filters)} == {"a", "b"}


def test_reading_makes_no_database(tmp_path, index, folder):
    with pytest.raises(LocationError, match="is there no longer"):
        LocalBackend(tmp_path)
    assert list(tmp_path.glob("index.sqlite*")) == []
    (folder / "index.sqlite").unlink()
    with pytest.raises(LocationError):
        connect(folder)
    assert list(folder.glob("index.sqlite")) == []


def test_an_index_that_says_more_of_itself_is_not_called_damaged(index, folder):
    with closing(connect(folder)) as database:
        database.execute(
            "UPDATE meta SET value = json_set(value, '$.colour', 1) WHERE name = 'index'"
        )
    with pytest.raises(LocationError, match=r"colour.*: install a newer slice-os") as caught:
        LocalBackend(folder)
    assert "delete" not in str(caught.value)
    assert not isinstance(caught.value, IndexDamagedError)

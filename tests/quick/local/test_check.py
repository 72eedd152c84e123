"""A flipped byte in an embedded index is found or changes nothing; what is damaged is named."""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing

import pytest

import slice_os
from slice_os.errors import IndexDamagedError, LocationError, SliceOSError
from slice_os.storage.local import LocalBackend
from slice_os.text.filters import Filter
from slice_os.types import Document
from support.local import SENTENCES, fill, put, put_passage, search
from support.verbs import run

FLIPS = 400


@pytest.fixture
def filled(index, folder):
    """An index after some runs: documents replaced and deleted, free pages, a merge."""
    for version in range(3):
        with index.writer() as out:
            for n in range(12):
                texts = [f"{s} Number {n * (version if n % 3 else 1)}." for s in SENTENCES[n % 3 :]]
                put(out, f"d{n}", texts, year=2000 + n, kind={"of": "test"})
                out.commit()
    with index.writer() as out:
        out.delete(["d3", "d4"])
        out.remember({"": "/somewhere"})
        put(out, "last", SENTENCES)
    index.close()
    return folder


def alter(folder, statement):
    """Change the database as a stray program would."""
    with closing(sqlite3.connect(folder / "index.sqlite", isolation_level=None)) as database:
        database.execute(statement)
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def verdict(folder):
    """Return what verify says is wrong, or the error that it ends with."""
    try:
        found = slice_os.check(folder)
    except SliceOSError as exc:
        return str(exc)
    return " ".join(
        f"{one.what}: {one.advice}" for one in found.findings if one.severity == "error"
    )


def content(folder):
    """Return all that can be read of an index."""
    with closing(LocalBackend(folder)) as index:
        passages = [(one.passage, one.metadata, one.packed.to_bytes()) for one in index.passages()]
        found = [search(index, text="customer ship", mode=mode) for mode in ("lexical", "dense")]
        filtered = [index.matching([Filter("year", ">", str(year))]) for year in (2003, 2009)]
        return passages, found, filtered, list(index.sources()), index.roots(), index.meta


def test_one_flipped_byte_is_found_or_changes_nothing_that_is_read(filled):
    alter(filled, "VACUUM")  # half of the file is free
    found, whole = slice_os.check(filled), content(filled)
    assert found.healthy
    assert [one.severity for one in found.findings] == ["ok"]
    files = [file for file in filled.rglob("*") if file.is_file() and file.stat().st_size]
    assert len(files) > 2
    rng, said, in_database = random.Random(11), set(), 0
    for turn in range(FLIPS):
        # Half of them in the database: its header, all its pages, those that are free.
        file = filled / "index.sqlite" if turn % 2 else rng.choice(files)
        data = file.read_bytes()
        at = rng.randrange(100) if turn % 20 == 1 else rng.randrange(len(data))
        changed = bytearray(data)
        changed[at] ^= rng.randrange(1, 256)
        file.write_bytes(changed)
        complaint = verdict(filled)
        in_database += file.name == "index.sqlite" and bool(complaint)
        if not complaint:  # room that nothing takes yet: most of a small database
            assert file.name == "index.sqlite"
            assert content(filled) == whole, f"byte {at} of {file.name}"
        assert "\n" not in complaint
        said.add(complaint[:20])
        file.write_bytes(data)
    assert len(said) > 3
    assert in_database > FLIPS / 10
    assert slice_os.check(filled).healthy


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("UPDATE documents SET title = 'x' WHERE id = 'd1'", "(d1)"),
        ("UPDATE documents SET metadata = '{\"year\": 1}' WHERE id = 'd1'", "(d1)"),
        ("UPDATE documents SET hash = 'x' WHERE id = 'd1'", "(d1)"),
        ("UPDATE documents SET source = 'x' WHERE id = 'd1'", "(d1)"),
        ("UPDATE documents SET id = 'x' WHERE id = 'd1'", "(x)"),
        ('UPDATE passages SET start = start + 1, "end" = "end" + 1 WHERE key = 1', "documents: 1"),
        ("UPDATE passages SET number = 7 WHERE key = 1", "documents: 1"),
        ("UPDATE passages SET words = 2 WHERE key = 1", "documents: 1"),
        ("UPDATE passages SET text = CAST(x'ff' || text AS TEXT) WHERE key = 1", "documents: 1"),
        ("UPDATE passages SET document = 999 WHERE key = 1", "1 passages of no document"),
        ("UPDATE passages SET segment = 999 WHERE key = 1", "1 passages of no segment"),
        ("UPDATE passages SET ordinal = 999 WHERE key = 1", "it is another one"),
        ("DELETE FROM hidden", "segments with other passages"),
        ("INSERT INTO hidden SELECT segment, ordinal, words FROM passages WHERE key = 1", "hidden"),
        ("UPDATE meta SET value = replace(value, 'somewhere', 'nowhere')", "its roots has changed"),
        ("UPDATE meta SET value = 0 WHERE name = 'run'", "documents of a run yet to come"),
        ("UPDATE sqlite_sequence SET seq = 1", "a number yet to come"),
        ("UPDATE postings_data SET block = zeroblob(9) WHERE id > 10", "postings of BM25"),
        ("DELETE FROM postings_docsize WHERE id = 1", "postings of BM25"),
        ("UPDATE tokens SET bits = bits | 1 WHERE token LIKE 'year%'", "or of filters"),
        ("DELETE FROM tokens WHERE token LIKE 'year%'", "or of filters"),
    ],
)  # fmt: skip
def test_what_is_damaged_is_named(filled, statement, named):
    with closing(sqlite3.connect(filled / "index.sqlite")) as database:
        (key,) = database.execute("SELECT min(key) FROM passages").fetchone()
        (postings,) = database.execute("SELECT min(id) FROM postings_docsize").fetchone()
    statement = statement.replace("key = 1", f"key = {key}").replace("id = 1", f"id = {postings}")
    alter(filled, statement)
    assert named in verdict(filled)
    said = run("check", "--index", filled, ok=3).output
    assert named in said
    assert "ERROR" in said
    assert not slice_os.doctor(filled, deep=True).healthy


def test_two_passages_that_changed_places_are_found(filled):
    with closing(sqlite3.connect(filled / "index.sqlite")) as database:
        rows = database.execute(
            "SELECT key, segment, ordinal FROM passages ORDER BY key"
        ).fetchall()
    (first, *its_place), (second, *other_place) = rows[:2]
    for key, (segment, ordinal) in ((second, (-1, 0)), (first, other_place), (second, its_place)):
        place = f"segment = {segment}, ordinal = {ordinal}"
        alter(filled, f"UPDATE passages SET {place} WHERE key = {key}")
    assert "Damaged segments" in verdict(filled)


def test_postings_are_made_anew(filled, index):
    before = slice_os.check(filled).facts
    alter(filled, "INSERT INTO postings (postings) VALUES ('delete-all')")
    assert "doctor --repair" in verdict(filled)
    assert slice_os.doctor(filled, repair=True).findings
    found = slice_os.check(filled)
    assert (found.healthy, found.facts) == (True, before)
    assert len(found.findings) == 1


def test_postings_of_passages_that_are_not_there_are_said_by_a_search(filled):
    row = "INSERT INTO postings (rowid, title, text) VALUES ({}, '', 'a zebra')"
    for key in (10**6, 0):
        alter(filled, row.format(key))
        with (
            closing(LocalBackend(filled)) as index,
            pytest.raises(IndexDamagedError, match="doctor --repair' makes them anew"),
        ):
            search(index, text="zebra", mode="lexical")
    assert "postings of BM25" in verdict(filled)


def test_an_index_in_use_is_verified(filled):
    with closing(LocalBackend(filled)) as index, index.writer() as out:
        put(out, "more", SENTENCES)
        assert out.begin(Document("half", SENTENCES[0]))
        put_passage(out, "half", 0, 0, SENTENCES[0])
        out.commit()
        found = slice_os.check(filled)
        assert (found.healthy, len(found.findings)) == (True, 1)
    found = slice_os.check(filled)
    assert (found.healthy, len(found.findings)) == (True, 1)
    alter(filled, "UPDATE passages SET text = 'x' WHERE pending")
    assert "(half)" in verdict(filled)


def test_the_log_is_emptied_by_the_first_run_without_readers(filled):
    log = filled / "index.sqlite-wal"
    with closing(LocalBackend(filled)) as index:
        reading = index.passages()
        next(reading)
        fill(index, {"more": SENTENCES})
        assert log.stat().st_size
        assert slice_os.check(filled).healthy
        reading.close()  # type: ignore[attr-defined]
        with index.writer():
            pass
        assert not log.stat().st_size


def test_the_verb(filled, tmp_path):
    said = json.loads(run("check", "--index", filled, "--json").output)
    assert said["healthy"] is True
    assert said["facts"]["documents"] == 11
    assert "All files of the index are what was written" in run("check", "--index", filled).output
    assert "There is no index" in run("check", "--index", tmp_path / "none", ok=1).output
    with pytest.raises(LocationError, match="There is no index"):
        slice_os.check(tmp_path / "none")
    told = []
    slice_os.check(filled, on_progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE meta RENAME TO kept; CREATE VIEW meta AS WITH RECURSIVE n(name, value) AS"
        " (SELECT 'index', 1 UNION ALL SELECT name, value + 1 FROM n) SELECT * FROM n",
        "CREATE TABLE more (a)",
        "CREATE TRIGGER added AFTER INSERT ON documents BEGIN DELETE FROM passages; END",
        "DROP INDEX passages_length",
    ],
)
def test_a_foreign_schema_is_refused(filled, statement):
    with closing(sqlite3.connect(filled / "index.sqlite")) as database:
        database.executescript(statement)
    with pytest.raises(IndexDamagedError, match="schema is not what slice-os makes"):
        LocalBackend(filled)
    assert not slice_os.check(filled).healthy

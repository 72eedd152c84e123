"""Copies of an index that is in use are whole, one state, and find their way back."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

import slice_os
from slice_os.errors import IndexDamagedError, IndexLockedError, LocationError
from slice_os.storage.contract import IndexMeta
from slice_os.storage.local import LocalBackend
from slice_os.storage.local import write as writing
from slice_os.storage.local.generations import live_folder
from support.local import DIMENSION, SENTENCES, put, search
from support.verbs import run

COUNT = 12
KILLS = int(os.environ.get("SLICE_OS_KILLS", "6"))
SLICE_OS = Path(sys.executable).with_name("slice-os")


def write(folder, version, count=COUNT, times=1):
    """Have all documents say in one commit of which version they are."""
    with closing(LocalBackend(folder)) as index, index.writer() as out:
        for n in range(count):
            put(out, f"d{n}", [f"{s} Version {version}." for s in SENTENCES * times], v=version)


def versions(folder):
    """Return the version of each document that an index holds, and check that it is one."""
    with closing(LocalBackend(folder)) as index:
        said = {(s.passage.document, s.metadata["v"], s.passage.text[-2]) for s in index.passages()}
        assert all(str(version)[-1] == text for _, version, text in said)
        assert {n for n, *_ in search(index, mode="lexical", text="customer", size=99)}
        assert {n for n, *_ in search(index, mode="dense", size=99)}
    assert len(said) == len({name for name, *_ in said})
    return {version for _, version, _ in said}


def content(folder):
    with closing(LocalBackend(folder)) as index:
        return [(s.passage, s.metadata, s.packed.to_bytes()) for s in index.passages()]


@pytest.fixture
def filled(folder, index):
    write(folder, 1)
    return folder


def test_a_backup_is_an_index_of_the_same(filled, tmp_path):
    told = []
    state = slice_os.backup(filled, tmp_path / "b.slice", on_progress=told.append)
    assert (state.location, state.documents) == (str(tmp_path / "b.slice"), COUNT)
    assert told[-1] == 1
    assert content(tmp_path / "b.slice") == content(filled)
    found = slice_os.check(tmp_path / "b.slice")
    assert (found.healthy, len(found.findings)) == (True, 1)
    assert not (tmp_path / "b.slice.part").exists()
    write(tmp_path / "b.slice", 2)  # it is an index like another
    assert (versions(filled), versions(tmp_path / "b.slice")) == ({1}, {2})
    with pytest.raises(LocationError, match=r"b\.slice exists: name a new folder"):
        slice_os.backup(filled, tmp_path / "b.slice")
    with pytest.raises(LocationError, match="There is no index at"):
        slice_os.backup(tmp_path / "none", tmp_path / "c.slice")


def test_backups_while_somebody_writes_and_merges(filled, tmp_path):
    over, failed = threading.Event(), []

    def work():
        try:
            for version in range(2, 10_000):
                if over.is_set():
                    return
                write(filled, version)
        except BaseException as exc:
            failed.append(exc)
            raise

    thread = threading.Thread(target=work)
    thread.start()
    seen = []
    try:
        for turn in range(12):
            slice_os.backup(filled, tmp_path / f"{turn}.slice", link=turn % 2 == 1)
            (version,) = versions(tmp_path / f"{turn}.slice")
            seen.append(version)
    finally:
        over.set()
        thread.join()
    assert not failed
    assert seen == sorted(seen)
    assert len(set(seen)) > 3
    assert all(slice_os.check(tmp_path / f"{turn}.slice").healthy for turn in range(12))


def test_links_take_no_room(filled, tmp_path):
    slice_os.backup(filled, tmp_path / "b.slice", link=True)
    for file in (filled / "segments").iterdir():
        assert (tmp_path / "b.slice" / "segments" / file.name).samefile(file)
    write(filled, 2)
    write(filled, 3)
    assert versions(tmp_path / "b.slice") == {1}


def kill(reached, *args):
    """Run a verb, and kill it when something is reached; return whether that was before its end."""
    process = subprocess.Popen(
        [SLICE_OS, *args], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while process.poll() is None:
        if reached():
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.001)
    return process.wait() == -signal.SIGKILL


def segments(folder):
    return list((live_folder(folder) / "segments").glob("*.slice"))


@pytest.fixture
def large(filled):
    """Some megabytes in several segments, so that copying takes a moment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "SEGMENT_WORDS", 1500)
        write(filled, 1, 24, 40)
    assert len(list((filled / "segments").iterdir())) > 20
    return filled


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_killed_backup_looks_like_none_and_the_next_goes_on(large, tmp_path):
    whole, many = content(large), len(segments(large))
    rng, early = random.Random(1), 0
    for turn in range(KILLS):
        target, part = tmp_path / f"{turn}.slice", tmp_path / f"{turn}.slice.part"
        after, delay = rng.randrange(many + 1), rng.choice([0, 0, 0.1, 0.3])

        def reached(part=part, after=after, delay=delay):
            there = part.is_dir() and len(segments(part)) >= after
            time.sleep(delay if there else 0)
            return there

        early += kill(reached, "backup", target, "--index", large) and not target.exists()
        if not target.exists():
            run("backup", target, "--index", large)
        assert content(target) == whole
        assert not part.exists()
        assert slice_os.check(target).healthy
    assert early > 1


@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
def test_a_killed_restore_leaves_the_index_that_was_there_or_the_backup(large, tmp_path):
    slice_os.backup(large, tmp_path / "b.slice")
    new = content(large)
    live = tmp_path / "live.slice"
    with closing(LocalBackend.create(str(live), IndexMeta("random", "weights_hash", DIMENSION))):
        write(live, 7)
    old, rng, early = content(live), random.Random(2), 0
    for turn in range(KILLS):
        write(live, 7)
        with closing(LocalBackend(live)) as index, index.writer() as out:
            out.delete([f"d{n}" for n in range(COUNT, 24)])
        assert content(live) == old
        after, delay = rng.randrange(len(segments(large))), rng.choice([0, 0.02, 0.1])

        def reached(turn=turn, after=after, delay=delay):
            # Half of them while segments are copied, half about when the copy becomes live.
            parts = [*(live / "generations").glob("*.part/segments/*.slice")]
            if turn % 2:
                return len(parts) > after
            copied = len(parts) >= len(segments(large))
            time.sleep(delay if copied else 0)
            return copied

        early += kill(reached, "restore", tmp_path / "b.slice", "--index", live, "--overwrite")
        assert content(live) in (old, new)
        assert slice_os.check(live).healthy
    assert early > 1
    slice_os.restore(tmp_path / "b.slice", live, overwrite=True)
    assert content(live) == new
    found = slice_os.check(live)
    assert (found.healthy, len(found.findings)) == (True, 1)
    assert len(segments(live)) == len(segments(large))
    assert not [*live.rglob("*.new"), *live.rglob("*.part")]


def test_restore_refuses_to_overwrite_unless_told(filled, tmp_path):
    slice_os.backup(filled, tmp_path / "b.slice")
    write(filled, 2)
    with pytest.raises(LocationError, match="give --overwrite"):
        slice_os.restore(tmp_path / "b.slice", filled)
    assert versions(filled) == {2}
    done = run("restore", tmp_path / "b.slice", "--index", tmp_path / "new.slice")
    assert "Restored: " in done.output
    assert versions(tmp_path / "new.slice") == {1}
    with closing(LocalBackend(filled)) as reader, reader.writer(), pytest.raises(IndexLockedError):
        slice_os.restore(tmp_path / "b.slice", filled, overwrite=True)
    run("restore", tmp_path / "b.slice", "--index", filled, "--overwrite")
    assert versions(filled) == {1}
    with pytest.raises(LocationError, match="is the backup itself"):
        slice_os.restore(filled, filled, overwrite=True)
    other = tmp_path / "other.slice"
    LocalBackend.create(str(other), IndexMeta("another", "weights_hash", DIMENSION)).close()
    with pytest.raises(LocationError, match="another encoder or other settings"):
        slice_os.restore(tmp_path / "b.slice", other, overwrite=True)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("mine")
    with pytest.raises(LocationError, match="notes exists: name a new folder"):
        slice_os.restore(tmp_path / "b.slice", tmp_path / "notes", overwrite=True)


def test_searches_go_on_while_an_index_is_restored(filled, tmp_path):
    slice_os.backup(filled, tmp_path / "b.slice")
    write(filled, 2)
    with closing(LocalBackend(filled)) as reader:
        passages = reader.passages()
        begun = [next(passages)]
        slice_os.restore(tmp_path / "b.slice", filled, overwrite=True)
        assert {one.metadata["v"] for one in [*begun, *passages]} == {2}
        assert not reader.is_live()
    assert versions(filled) == {1}
    assert [one.state for one in slice_os.generations(filled)] == ["live"]


def test_what_is_damaged_is_not_copied_and_copies_replace_it(filled, tmp_path):
    whole = content(filled)
    slice_os.backup(filled, tmp_path / "b.slice")
    database = filled / "index.sqlite"
    data, rng = database.read_bytes(), random.Random(5)
    (segment,) = (filled / "segments").iterdir()
    text = database.read_bytes().index(b"ship sank")
    for file, at in ((segment, segment.stat().st_size // 2), (database, text)):
        good = file.read_bytes()
        changed = bytearray(good)
        changed[at] ^= 4
        file.write_bytes(changed)
        with pytest.raises(IndexDamagedError, match="is damaged"):
            slice_os.backup(filled, tmp_path / "c.slice")
        assert not (tmp_path / "c.slice").exists()
        with pytest.raises(IndexDamagedError):  # as a backup of which something is to be made
            slice_os.restore(filled, tmp_path / "b.slice", overwrite=True)
        file.write_bytes(good)

    def harmed(data):
        yield rng.randbytes(len(data))
        yield data[:100] + rng.randbytes(3000) + data[3100:]
        yield data[: len(data) // 2]
        yield data[: 4096 * 5] + rng.randbytes(4096) + data[4096 * 6 :]

    for some in harmed(data):
        (live_folder(filled) / "index.sqlite").write_bytes(some)
        segments(filled)[0].unlink()
        slice_os.restore(tmp_path / "b.slice", filled, overwrite=True)
        assert content(filled) == whole
        assert slice_os.check(filled).healthy
    assert content(tmp_path / "b.slice") == whole


def test_ctrl_c_leaves_what_the_next_run_goes_on_from(filled, tmp_path):
    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        slice_os.backup(filled, tmp_path / "b.slice", on_progress=interrupt)
    assert (tmp_path / "b.slice.part").exists()
    assert not (tmp_path / "b.slice").exists()
    write(filled, 2)
    said = json.loads(run("backup", tmp_path / "b.slice", "--index", filled, "--json").output)
    assert said["documents"] == COUNT
    assert versions(tmp_path / "b.slice") == {2}


@pytest.mark.parametrize("call", [slice_os.backup, slice_os.restore])
def test_a_cluster_backs_itself_up(call, tmp_path):
    with pytest.raises(LocationError, match=r"snapshot API, as docs/operations\.md shows"):
        call("https://host:9200/calls", tmp_path / "x")


def test_a_new_index_is_private(index, folder, tmp_path):
    assert folder.stat().st_mode & 0o777 == 0o700
    slice_os.backup(folder, tmp_path / "copy.slice")
    assert (tmp_path / "copy.slice").stat().st_mode & 0o777 == 0o700
    (tmp_path / "mine").mkdir(mode=0o755)
    slice_os.index([], tmp_path / "mine")
    assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o755

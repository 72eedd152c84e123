"""The next generation of an index: built beside the live one, checked, made live, and back."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import slice_os
from slice_os.errors import (
    EncoderMismatchError,
    IndexDamagedError,
    IndexLockedError,
    LocationError,
    WritesLostError,
)
from slice_os.operate import copying, lease
from slice_os.operate import reindex as reindexing
from slice_os.operate import sample_checks as checks
from slice_os.spans import PackedPassage
from slice_os.storage import IndexMeta
from slice_os.storage.local.write import LocalWriter
from slice_os.text import split

KILLS = int(os.environ.get("SLICE_OS_KILLS", "2"))
LINES = [
    "I want to cancel my subscription because it costs too much, said the customer {}.",
    "The parcel {} never came, and nobody answers the telephone.",
    "Either party may end this agreement with {} days of notice.",
    "Alice was beginning to get very tired of sitting by her sister for {} hours.",
]


def documents(count=30, version=0):
    return [
        slice_os.Document(
            f"d{n}",
            "\n\n".join(line.format(n) for line in LINES[: 1 + n % 4]),
            f"Title {n}",
            {"year": 2000 + n, "kind": {"of": "test"}, "version": version},
        )
        for n in range(count)
    ]


@pytest.fixture
def location(new_location):
    location = new_location()
    fewer = {"tolerance": 0.6} if "://" in location else None  # fewer spans are soon written
    slice_os.index(documents(), location, cluster=fewer, passage_words=20)
    return location


def states(location):
    return [(one.number, one.state) for one in slice_os.generations(location)]


def found(index):
    return [(h.document, h.passage, h.degree) for h in index.search("end my subscription", size=20)]


def packed(index):
    return {
        (one.passage.document, one.passage.number): one.packed.to_bytes()
        for one in index.passages()
    }


def test_words_are_handed_over_without_an_encoder_and_one_goes_back(location, monkeypatch):
    with slice_os.open(location) as index:
        before, bytes_before = found(index), packed(index)
        with monkeypatch.context() as patch:
            patch.setattr(reindexing, "open_encoder", lambda *_: pytest.fail("an encoder"))
            plan = slice_os.reindex(location, dry_run=True)
            assert (plan.source, plan.generation, plan.documents) == ("words", 2, 30)
            assert states(location) == [(1, "live")]
            report = slice_os.reindex(location, store=["year"])
        assert (report.source, report.copied, report.overlap, report.live) == ("words", 30, 1, True)
        assert states(location) == [(1, "retired"), (2, "live")]
        # An index that is open follows.
        assert found(index) == before
        assert packed(index) == bytes_before
        assert index.search("subscription")[0].metadata.keys() == {"year"}
        assert len(index.list(filters=["kind.of=test", "year>=2020"])) == 10
        assert index.add(documents()).unchanged == 30
        assert slice_os.rollback(location).number == 1
        assert "kind.of" in index.search("subscription")[0].metadata
        assert states(location) == [(1, "live"), (2, "rolled back")]
        with pytest.raises(LocationError, match="no generation to go back to"):
            slice_os.rollback(location)
        assert [one.number for one in slice_os.prune_generations(location, 0)] == [2]
        assert states(location) == [(1, "live")]


def test_going_back_keeps_what_was_written_since_or_says_what_is_lost(location):
    slice_os.reindex(location)
    with slice_os.open(location) as index:
        index.add([("late", "Written after the swap."), ("d0", "Changed after the swap.")])
        index.delete(["d1"])
    assert slice_os.rollback(location).number == 1
    with slice_os.open(location) as index:
        assert index.get("late").text == "Written after the swap."
        assert index.get("d0").text == "Changed after the swap."
        assert index.get("d1") is None
        corpus = [*documents(), slice_os.Document("new", "Only in the corpus.")]
    slice_os.reindex(location, corpus=corpus)
    with pytest.raises(WritesLostError, match="would be lost") as caught:
        slice_os.rollback(location)
    assert "new" in caught.value.documents
    assert "--keep-writes" in caught.value.hint
    slice_os.rollback(location, keep_writes=False)
    with slice_os.open(location) as index:
        assert index.get("new") is None
        assert index.get("late") is not None


def test_text_is_encoded_where_passages_change(location):
    report = slice_os.reindex(location, passage_words=40, least_overlap=0.5)
    assert (report.source, report.copied, report.documents) == ("text", 30, 30)
    with slice_os.open(location) as index:
        assert index._backend.meta.passage_words == 40
        assert index.add(documents()).unchanged == 30
        assert index.get("d3").metadata["kind.of"] == "test"
        assert index.get("d3").title == "Title 3"
    with pytest.raises(LocationError, match="Stored words do not fit"):
        slice_os.reindex(location, passage_words=20, source="words")


def test_what_is_written_meanwhile_is_in_the_next_generation(location, monkeypatch):
    with slice_os.open(location) as index:

        def write(done, of):
            if done and not index.holds(["meanwhile"]):
                index.add([slice_os.Document("meanwhile", "Written while it was copied.")])
                index.add([slice_os.Document("d0", "Changed while it was copied.")])
                index.delete(["d1"])

        report = slice_os.reindex(location, on_progress=write)
        assert report.copied == 33  # two of them again or anew, one deleted
        assert index.get("meanwhile").text == "Written while it was copied."
        assert index.get("d0").text == "Changed while it was copied."
        assert index.get("d1") is None
        assert len(index) == 30


def test_documents_of_a_corpus_are_read_anew(location, new_location, tmp_path):
    """What is written later is newer, the others stay; a new document of the corpus is added."""
    (folder := tmp_path / "texts").mkdir()
    for number in range(6):
        (folder / f"{number}.txt").write_text(f"Text {number} of a folder of texts.")
    location = new_location()
    slice_os.index(slice_os.read(folder), location)
    slice_os.index([slice_os.Document("other", "This is not in the folder.")], location)
    (folder / "1.txt").write_text("Text 1 was changed since.")
    (folder / "6.txt").write_text("Text 6 is new.")
    with slice_os.open(location) as index:

        def write(done, of):
            if done and index.get("texts/2.txt").text.startswith("Text 2 of"):
                index.add([slice_os.Document("texts/2.txt", "Written while it was built.")])
                index.delete(["texts/3.txt"])

        report = slice_os.reindex(
            location, corpus=slice_os.read(folder), least_overlap=0, on_progress=write
        )
        assert (report.source, report.live) == ("corpus", True)
        assert {one.document: index.get(one.document).text for one in index.list()} == {
            "other": "This is not in the folder.",
            "texts/0.txt": "Text 0 of a folder of texts.",
            "texts/1.txt": "Text 1 was changed since.",
            "texts/2.txt": "Written while it was built.",
            "texts/4.txt": "Text 4 of a folder of texts.",
            "texts/5.txt": "Text 5 of a folder of texts.",
            "texts/6.txt": "Text 6 is new.",
        }
        assert index.status().details["roots"] == {"": str(tmp_path)}
    slice_os.reindex(location, corpus=slice_os.read(folder), swap=False)
    with pytest.raises(LocationError, match="was made from a corpus, which is to be read again"):
        slice_os.swap(location)
    for wrong in ({"source": "corpus"}, {"corpus": [], "source": "words"}):
        with pytest.raises(LocationError, match="Give the paths of the corpus with --from corpus"):
            slice_os.reindex(location, **wrong)


def test_a_document_that_is_being_replaced_stays_as_it_was(location):
    """Its run goes on, or was killed: the next generation has what was there before."""
    slice_os.reindex(location, swap=False)
    long = "A sentence of a document that takes many passages. " * 40
    with slice_os.open(location) as index:
        writer = index._backend.writer()
        document = slice_os.Document("d0", long)
        writer.begin(document)
        (passage, *_) = split(document, 20)
        (words,) = index.encoder.encode_words([passage.text])
        writer.put(passage, PackedPassage.pack(words, 20, passage))
        begun = slice_os.Document("begun", long)
        if isinstance(writer, LocalWriter):
            writer.commit()
        else:
            writer.put(replace(passage, number=1), PackedPassage.pack(words, 20, passage))
        writer.close(merge=False)
        assert index._backend.stored(["d0"])["d0"].hash is None
        assert slice_os.swap(location).number == 2
        assert index.get("d0").text == documents()[0].text
    with slice_os.open(location) as index, index._backend.writer() as writer:
        writer.begin(begun)
        writer.put(replace(passage, document="begun"), PackedPassage.pack(words, 20, passage))
        writer.put(
            replace(passage, document="begun", number=1), PackedPassage.pack(words, 20, passage)
        )
    with pytest.raises(checks.CheckError, match=r"not whole, as a run was broken off: 1 .'begun'"):
        slice_os.reindex(location)
    with slice_os.open(location) as index:
        index.delete(["begun"])
    assert slice_os.reindex(location).live


def test_swap_copies_what_was_written_since(location):
    slice_os.reindex(location, swap=False)
    assert states(location) == [(1, "live"), (2, "ready")]
    with slice_os.open(location) as index:
        index.add([slice_os.Document("later", "Written between the two.")])
        index.delete(["d2"])
        assert slice_os.swap(location).number == 2
        assert index.get("later") is not None
        assert index.get("d2") is None
    with pytest.raises(LocationError, match=r"No generation of .* is ready"):
        slice_os.swap(location)


def test_killed_it_goes_on_and_nobody_else_may(location, monkeypatch):
    class Killed(BaseException):
        pass

    def die(done, of):
        raise Killed

    monkeypatch.setattr(copying, "LOOKED_UP", 10)
    with pytest.raises(Killed):
        slice_os.reindex(location, on_progress=die)
    assert states(location) == [(1, "live"), (2, "building")]
    # As if it still ran, elsewhere.
    with slice_os.open(location) as index:
        target = index._backend.generation(2)
        note = {"state": "building", "by": "ann@there (process 7)", "since": "noon"}
        note |= {"done": 10, "of": 30, "beat": 1}
        target.note_build(note)
        sleep = time.sleep

        def renewed(seconds):
            note["beat"] += 1
            target.note_build(note)
            sleep(seconds)

        monkeypatch.setattr(lease, "LEASE", 3.0)
        with monkeypatch.context() as patch:
            patch.setattr(lease, "time", SimpleNamespace(monotonic=time.monotonic, sleep=renewed))
            with pytest.raises(IndexLockedError, match=r"by ann@there .* since noon, 10 of 30"):
                slice_os.reindex(location)
            with pytest.raises(IndexLockedError):
                slice_os.prune_generations(location, unfinished=True)
        # From here on it is not renewed, whatever its clock says.
    with pytest.raises(LocationError, match="was begun with other settings"):
        slice_os.reindex(location, store=["year"])
    report = slice_os.reindex(location)
    assert report.generation == 2
    assert report.copied < 30  # the first ten were there
    assert states(location) == [(1, "retired"), (2, "live")]


def test_killed_at_either_end_it_leaves_nothing_to_go_back_to_by_mistake(location, monkeypatch):
    class Killed(BaseException):
        pass

    def die(*_, **__):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(reindexing, "Lease", die)
        with pytest.raises(Killed):
            slice_os.reindex(location)
    assert states(location) == [(1, "live"), (2, "building")]
    assert slice_os.reindex(location).generation == 2
    # As if it was killed when the name was moved.
    moved = {"state": "ready", "by": "ann@there (process 7)", "since": "noon", "source": "words"}
    with slice_os.open(location) as index:
        index._backend.note_build(moved)
    assert slice_os.reindex(location).generation == 3
    assert states(location) == [(1, "retired"), (2, "retired"), (3, "live")]
    with slice_os.open(location) as index:
        index._backend.note_build(moved)
    assert slice_os.rollback(location).number == 2
    assert states(location) == [(1, "retired"), (2, "live"), (3, "rolled back")]
    assert slice_os.reindex(location).generation == 4
    assert slice_os.rollback(location).number == 2  # not the one that was gone back from
    assert [one.number for one in slice_os.prune_generations(location, 1)] == [3, 4]
    assert states(location) == [(1, "retired"), (2, "live")]


def test_a_failed_check_leaves_the_live_generation_alone(location, monkeypatch):
    with slice_os.open(location) as index:
        before = found(index)
        monkeypatch.setattr(checks, "overlap", lambda *_: 0.4)
        with pytest.raises(checks.CheckError, match="40 % are those of the live"):
            slice_os.reindex(location)
        monkeypatch.undo()
        assert states(location)[0] == (1, "live")
        assert found(index) == before
        with index._backend.generation(2).writer() as writer:
            writer.delete(["d5"])
        assert slice_os.reindex(location, swap=False).copied == 1
        slice_os.prune_generations(location, unfinished=True)
        assert states(location) == [(1, "live")]


def test_another_encoder_is_asked_for(location):
    with slice_os.open(location) as index:
        other = IndexMeta("other", "f" * 32, 8)
        with pytest.raises(EncoderMismatchError, match="generation is for the encoder other"):
            other.check_encoder(location, index.encoder.info)


def test_killed_at_random_moments_by_signals(location):
    """A reader and a writer go on; after each kill the live generation answers, a rerun ends."""
    rng = random.Random(5)
    command = [str(Path(sys.executable).with_name("slice-os")), "reindex", "--index", location]
    started = time.monotonic()
    subprocess.run([*command, "--from", "text", "--json"], check=True, capture_output=True)
    longest = 1.2 * (time.monotonic() - started)
    version, written, killed = 1, 1, 0
    with slice_os.open(location) as index:
        index.add([slice_os.Document("d0", "Version 1 of the document.")])
        while killed < KILLS:
            source = ("text", "words")[killed % 2]
            child = subprocess.Popen([*command, "--from", source], stderr=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL)  # fmt: skip
            # A timer of its own: a writer may be held off until the child is done.
            timer = threading.Timer(rng.uniform(min(0.3, longest / 2), longest), child.kill)
            timer.start()
            while child.poll() is None:
                version += 1
                with contextlib.suppress(
                    slice_os.SliceOSError
                ):  # held off, or swapped in its midst
                    index.add([slice_os.Document("d0", f"Version {version} of the document.")])
                    written = version
                assert index.search("subscription")
                time.sleep(0.05)  # the child needs the processor too
            timer.cancel()
            if child.returncode == -signal.SIGKILL:
                killed += 1
            else:  # it was done before: on a machine that is less busy now than when it was timed
                longest *= 0.8
            said = index.get("d0").text
            assert said.startswith("Version ")
            assert written <= int(said.split()[1]) <= version
        subprocess.run(command, check=True, capture_output=True)
        assert [one.state for one in slice_os.generations(location)].count("live") == 1
        if written < version:  # the last was cut in two, and said so: to be run again
            index.add([slice_os.Document("d0", f"Version {version} of the document.")])
        assert len(index) == 30
        assert {name: index.get(name).text for name in ("d3", "d7")} == {
            one.id: one.text.replace("\n\n", "\n\n")
            for one in documents()
            if one.id in ("d3", "d7")
        }
        once = [(one.passage.document, one.passage.number) for one in index.passages()]
        assert len(once) == len({*once})


def test_searches_go_on_through_the_swap(location):
    wrong, right, stop = [], [], threading.Event()
    with slice_os.open(location) as index:
        wanted = found(index)

        def search():
            while not stop.wait(0.05):
                try:
                    (right if found(index) == wanted else wrong).append(1)
                except Exception as exc:
                    wrong.append(exc)

        threads = [threading.Thread(target=search) for _ in range(2)]
        for thread in threads:
            thread.start()
        slice_os.reindex(location)
        slice_os.reindex(location)
        time.sleep(0.5)
        stop.set()
        for thread in threads:
            thread.join()
    assert wrong == []
    assert len(right) > 5


def test_an_index_is_copied_to_other_locations_and_back(location, new_location, tmp_path):
    there, back = new_location(), str(tmp_path / "back.slice")
    assert slice_os.reindex(location, to=there).copied == 30
    assert slice_os.reindex(there, to=back).source == "words"
    assert slice_os.reindex(there, to=back).copied == 0
    with (
        slice_os.open(location) as first,
        slice_os.open(there) as second,
        slice_os.open(back) as end,
    ):
        assert packed(first) == packed(second) == packed(end)
        assert found(first) == found(end)
        assert first.get("d7").metadata == end.get("d7").metadata
        assert end.add(documents()).unchanged == 30
        end.add([slice_os.Document("other", "Not in the first.")])
    with pytest.raises(LocationError, match=r"holds other documents .'other'"):
        slice_os.reindex(location, to=back)
    assert [one.state for one in slice_os.generations(there)] == ["live"]


def test_a_damaged_name_of_the_live_generation_is_said(tmp_path):
    location = tmp_path / "damaged.slice"
    slice_os.index(documents(3), location)
    slice_os.reindex(location)
    file = location / "live"
    whole = file.read_bytes()
    for at in range(len(whole)):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(IndexDamagedError, match="which names the live generation"):
            slice_os.open(location)
    file.write_bytes(whole)
    with slice_os.open(location) as index:
        assert len(index) == 3


def test_of_two_that_take_over_one_gets_it(location, monkeypatch):
    with slice_os.open(location) as index:
        live = index._backend
        target = live.next_generation(live.meta, {})
        found = lease.find_build(live)
        with lease.Lease(target, "words", found) as first:
            with pytest.raises(IndexLockedError, match="has taken over the generation 2"):
                lease.Lease(target, "words", found)
            first.check()
        target.close()


def test_who_builds_renews_though_nothing_is_told(location, monkeypatch):
    """A thread of its own does, however long the next document, or a write, takes."""
    monkeypatch.setattr(lease, "LEASE", 0.6)

    def slow():
        with slice_os.open(location) as index:
            beats = set()
            while len(beats) < 3:  # ends only if it is renewed meanwhile
                beats.add(index._backend.generations()[-1].build["beat"])
                time.sleep(0.02)
        yield slice_os.Document("0.txt", "Another text.")

    assert slice_os.reindex(location, corpus=slow(), least_overlap=0).live


def test_the_name_is_moved_only_from_where_it_is(location):
    with slice_os.open(location) as index:
        live = index._backend
        first, second = (live.next_generation(live.meta, {}) for _ in range(2))
        live.swap(2)
        with pytest.raises(LocationError, match="was made live meanwhile: run this again"):
            live.swap(3)
        assert [one.number for one in live.generations() if one.state == "live"] == [2]
        first.swap(1)
        for one in (first, second):
            one.close()

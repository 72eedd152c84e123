"""The next generation of an index: built beside the live one, checked, made live, and back."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

import slice_os
from slice_os.errors import IndexDamagedError, LocationError, WritesLostError
from slice_os.operate import estimate
from slice_os.operate import reindex as reindexing
from slice_os.operate import sample_checks as checks
from slice_os.spans import PackedPassage
from slice_os.storage.local.write import LocalWriter
from slice_os.text import split

from .reindexed import LINES, documents, found, packed, states


@pytest.fixture
def location(new_location):
    location = new_location()
    fewer = {"tolerance": 0.6} if "://" in location else None  # fewer spans are soon written
    slice_os.index(documents(), location, cluster=fewer, passage_words=20)
    return location


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

        def write(share):
            if share and not index.holds(["meanwhile"]):
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

        def write(share):
            if share and index.get("texts/2.txt").text.startswith("Text 2 of"):
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


def test_a_plan_says_how_large_it_becomes(new_location, monkeypatch):
    monkeypatch.setattr(estimate, "SAMPLE_PASSAGES", 12)  # so that it is a sample
    rng = random.Random(2)
    words = " ".join(line.format("soon") for line in LINES).split()
    corpus = [
        slice_os.Document(
            f"d{n}", " ".join(rng.choices(words, k=round(rng.lognormvariate(3, 0.8)) + 1))
        )
        for n in range(300)
    ]
    location, settings, other = new_location(), None, {"store": []}
    if "://" in location:
        settings = {"tolerance": 0.6, "replicas": 0}
        other = {"cluster": {"tolerance": 0.8, "shards": 2}}
    slice_os.index(corpus, location, cluster=settings)
    for changed in ({}, other):
        plan = slice_os.reindex(location, dry_run=True, **changed)
        assert slice_os.reindex(location, **changed).live
        made = slice_os.generations(location)[-1]
        assert plan.bytes == pytest.approx(made.bytes, rel=0.2)
        with slice_os.open(location) as index:
            assert index.status().bytes == pytest.approx(made.bytes, rel=0.05)

"""What adding, listing, showing and deleting documents promise, on every backend."""

from __future__ import annotations

import json

import numpy as np
import pytest

import slice_os
from slice_os.errors import CorpusError, LocationError, QueryError
from slice_os.text import count_words

from .conftest import TEXTS, corpus


def test_documents_are_listed_in_pages(new_location):
    names = sorted([f"n{n:02}" for n in range(23)] + ["\u00e9", "Z", "\U0001f680", "\uffee"])
    documents = [
        slice_os.Document(name, "One two three. " * 20, f"Title {name}", {"n": {"of": name}})
        for name in reversed(names)
    ]
    with slice_os.open(new_location(), passage_words=20) as own:
        own.add(documents)
        whole = own.list()
        assert [one.document for one in whole] == names
        for one in whole:
            assert (one.title, one.words) == (f"Title {one.document}", 60)
            assert one.metadata == {"n.of": one.document}
            assert one.passages >= 3
        assert sum(one.passages for one in whole) == own.status().passages
        pages = [own.list(size=10, offset=at) for at in (0, 10, 20, 30)]
        assert [one for page in pages for one in page] == whole
        assert [one.document for one in own.list(filters={"n.of": "Z"})] == ["Z"]
        assert own.list(filters=["n.of=z"]) == []
        own.delete(["Z"])
        assert "Z" not in [one.document for one in own.list()]
        for bad in ({"size": 0}, {"offset": -1}, {"filters": ["n"]}):
            with pytest.raises(QueryError):
                own.list(**bad)


def test_a_document_is_shown_as_it_was(new_location):
    text = "\n\n".join(
        f"This is the paragraph of number {n}. It has two sentences!\n  - and a line {n}"
        for n in range(30)
    )
    with slice_os.open(new_location(), passage_words=25) as own:
        own.add([slice_os.Document("a#1", text, "T"), slice_os.Document("b", "Another one.")])
        whole = own.show("a#1")
        assert (whole.document, whole.title, whole.start, whole.end) == ("a#1", "T", 0, len(text))
        assert len(whole.text) == len(text)
        assert whole.text.split() == text.split()
        for hit in own.search("the paragraph of number 17", size=3, filters=[]):
            if hit.document != "a#1":
                continue
            alone = own.show("a#1", at=hit.document_start, context=0)
            assert (alone.text, alone.start, alone.end) == (
                hit.text, hit.document_start, hit.document_end
            )  # fmt: skip
            assert own.show("a#1", passage=hit.passage, context=0) == alone
            around = own.show("a#1", at=hit.document_end - 1, context=2)
            assert own.show("a#1", passage=hit.passage, context=2) == around
            assert around.start < alone.start <= alone.end < around.end
            shown = whole.text[around.start : around.end]
            assert around.text == shown
        assert own.show("a#1", at=0).start == 0
        assert own.show("a#1", at=len(text) - 1).end == len(text)
        assert own.show("a#1", at=700, context=99) == whole
        with pytest.raises(QueryError, match=r"There is no document 'c'.*slice-os list"):
            own.show("c")
        for at in (-1, len(text), 10**9):
            with pytest.raises(QueryError, match=f"no character {at}"):
                own.show("a#1", at=at)
        for number in (-1, 999):
            with pytest.raises(QueryError, match=f"no passage {number}"):
                own.show("a#1", passage=number)
        with pytest.raises(QueryError, match="context"):
            own.show("a#1", at=1, context=-1)
        with pytest.raises(QueryError, match="no document"):
            own.show("\ud800")


def test_only_what_changed_is_encoded(new_location):
    location = new_location()
    with slice_os.open(location, passage_words=20) as own:
        first = own.add(corpus())
        assert (first.documents, first.unchanged) == (7, 0)
        again = own.add(corpus())
        assert (again.documents, again.unchanged, again.encoded_words) == (0, 7, 0)
        changed = corpus()
        longer = changed[0].text + "\nI moved to another town and there is no signal there at all."
        changed[0] = slice_os.Document("cancel", longer, metadata={"year": 1999})
        third = own.add(changed)
        assert (third.documents, third.replaced, third.unchanged) == (1, 1, 6)
        assert 0 < third.encoded_words < count_words(longer) / 2
        assert {h.document for h in own.search("no signal", filters={"year": 1999})} == {"cancel"}
        asked = []
        refused = own.add(changed[:2], prune=lambda *numbers: asked.append(numbers) or False)
        assert (asked, refused.pruned, refused.kept) == ([(5, 7)], 0, 5)
        assert own.add(changed[:2], prune=True).kept == 5
        assert own.add(changed[:2], prune="all").pruned == 5
        assert own.status().documents == 2
        assert own.delete(["cancel", "nobody"]) == 1
        assert own.delete(filters={"year": 2019}) == 1
        assert own.status().passages == 0
        assert own.search("ship") == []
        assert list(own.mine(["ship"], min_degree=0)) == []


def test_duplicates_and_wordless_documents_are_rejected_not_lost(new_location):
    rejects = []
    documents = [*corpus(), corpus()[0], slice_os.Document("empty", "\u200b\u200b")]
    with slice_os.open(new_location()) as own:
        report = own.add(documents, on_reject=rejects.append, prune=True)
        assert (report.documents, report.rejected, report.pruned) == (7, 2, 0)
        assert [r.place for r in rejects] == ["cancel", "empty"]
        assert own.add(documents, on_reject=rejects.append).rejected == 2


def test_what_is_no_document_is_rejected_and_the_rest_indexed(new_location):
    rejects = []
    documents = [
        slice_os.Document("half \ud800", "text"),
        slice_os.Document("metadata", "text", metadata={"a": "\udfff"}),
        slice_os.Document("keys", "text", metadata={3: 4, "a": 1}),
        slice_os.Document(7.5, "text"),
        slice_os.Document("none", None),
        slice_os.Document("nan", "A good text.", metadata={"x": float("nan"), "y": {"z": None}}),
    ]
    with slice_os.open(new_location()) as own:
        report = own.add(documents, on_reject=rejects.append)
        assert (report.documents, report.rejected, len(rejects)) == (1, 5, 5)
        (hit,) = own.search("good")
        assert json.loads(json.dumps(hit.to_dict(), allow_nan=False))["metadata"]["x"] == "nan"


def test_a_source_that_fails_midway_loses_nothing_before_it(new_location):
    def failing():
        for number in range(150):
            yield slice_os.Document(f"d{number}", f"Document number {number}.")
        raise RuntimeError("the source broke")

    with slice_os.open(new_location()) as own:
        with pytest.raises(RuntimeError, match="the source broke"):
            own.add(failing())
        assert own.status().documents == 150


def test_prune_keeps_what_was_rejected_and_what_lies_elsewhere(tmp_path, new_location):
    for number in range(12):
        (tmp_path / f"{number}.txt").write_text(f"Document number {number}.")
    (tmp_path / "rows.jsonl").write_text('{"id": "r1", "text": "one"}\n{"id": "r2", "text": "two"}')
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/a.txt").write_text("A text.")

    def held(index):
        return index.holds(
            ["0.txt", "1.txt", "rows.jsonl#r1", "rows.jsonl#r2", "deep/a.txt", "own"]
        )

    with slice_os.open(new_location()) as own:
        own.add([slice_os.Document("own", "No file.")])
        own.add(slice_os.read(tmp_path, root=tmp_path))
        assert own.status().documents == 16
        assert own.status().details["roots"] == {"": str(tmp_path)}
        (tmp_path / "0.txt").write_bytes(b"\0\1\2" * 99)  # cannot be read for now
        (tmp_path / "1.txt").unlink()
        (tmp_path / "rows.jsonl").write_text('{"id": "r1", "text": "one"}\n{"id": "r2", ')
        (tmp_path / "deep/a.txt").unlink()
        report = own.add(slice_os.read(tmp_path / "*.txt"), prune=True)
        assert (report.rejected, report.pruned) == (1, 1)
        assert held(own) == {"0.txt", "rows.jsonl#r1", "rows.jsonl#r2", "deep/a.txt", "own"}
        report = own.add(slice_os.read(tmp_path), prune=True)
        assert (report.rejected, report.pruned) == (2, 1)
        assert held(own) == {"0.txt", "rows.jsonl#r1", "rows.jsonl#r2", "own"}
        (tmp_path / "rows.jsonl").write_text('{"id": "r1", "text": "one"}')
        assert own.add(slice_os.read(tmp_path / "rows.jsonl"), prune="all").pruned == 1
        assert held(own) == {"0.txt", "rows.jsonl#r1", "own"}


def test_a_file_has_one_id_and_two_files_have_two(tmp_path, new_location):
    for name in ("a/docs/price.md", "b/docs/price.md", "a/more/x.txt", "c/docs/y.txt"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(f"What {name} says.")
    location = new_location()
    slice_os.index(slice_os.read(tmp_path / "a/docs"), location)
    with slice_os.open(location) as own:
        for given in ("a/docs/price.md", "a/docs/*.md", "a"):
            own.add(slice_os.read(tmp_path / given))
        assert own.holds(["docs/price.md", "more/x.txt"]) == {"docs/price.md", "more/x.txt"}
        assert own.status().documents == 2
        with pytest.raises(CorpusError, match=r"has ids that begin with 'more/'"):
            own.add(slice_os.read(tmp_path / "c/docs", id_prefix="more/"))
        for other in (tmp_path / "b", tmp_path / "b/docs/*.md"):
            own.add(slice_os.read(other))
        assert own.holds(["b/docs/price.md"])
    with slice_os.open(location) as again:
        assert again.add(slice_os.read(tmp_path / "b/docs/price.md")).unchanged == 1
        assert again.status().documents == 3


def test_an_index_that_is_made_elsewhere_is_found(tmp_path, new_location):
    location = new_location()
    with slice_os.open(location) as early, slice_os.open(location) as late:
        assert len(early) == 0
        with pytest.raises(LocationError, match="no index at"):
            early.search("cancel")
        for folder in ("one", "two"):
            (tmp_path / folder / "docs").mkdir(parents=True)
            (tmp_path / folder / "docs" / "a.txt").write_text(f"Cancel my plan number {folder}.")
        late.add(slice_os.read(tmp_path / "one" / "docs"))
        assert len(early) == 1
        assert early.search("cancel my plan")[0].document == "docs/a.txt"
        with pytest.raises(CorpusError, match="has ids that begin with 'docs/'"):
            early.add(slice_os.read(tmp_path / "two" / "docs"))
        assert early.get("docs/a.txt").text.endswith("one.")


def test_two_makers_of_one_index_share_it(new_location):
    location = new_location()
    first, second = slice_os.open(location), slice_os.open(location)
    first.add(corpus())
    assert second.add([slice_os.Document("more", "One more text.")]).documents == 1
    assert first.status().documents == second.status().documents == 8
    first.close()
    second.close()


def test_a_line_of_many_thousand_words(new_location):
    location = new_location()
    in_cluster = "://" in location
    count = 5_000 if in_cluster else 50_000  # the graph of so many spans takes a minute
    words = np.random.default_rng(0).choice(" ".join(TEXTS.values()).split(), count)
    words[count // 2 : count // 2 + 3] = ["zebras", "eat", "marmalade"]
    few_spans = {"cluster": {"tolerance": 0.5}} if in_cluster else {}
    with slice_os.open(location, **few_spans) as own:
        report = own.add([slice_os.Document("long", " ".join(words))])
        assert report.words == count
        (hit, *_) = own.search("zebras eat marmalade")
        assert "zebras" in hit.spans[0].text

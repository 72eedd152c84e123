"""Packed passages: listed, handed from index to index, and never packed twice."""

from __future__ import annotations

import slice_os
from slice_os import api
from slice_os.api import Index
from slice_os.text.filters import parse_filters

LINES = [
    "I want to cancel my subscription because it costs too much.",
    "The parcel never came, and nobody answers the telephone.",
    "Either party may end this agreement with thirty days of notice.",
    "Alice was beginning to get very tired of sitting by her sister.",
]


def held(index):
    """Return the bytes of all passages: document, text -> bytes."""
    return {(one.passage.document, one.passage.text): one.packed.to_bytes()
            for one in index.passages()}  # fmt: skip


def test_passages_come_in_order_and_can_be_gone_on_from(index):
    found = list(index.passages())
    keys = [(one.passage.document, one.passage.number) for one in found]
    assert keys == sorted(keys)
    assert {document for document, _ in keys} == {one.document for one in index.list()}
    for at in (0, 3, len(keys) - 1):
        rest = [
            (one.passage.document, one.passage.number) for one in index.passages(after=keys[at])
        ]
        assert rest == keys[at + 1 :]
    some = list(index.passages(filters=["year>=2020"]))
    assert {one.passage.document for one in some} == {
        one.document for one in index.list(filters=["year>=2020"])
    }
    assert all(len(one.packed) > 0 and one.metadata["year"] >= 2018 for one in found)


def test_an_index_is_copied_without_the_encoder_and_every_byte_stays(index, new_location, tmp_path):
    """From either backend to a new index of it, and to a folder."""
    for location in (new_location(), str(tmp_path / "copy.slice")):
        with slice_os.open(location, passage_words=40) as copy:
            target = copy._made()
            with target.writer() as writer:
                for document in {one.document for one in index.list()}:
                    writer.begin(index.get(document))
                    for one in index.passages():
                        if one.passage.document == document:
                            writer.put(one.passage, one.packed)
                    writer.finish()
            assert held(copy) == held(index)
            for mode in ("dense", "hybrid", "lexical"):
                hits, copied = (
                    some.search("wants to end the contract", mode=mode) for some in (index, copy)
                )
                assert [(h.document, h.degree) for h in copied] == [
                    (h.document, h.degree) for h in hits
                ]


def test_bytes_stay_when_passages_move_and_metadata_changes(new_location):
    """A degree changes only when the text or the encoder does."""
    location = new_location()
    with slice_os.open(location, passage_words=15) as index:
        index.add([slice_os.Document("a", "\n\n".join(LINES), metadata={"v": 1})])
        before = held(index)
        assert len(before) == len(LINES)
        moved = ["A new beginning of the document, which was not there.", *reversed(LINES)]
        report = index.add([slice_os.Document("a", "\n\n".join(moved), metadata={"v": 1})])
        assert 0 < report.encoded_words < 15
        after = held(index)
        assert {key: after[key] for key in before} == before
        report = index.add([slice_os.Document("a", "\n\n".join(moved), metadata={"v": 2})])
        assert report.encoded_words == 0
        assert held(index) == after
        assert index.get("a").metadata == {"v": 2}
        for _ in range(3):  # segments are merged now and then
            index.add([slice_os.Document("b", LINES[0]), slice_os.Document("c", LINES[1])])
            index.delete(["b", "c"])
        assert held(index) == after


def test_a_document_comes_back(index):
    texts = {one.document: index.get(one.document) for one in index.list()}
    assert len(texts) == len(index) > 0
    for name, document in texts.items():
        assert document.id == name
        assert index.show(name).text == document.text
        assert document.metadata["kind.of"] == name[0]
    assert index.get("nothing of the kind") is None
    assert index  # true, whatever it holds


def test_many_queries_find_what_each_finds_alone(index, monkeypatch):
    monkeypatch.setattr(api, "TOGETHER", 3)
    queries = ["end my subscription", "money back", "the ship sank at night", "licence"]
    for options in (
        {},
        {"mode": "dense", "size": 3, "offset": 1},
        {"mode": "lexical"},
        {"fusion": "rrf"},
        {"filters": ["year>=2019"], "rescore": 0},
        {"min_degree": 0.6},
        {"group": True, "size": 2},
    ):
        alone = [index.search(query, **options) for query in queries]
        assert index.search_many(queries, **options) == alone
    assert index.search_many([]) == []


def test_hits_read_well_in_a_notebook(index):
    hits = index.search("end my subscription")
    html = hits._repr_html_()
    first = hits[0]
    assert f"<mark>{first.spans[0].text}</mark>" in first._repr_html_()
    assert f"{first.degree:.3f}" in html
    assert html.count("<li>") == len(hits)
    unsafe = slice_os.Hit("<b>", 0, "", "a < b", 1.0, 1.0, (), {}, 0, 5)._repr_html_()
    assert "&lt;b&gt;" in unsafe
    assert "a &lt; b" in unsafe


def test_filters_are_read_as_a_search_reads_them(index):
    with slice_os.open(index.location) as again:
        assert isinstance(again, Index)
        found = again.passages(filters=parse_filters(["kind.of=r"]))
        assert {one.passage.document for one in found} == {"refund"}

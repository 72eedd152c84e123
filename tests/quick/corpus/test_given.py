"""What `add` takes, and what it says of the rest."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

import slice_os
from slice_os.corpus.addable import as_documents
from slice_os.errors import CorpusError
from slice_os.types import Document


def test_texts_pairs_rows_and_numbers_are_documents() -> None:
    given: list[Any] = [
        "I want to cancel.",
        ("a", "One."),
        (7, "Two."),
        {"id": 8, "title": "T", "text": "Three.", "year": 2024},
        {"messages": [{"role": "user", "content": "Four."}]},
        Document(9, "Five."),  # type: ignore[arg-type]
    ]
    first, *named, talk, last = as_documents(given)
    assert first.id.startswith("text-")
    assert first.id == next(iter(as_documents(["I want to cancel."]))).id
    assert named == [
        Document("a", "One."),
        Document("7", "Two."),
        Document("8", "T\nThree.", "T", {"year": 2024}),
    ]
    assert (talk.text, last) == ("user: Four.", Document("9", "Five."))


@pytest.mark.parametrize("given", ["a text", b"bytes", {"text": "a"}, Document("a", "b"), 7, None])
def test_what_is_no_list_says_what_is_taken(given: Any) -> None:
    with pytest.raises(CorpusError, match="Documents are given as a list"):
        as_documents(given)


@pytest.mark.parametrize("one", [7, None, ("a",), ("a", 7), [], {"words": "a"}])
def test_what_is_no_document_is_told_by_its_number(one: Any) -> None:
    with pytest.raises(CorpusError, match="2"):
        list(as_documents(["text", one]))


def test_what_is_skipped_is_said_where_nobody_asks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a.txt").write_text(" ")
    with caplog.at_level(logging.WARNING), slice_os.open(tmp_path / "i.slice") as index:
        report = index.add([("a", "The ship sank at night."), ("b", "")])
        assert (report.documents, report.rejected) == (1, 1)
    assert "b was skipped: " in caplog.text

"""Three calls, and what a retriever has to say of one."""

from __future__ import annotations

TEXTS = {
    "call-1": ("Hello. I would like to cancel my subscription today.", {"year": 2023, "kind": "a"}),
    "call-2": ("My parcel arrived late, and the box was damaged.", {"year": 2024, "kind": "b"}),
    "call-3": ("Please close my account at the end of the month.", {"year": 2025, "kind": "b"}),
}


def check_spans(text, metadata):
    """Check that a passage's metadata names the words that matched."""
    assert metadata["spans"]
    for span in metadata["spans"]:
        assert text[span["start"] : span["end"]] == span["text"]
    assert metadata["degree"] == max(span["degree"] for span in metadata["spans"])
    assert TEXTS[metadata["document"]][0][metadata["start"] : metadata["end"]] == text

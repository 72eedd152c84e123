"""What an indexing run did."""

from __future__ import annotations

from dataclasses import dataclass

from slice_os.records import Plain


@dataclass(slots=True)
class IndexReport(Plain):
    """What an indexing run did; live while it runs.

    `documents` were indexed, `replaced` of them had been in the index before; `passages` are
    theirs, `kept` are documents that pruning would have deleted, were they not so many. `spans`,
    `retries` and what took how many seconds are explained by `slice_os.effort.Effort`.
    """

    documents: int = 0
    replaced: int = 0
    unchanged: int = 0
    passages: int = 0
    words: int = 0
    encoded_words: int = 0
    rejected: int = 0
    pruned: int = 0
    kept: int = 0
    spans: int = 0
    retries: int = 0
    seconds: float = 0.0
    encoding_seconds: float = 0.0
    writing_seconds: float = 0.0
    sending_seconds: float = 0.0
    waiting_seconds: float = 0.0
    characters_read: int = 0
    characters_done: int = 0


REPEATED = (
    "documents", "replaced", "unchanged", "passages", "words", "rejected", "characters_read",
    "characters_done",
)  # fmt: skip
"""What is counted again of documents that are met again."""

"""Documents of an index that is reindexed, and what is found in it."""

from __future__ import annotations

import slice_os

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


def states(location):
    return [(one.number, one.state) for one in slice_os.generations(location)]


def found(index):
    return [(h.document, h.passage, h.degree) for h in index.search("end my subscription", size=20)]


def packed(index):
    return {
        (one.passage.document, one.passage.number): one.packed.to_bytes()
        for one in index.passages()
    }

"""What a filter adds to a search of an embedded index of many documents."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np

from benchmarks.timing import seconds
from slice_os.spans import PackedPassage
from slice_os.storage.contract import IndexMeta, SearchQuery
from slice_os.storage.local import LocalBackend
from slice_os.text.filters import Filter, parse_filters
from slice_os.types import Document, Passage, Words

TITLE = "Filters"
DOCUMENTS = 100_000
DIMENSION = 16
WORDS = 5
TIMES = 15
FILTERS = {
    "a value of one document": ["name=n77"],
    "a value of 100": ["rare=7"],
    "a value of a tenth": ["tenth=7"],
    "a value of half": ["half=1"],
    "not a value of a tenth": ["tenth!=7"],
    "two values at once": ["half=1", "tenth in 1,3,5"],
    "a range of 1,000 values": ["number<1000"],
    "a range of 10,000 values": ["number<10000"],
    "a range of 50,000 values": ["number<50000"],
}
"""Each document has a name and a number of its own."""


def run(data: Path | None) -> list[str]:
    """Fill an index, and search it with and without filters, by turns."""
    lines = [
        f"{DOCUMENTS:,} documents of one passage in an embedded index, hybrid searches: the best "
        f"of {TIMES}, by turns with the search without a filter, of which it is the difference.",
        "",
        "| filter | documents | first, ms | again, ms |",
        "|---|---:|---:|---:|",
    ]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "bench.slice"
        meta = IndexMeta("random", "weights_hash", DIMENSION)
        with closing(LocalBackend.create(str(folder), meta)) as index:
            _fill(index)
            for what, texts in FILTERS.items():
                filters = parse_filters(texts)
                index.candidates([_query(filters)])  # the first knows whose passages are whose
                plain, first, again = [], [], []
                for _ in range(TIMES):
                    plain.append(seconds(lambda: _search(index, [])))
                    with index._snapshot() as database:
                        database.remembered().clear()
                    first.append(seconds(lambda f=filters: _search(index, f)))  # type: ignore[misc]
                    again.append(seconds(lambda f=filters: _search(index, f)))  # type: ignore[misc]
                added = [(min(took) - min(plain)) * 1000 for took in (first, again)]
                count = len(index.matching(filters))
                lines.append(f"| {what} | {count:,} | {added[0]:.1f} | {added[1]:.1f} |")
    return lines


def _search(index: LocalBackend, filters: list[Filter]) -> None:
    for one in filters:
        assert all(map(index.has_field, one.fields))  # as `Index` does, which names unknown ones
    index.candidates([_query(filters)])


def _query(filters: list[Filter]) -> SearchQuery:
    vector = np.eye(DIMENSION, dtype=np.float32)[0]
    return SearchQuery("first seventh word", vector, range(1, 6), filters=filters)


def _fill(index: LocalBackend) -> None:
    rng = np.random.default_rng(5)
    text = "some words of one document"
    starts, ends = (np.array(x, np.int32) for x in ([0, 5, 11, 14, 18], [4, 10, 13, 17, 26]))
    with index.writer() as out:
        for n in range(DOCUMENTS):
            metadata = {
                "name": f"n{n}", "rare": n % 1000, "tenth": n % 10, "half": n % 2,
                "number": n * 7919 % DOCUMENTS,
            }  # fmt: skip
            passage = Passage(f"d{n}", 0, 0, len(text), text)
            vectors = rng.normal(size=(WORDS, DIMENSION)).astype(np.float32)
            out.begin(Document(f"d{n}", text, metadata=metadata))
            out.put(passage, PackedPassage.pack(Words(starts, ends, vectors), 20, passage))
            out.finish()

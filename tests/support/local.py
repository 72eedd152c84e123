"""Filling an index straight through its writer, with vectors drawn at random."""

from __future__ import annotations

import re
import zlib

import numpy as np

from slice_os.engine.rerank import ranked_passages
from slice_os.spans import PackedPassage, degree, fit_window
from slice_os.storage.contract import SearchQuery
from slice_os.types import Document, Passage, Words

DIMENSION = 32
SENTENCES = [
    "The customer wants to cancel the plan before the first of May.",
    "Nobody answered when she called the office about her refund.",
    "Liability is limited to the amount that was paid for the licence.",
    "The ship sank in the night and the crew was never seen again.",
]


def encode(text: str) -> Words:
    """Give every word of a text a vector of its own; equal texts have equal vectors."""
    spans = [m.span() for m in re.finditer(r"\S+", text)]
    rng = np.random.default_rng(zlib.crc32(text.encode()))
    vectors = rng.normal(size=(len(spans), DIMENSION)) * rng.uniform(1, 9, size=(len(spans), 1))
    starts, ends = np.array(spans, dtype=np.int32).reshape(-1, 2).T
    return Words(starts, ends, vectors.astype(np.float32))


def put_passage(writer, document: str, number: int, start: int, text: str) -> None:
    """Write a passage of the document that was begun."""
    passage = Passage(document, number, start, start + len(text), text)
    writer.put(passage, PackedPassage.pack(encode(text), 20, passage))


def put(writer, name: str, texts: list[str], **metadata: object) -> Document:
    """Write a document of the given passages."""
    document = Document(name, "\n".join(texts), metadata=metadata)
    assert writer.begin(document)
    at = 0
    for number, text in enumerate(texts):
        put_passage(writer, name, number, at, text)
        at += len(text) + 1
    writer.finish()
    return document


def fill(index, documents: dict[str, str | list[str]], **metadata: object) -> None:
    """Write documents of one or several passages in one run."""
    with index.writer() as out:
        for name, texts in documents.items():
            put(out, name, [texts] if isinstance(texts, str) else texts, **metadata)


def unit(seed):
    vector = np.random.default_rng(seed).normal(size=DIMENSION).astype(np.float32)
    return vector / np.linalg.norm(vector)


def candidates(index, **wanted):
    """Return the candidates of a query, reranked: `size` of them after the first `offset`."""
    size, offset = wanted.pop("size", 10), wanted.pop("offset", 0)
    query = SearchQuery(**{"text": "", "vector": unit(1), "lengths": range(1, 21), **wanted})
    (found,) = ranked_passages(index, [query], range(offset, offset + size))
    return found


def search(index, **wanted):
    return [(c.stored.passage.document, c.score) for c in candidates(index, **wanted)]


def naive_degree(text, vector, lengths):
    vectors = encode(text).vectors.astype(np.float64)
    window = fit_window(lengths, len(vectors))
    best = max(
        (vectors[i : i + n].sum(0) @ vector) / np.linalg.norm(vectors[i : i + n].sum(0))
        for n in window
        for i in range(len(vectors) - n + 1)
    )
    return degree(best)


def late_interaction(query, words):
    """Return the sum of the shares of a query's words, each times its best cosine."""
    wide = words.astype(np.float64)
    units = wide / np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), 1e-12)
    nearest = (query.vectors @ units.T).max(axis=1, initial=-1)
    return float(query.shares @ nearest)

"""Every span of the corpus compared with a query, one by one."""

from __future__ import annotations

import numpy as np

from slice_os.spans import (
    degree,
    enumerate_spans,
    fit_window,
    length_window,
)
from slice_os.storage.fusion import DEFAULT_FUSION, FUSIONS
from slice_os.text import count_words, split

from .conftest import corpus

QUERY = "the customer wants to cancel"
WAYS = [
    *(("hybrid", fusion) for fusion in FUSIONS),
    ("dense", DEFAULT_FUSION), ("lexical", DEFAULT_FUSION),
]  # fmt: skip


def naive(encoder, query, lengths=None):
    """Form every span vector of every passage: (document, passage, start, end) -> degree."""
    vector = encoder.encode([query])[0].astype(np.float64)
    passages = [p for document in corpus() for p in split(document, 40)]
    found = {}
    for passage, words in zip(
        passages, encoder.encode_words(p.text for p in passages), strict=True
    ):
        window = fit_window(lengths or length_window(count_words(query)), len(words))
        for i, j in enumerate_spans(len(words), window.start, window.stop - 1).tolist():
            total = words.vectors[i:j].sum(0, dtype=np.float64)
            cosine = float(vector @ total / np.linalg.norm(total))
            key = passage.document, passage.number, int(words.starts[i]), int(words.ends[j - 1])
            found[key] = degree(cosine)
    return found

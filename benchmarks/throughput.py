"""Indexing: words a second of the whole pipeline against encoding with sentence-transformers."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

import slice_os
from benchmarks.text import passages
from benchmarks.timing import seconds
from benchmarks.weights import minilm

TITLE = "Indexing throughput"
WORDS = 50_000
SAMPLE = 400
ROUNDS = 3
MAX_WORDS = 20


def run(data: Path | None) -> list[str]:
    """Measure in turns, so that a slow minute of the machine hits all alike."""
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(os.cpu_count() or 1)
    model = SentenceTransformer(minilm(), device="cpu")
    texts = passages(WORDS)
    words = sum(len(text.split()) for text in texts)
    ngrams = _ngrams(texts[0], SAMPLE)
    model.encode(texts[:8])

    def index() -> float:
        with tempfile.TemporaryDirectory() as folder, slice_os.open(f"{folder}/b.slice") as opened:
            opened.encoder  # noqa: B018 - loaded, as the peer's model is
            start = time.perf_counter()
            opened.add(slice_os.Document(str(n), text) for n, text in enumerate(texts))
            return time.perf_counter() - start

    rates: dict[str, list[float]] = {"index": [], "st": [], "ngram": []}
    for _ in range(ROUNDS):
        rates["index"].append(words / index())
        rates["st"].append(words / seconds(lambda: model.encode(texts, batch_size=32)))
        rates["ngram"].append(len(ngrams) / seconds(lambda: model.encode(ngrams, batch_size=32)))
    ours, theirs = statistics.median(rates["index"]), statistics.median(rates["st"])
    per_word = statistics.median(rates["ngram"]) / MAX_WORDS
    return [
        "The same architecture (all-MiniLM-L6-v2, 22.6 M parameters) and threads; medians of "
        f"{ROUNDS} rounds in turns over {words:,} words of examples/.",
        "",
        "| what | words/s | slice-os is faster by |",
        "|---|---:|---:|",
        f"| slice-os, the whole pipeline to the committed index (int8) | {ours:,.0f} | |",
        f"| sentence-transformers, one vector a passage (torch, fp32) | {theirs:,.0f} | "
        f"{ours / theirs:.2f} × |",
        f"| sentence-transformers, every n-gram of 1-{MAX_WORDS} words on its own, extrapolated "
        f"from {len(ngrams)} n-grams | {per_word:,.1f} | {ours / per_word:,.0f} × |",
    ]


def _ngrams(text: str, count: int) -> list[str]:
    words = text.split()
    grams = [
        " ".join(words[i : i + n])
        for i in range(len(words) - MAX_WORDS)
        for n in range(1, MAX_WORDS + 1)
    ]
    return grams[:count]

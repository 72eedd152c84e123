"""Phrase in context: the single pass over 1,024 pairs, and every n-gram against the peer's way.

Needs `--data FOLDER` with sts/stsb-dev.tsv (score, sentence1, sentence2).
"""

from __future__ import annotations

import os
import statistics
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import seconds
from benchmarks.weights import minilm
from slice_os.encoders import Encoder, load_encoder
from slice_os.lab.evaluate.scorers import Encoded, n_grams, single_pass
from slice_os.lab.evaluate.significance import correlate
from slice_os.lab.train.checkpoints import DevelopmentSet
from slice_os.spans import enumerate_spans

TITLE = "Evaluating phrases in context"
PAIRS = 1024
SOME = 16
"""Pairs whose n-grams are encoded: all would take hours."""
BATCH = 32
ROUNDS = 3


def run(data: Path | None) -> list[str]:
    """Return what both take; the n-grams' best cosines are compared with the peer's."""
    import torch

    file = data / "sts" / "stsb-dev.tsv" if data else None
    if not file or not file.exists():
        return []
    torch.set_num_threads(os.cpu_count() or 1)
    return [*_single_pass(DevelopmentSet(file, PAIRS)), "", *_n_grams(DevelopmentSet(file, SOME))]


def _single_pass(pairs: DevelopmentSet) -> list[str]:
    gold = [pair.likeness for pair in pairs.pairs]
    with load_encoder() as encoder:
        work = [_encoded(encoder, pairs) for _ in range(ROUNDS)]
        taken = statistics.median(seconds(partial(single_pass, one)) for one in work)
        found = correlate(single_pass(work[0]), gold).pearson
    words = sum(len(words) for words in work[0].words)
    return [
        f"Single pass of {len(gold):,} pairs of STS-B dev, {words:,} words in their passages, with "
        f"the encoder inside: {taken:.1f} s (median of {ROUNDS}; encoding queries and passages, "
        f"and all spans of 1 to 20 words). Pearson {found:.3f}.",
    ]


def _n_grams(pairs: DevelopmentSet) -> list[str]:
    from sentence_transformers import SentenceTransformer

    folder = minilm()
    model = SentenceTransformer(folder, device="cpu")
    rates: dict[str, list[float]] = {}
    with load_encoder(folder) as same, load_encoder() as inside:
        texts = _texts(_encoded(same, pairs))
        count = sum(map(len, texts))
        for _ in range(ROUNDS):
            for name, work in {
                "peer": lambda: _peer(model, texts),
                "same": lambda: n_grams(_encoded(same, pairs)),
                "inside": lambda: n_grams(_encoded(inside, pairs)),
            }.items():
                rates.setdefault(name, []).append(count / seconds(work))
        # The peer reads [CLS] and [SEP] into its means, so that its best is another by a little.
        ours, theirs = n_grams(_encoded(same, pairs)), _peer(model, texts)
    queries = model.encode([pair.first for pair in pairs.pairs])
    best = [float((spans @ query).max()) for query, spans in zip(queries, theirs, strict=True)]
    apart = float(np.abs(np.subtract(ours, best)).max())
    medians = {name: statistics.median(found) for name, found in rates.items()}
    labels = {
        "peer": f"sentence-transformers, a passage's spans in batches of {BATCH} (torch, fp32)",
        "same": "`n-grams` with the same weights (torch, fp32)",
        "inside": "`n-grams` with the encoder inside (onnxruntime, int8)",
    }
    return [
        f"Every n-gram of 1 to 20 words on its own: {count:,} of {len(texts)} passages, medians of "
        f"{ROUNDS} rounds in turns; all-MiniLM-L6-v2 or its like. The best cosines of the same "
        f"weights differ by up to {apart:.3f}: the peer's means hold the special tokens.",
        "",
        "| | spans/s | faster by |",
        "|---|---:|---:|",
        *(
            f"| {labels[name]} | {rate:,.0f} | {rate / medians['peer']:.2f} × |"
            for name, rate in medians.items()
        ),
    ]


def _encoded(encoder: Encoder, pairs: DevelopmentSet) -> Encoded:
    queries = [pair.first for pair in pairs.pairs]
    return Encoded(encoder, queries, pairs.passages, [], lambda name, done, count: None)


def _texts(encoded: Encoded) -> list[list[str]]:
    return [
        [encoded.text(row, i, j) for i, j in enumerate_spans(len(words)).tolist()]
        for row, words in enumerate(encoded.words)
    ]


def _peer(model: Any, texts: list[list[str]]) -> list[Any]:
    """Encode as one does without thinking of it: in the order of the text, a batch a call."""
    found = []
    for spans in texts:
        batches = [spans[start : start + BATCH] for start in range(0, len(spans), BATCH)]
        found.append(np.concatenate([model.encode(batch) for batch in batches]))
    return found

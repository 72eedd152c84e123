"""Training with SLICE's loss: what the best spans cost on top of encoding, in memory and time.

Three losses of the same encoded triples: none to speak of (a constant times the word vectors),
SLICE's through `best_spans`, and SLICE's the naive way, which forms the vector of every span.
Memory is measured in a process for each of them, from /proc: `getrusage` would give a child at
least the peak of the process that started it.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.text import passages
from benchmarks.timing import seconds
from benchmarks.weights import minilm

if TYPE_CHECKING:
    from torch import Tensor

TITLE = "Training: what SLICE's loss costs"
TRIPLES = 16
MAX_WORDS = 10
ROUNDS = 9
LOSSES = {
    "trivial": "encoding alone, forward and backward",
    "best_spans": "with SLICE's loss through `best_spans`",
    "naive": f"with every span of 1 to {MAX_WORDS} words as a vector",
}
CHILD = """
import sys
from benchmarks.objective import steps
from pathlib import Path
def resident(kind):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(kind))
work = steps()[sys.argv[1]]
before = resident("VmRSS")
for _ in range(3):
    work()
print(before, resident("VmHWM"))
"""


def run(data: Path | None) -> list[str]:
    """Measure memory, each loss in its own process, then time, in turns."""
    memory = {name: _memory(name) for name in LOSSES}
    work = steps()
    times: dict[str, list[float]] = {name: [] for name in LOSSES}
    for number in range(ROUNDS + 1):
        for name in LOSSES:
            taken = seconds(work[name])
            if number:  # the first round warms up
                times[name].append(taken)
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    before, peak = memory["trivial"]
    rows = [
        f"A step: {TRIPLES} triples of a query and two passages of 60 to 100 words of examples/, "
        f"all-MiniLM-L6-v2 in fp32, spans of 1 to {MAX_WORDS} words. Medians of {ROUNDS} rounds in "
        f"turns. Each peak is that of a process of its own; {before / 1024:,.0f} MiB of it were "
        "resident before the first step (Python, torch, the model).",
        "",
        "| step | peak resident memory | ratio | above the model | ratio | time | ratio |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, label in LOSSES.items():
        own_before, own_peak = memory[name]
        grown = own_peak - own_before
        rows.append(
            f"| {label} | {own_peak / 1024:,.0f} MiB | {own_peak / peak:.2f} "
            f"| {grown / 1024:,.0f} MiB | {grown / (peak - before):.2f} "
            f"| {1000 * medians[name]:,.0f} ms | {medians[name] / medians['trivial']:.2f} |"
        )
    return rows


def steps() -> dict[str, Callable[[], None]]:
    """Return a training step, forward and backward, for each of `LOSSES`."""
    import torch

    from slice_os.exporters.checkpoint import load_checkpoint

    torch.set_num_threads(os.cpu_count() or 1)
    checkpoint = load_checkpoint(minilm())
    queries, texts = _batch()
    losses = {"trivial": _trivial(), "best_spans": _best_spans, "naive": _naive}

    def step(loss: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
        asked, _ = _words(checkpoint, queries)
        words, counts = _words(checkpoint, texts)
        units = torch.nn.functional.normalize(asked.sum(1), dim=1)
        torch.autograd.backward(loss(units, words, counts))
        checkpoint.model.zero_grad()

    return {name: partial(step, loss) for name, loss in losses.items()}


def _batch() -> tuple[list[list[str]], list[list[str]]]:
    """Return the queries' words, and the passages': first those that answer, then the others."""
    rng = random.Random(0)
    long = [words for text in passages(10**9) if len(words := text.split()) >= 60]
    texts = [words[: rng.randint(60, 100)] for words in long[: 2 * TRIPLES]]
    queries = []
    for words in texts[:TRIPLES]:
        start = rng.randrange(len(words) - 8)
        queries.append(words[start : start + rng.randint(3, 8)])
    return queries, texts


def _words(checkpoint: Any, texts: list[list[str]]) -> tuple[Tensor, Tensor]:
    """Return the sums of each word's token vectors, ``[B, N, d]``, and the counts of words."""
    import torch

    encoded = checkpoint.tokenizer(
        texts, is_split_into_words=True, padding=True, return_tensors="pt"
    )
    hidden = checkpoint.model(**encoded).last_hidden_state
    most = max(len(text) for text in texts)
    owners = torch.tensor(
        [
            [most if word is None else word for word in encoded.word_ids(row)]
            for row in range(len(texts))
        ]
    )
    sums = hidden.new_zeros(len(texts), most + 1, hidden.shape[2])
    sums = sums.scatter_add(1, owners[:, :, None].expand_as(hidden), hidden)
    return sums[:, :most], torch.tensor([len(text) for text in texts])


def _trivial() -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Return the loss that sums the vectors times a constant tensor."""
    import torch

    constants: dict[torch.Size, Tensor] = {}

    def constant(vectors: Tensor) -> Tensor:
        if vectors.shape not in constants:
            constants[vectors.shape] = torch.randn_like(vectors, requires_grad=False)
        return constants[vectors.shape]

    return lambda queries, words, counts: (
        (queries * constant(queries)).sum() + (words * constant(words)).sum()
    )


def _best_spans(queries: Tensor, words: Tensor, counts: Tensor) -> Tensor:
    from slice_os.lab.train.losses import best_spans, slice_loss

    best = best_spans(queries.repeat(2, 1), words, counts, range(1, MAX_WORDS + 1))
    return slice_loss(best.cosines[:TRIPLES], best.cosines[TRIPLES:])


def _naive(queries: Tensor, words: Tensor, counts: Tensor) -> Tensor:
    import torch

    from slice_os.lab.train.losses import slice_loss

    sums = torch.nn.functional.pad(words.cumsum(1), (0, 0, 1, 0))
    places = torch.arange(sums.shape[1])
    spans = torch.cat([sums[:, n:] - sums[:, :-n] for n in range(1, MAX_WORDS + 1)], dim=1)
    ends = torch.cat([places[n:] for n in range(1, MAX_WORDS + 1)])
    units = torch.nn.functional.normalize(spans, dim=2)
    cosines = torch.einsum("bsd,bd->bs", units, queries.repeat(2, 1))
    best = cosines.masked_fill(ends > counts[:, None], -torch.inf).amax(1)
    return slice_loss(best[:TRIPLES], best[TRIPLES:])


def _memory(name: str) -> tuple[int, int]:
    """Return a process's resident memory before the first step and at its peak, in KiB."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, name], capture_output=True, text=True, check=True
    )
    before, peak = map(int, done.stdout.split())
    return before, peak

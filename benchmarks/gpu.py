"""A GPU: parity and speed of exports on it, and how fast encoders are trained there.

Everything fits into ten minutes, the last training run in what is left of them. Without CUDA in
onnxruntime (the package onnxruntime-gpu) the rows of exports are left out, and the section says so.
The export of all-MiniLM-L6-v2 in fp16 is made elsewhere, where the extra `export` is:

    slice-os export CHECKPOINT FOLDER --precision fp16
    make bench ONLY=gpu BENCHMARK_GPU_FP16=FOLDER
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

import slice_os
from benchmarks.text import EXAMPLES, passages
from benchmarks.timing import seconds
from benchmarks.weights import minilm
from slice_os.encoders import Encoder, load_encoder
from slice_os.lab.train.run import TrainingProgress
from slice_os.types import Float32

TITLE = "On a GPU"
NEEDS = "a GPU that torch sees"
DEVICE = os.environ.get("BENCHMARK_GPU_DEVICE", "cuda")
"""cpu: to see that everything runs."""
FP16 = os.environ.get("BENCHMARK_GPU_FP16", "")
WORDS = int(os.environ.get("BENCHMARK_GPU_WORDS", "300000"))
BUDGET = float(os.environ.get("BENCHMARK_GPU_SECONDS", "540"))
PARITY_TEXTS = 500
ROUNDS = 3
STEPS = 20
SAFE = 0.6
"""The share of the time left that the last run is planned for: it has more to learn from."""
RECIPE = """
name = "gpu"
base = "checkpoint"
steps = {steps}
save_every = 500
precision = "{precision}"
[[text]]
path = "text"
[distillation]
[ranking]
weight = 2.0
"""
JUDGED = """
[[pairs]]
path = "sts/stsb-train.tsv"
weight = 2.0
[development]
pairs = "sts/stsb-dev.tsv"
every = 500
"""


def run(data: Path | None) -> list[str]:
    """Measure; with `data`, the last run learns from its texts and from STS-B."""
    import onnxruntime as ort
    import torch

    if DEVICE == "cuda" and not torch.cuda.is_available():
        return []
    began = time.monotonic()
    runs_exports = DEVICE == "cpu" or "CUDAExecutionProvider" in ort.get_available_providers()
    rows: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "checkpoint").symlink_to(minilm())
        texts = passages(WORDS)
        words = sum(len(text.split()) for text in texts)
        if runs_exports:
            rows |= _exports(folder, texts, words)
        rows |= _training(folder, began, data)
    card = torch.cuda.get_device_name() if DEVICE == "cuda" else "the processor, for a trial"
    return [
        f"{card}, torch {torch.__version__}, onnxruntime {ort.__version__}; all-MiniLM-L6-v2, "
        f"{words:,} words of examples/; medians of {ROUNDS} by turns.",
        "" if runs_exports else "\nExports were not run: this onnxruntime has no CUDA.\n",
        "| what | |",
        "|---|---:|",
        *(f"| {name} | {value} |" for name, value in rows.items()),
    ]


def _exports(folder: Path, texts: list[str], words: int) -> dict[str, str]:
    """Return how exports agree with torch, and how fast they are beside sentence-transformers."""
    from sentence_transformers import SentenceTransformer

    peer = SentenceTransformer(minilm(), device=DEVICE)
    if DEVICE == "cuda":
        peer.half()
    rows = {}
    compared: dict[str, tuple[Encoder, Encoder]] = {
        "int8": (load_encoder(None, DEVICE), load_encoder(None, "cpu"))
    }
    if FP16:
        checkpoint = load_encoder(folder / "checkpoint", DEVICE)
        compared["fp16"] = load_encoder(FP16, DEVICE), checkpoint
    for precision, (encoder, other) in compared.items():
        cosines = (_spans(encoder, texts) * _spans(other, texts)).sum(axis=1)
        against = "torch in fp32" if precision == "fp16" else "int8 on the processor"
        rows[f"spans of {precision} against {against}, mean and least cosine"] = (
            f"{cosines.mean():.4f}, {cosines.min():.4f}"
        )
        other.close()
    rates: dict[str, list[float]] = {name: [] for name in ("peer", *compared)}
    for _ in range(ROUNDS):
        rates["peer"].append(words / seconds(partial(peer.encode, texts, batch_size=128)))
        for precision, (encoder, _) in compared.items():
            rates[precision].append(words / seconds(partial(_all_words, encoder, texts)))
    theirs = statistics.median(rates["peer"])
    rows["sentence-transformers, a vector a passage, words/s"] = f"{theirs:,.0f}"
    for precision, (encoder, _) in compared.items():
        ours = statistics.median(rates[precision])
        rows[f"{precision}, every word's vector, words/s"] = f"{ours:,.0f} ({ours / theirs:.1f} ×)"
        encoder.close()
    return rows


def _all_words(encoder: Encoder, texts: list[str]) -> None:
    """Encode texts to the vectors of their words."""
    for _ in encoder.encode_words(texts):
        pass


def _spans(encoder: Encoder, texts: list[str]) -> Float32:
    """Return the unit vectors of a span of 5 words of each text, float32 ``[n, d]``."""
    words = encoder.encode_words(texts[:PARITY_TEXTS])
    sums: Float32 = np.stack([text.vectors[:5].sum(axis=0) for text in words])
    unit: Float32 = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    return unit


def _training(folder: Path, began: float, data: Path | None) -> dict[str, str]:
    """Return the pace of training, and how far a run came in what was left of the time."""
    texts = data / "text" if data else EXAMPLES / "conversations"
    (folder / "text").symlink_to(texts.absolute())
    rows = {}
    for precision in ("fp32", "bf16"):
        recipe = folder / f"{precision}.toml"
        recipe.write_text(RECIPE.format(steps=STEPS, precision=precision), encoding="utf-8")
        times: list[float] = []

        def tick(report: TrainingProgress, times: list[float] = times) -> None:
            times.append(time.perf_counter())

        slice_os.train(recipe, folder / precision, device=DEVICE, progress=tick)
        pace = 1 / statistics.median(np.diff(times))
        rows[f"steps of 24 passages a second, {precision}"] = f"{pace:.2f}"
    left = BUDGET - (time.monotonic() - began)
    steps = max(STEPS, int(SAFE * pace * left))
    made = RECIPE.format(steps=steps, precision="bf16")
    if data:
        (folder / "sts").symlink_to((data / "sts").absolute())
        made += JUDGED
    recipe.write_text(made, encoding="utf-8")
    report = slice_os.train(recipe, folder / "long", device=DEVICE)
    measured = ", ".join(f"{name} {value:.3f}" for name, value in report.measures.items())
    rows["steps of the longest run that fits"] = f"{report.steps:,}"
    rows["its best step's measures"] = measured or "none: no data was given"
    return rows

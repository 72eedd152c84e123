"""Readers of the phrase tasks' published files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slice_os.calibration.lines import numbered_lines, open_bytes
from slice_os.errors import EvaluationError


@dataclass(frozen=True, slots=True)
class PhrasePair:
    """Two phrases and their similarity: a score, or 1 and 0 for yes and no.

    `contexts` are sentences that contain the phrases, where a set has them.
    """

    first: str
    second: str
    score: float
    contexts: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """A bigram and the words to choose from; the first is the answer, then its two components."""

    phrase: str
    choices: tuple[str, ...]


def read_bird(path: Path) -> list[PhrasePair]:
    """Read BiRD (Asaadi et al. 2019): tab-separated, with ``term1``, ``term2`` and a score."""
    return _some(path, _read_table(path, "BiRD", ("term1", "term2", "relatedness score")))


def read_turney(path: Path) -> list[Choice]:
    """Read Turney (2012): ``bigram | answer | component | component | ...`` a line."""
    found = []
    for number, text in numbered_lines(path):
        fields = [part.strip() for part in text.split("|")]
        if len(fields) < 5 or not all(fields):
            raise EvaluationError(
                f"{path}, line {number}, is not a bigram, its answer, two components and other "
                "words, separated by |: give the published file."
            )
        found.append(Choice(fields[0], tuple(fields[1:])))
    return _some(path, found)


def read_ppdb(path: Path) -> list[PhrasePair]:
    """Read PPDB pairs: ``phrase|||phrase|||score`` a line, scores from 1 to 5."""
    pairs = []
    for number, text in numbered_lines(path):
        fields = [part.strip() for part in text.split("|||")]
        try:
            first, second, score = fields
            pairs.append(PhrasePair(first, second, _number(score, 0, 5)))
        except ValueError as exc:
            raise EvaluationError(
                f"{path}, line {number}, is not phrase|||phrase|||score (to 5): correct it."
            ) from exc
    return _some(path, pairs)


def read_pic(path: Path) -> list[PhrasePair]:
    """Read PiC phrase similarity (Pham et al. 2023): JSON, label positive or negative."""
    try:
        with open_bytes(path) as stream:
            rows = json.loads(stream.read())["data"]
        return _some(
            path,
            [
                PhrasePair(
                    row["phrase1"],
                    row["phrase2"],
                    float({"positive": 1, "negative": 0}[str(row["label"]).lower()]),
                    (row["sentence1"], row["sentence2"]),
                )
                for row in rows
            ],
        )
    except (ValueError, KeyError, TypeError) as exc:
        raise EvaluationError(
            f"{path} is not PiC-PS's JSON ({type(exc).__name__}: {exc}): give the published file."
        ) from exc


def read_paws(path: Path, max_words: int = 10) -> list[PhrasePair]:
    """Read PAWS (Zhang et al. 2019): TSV with sentence1, sentence2, label; short pairs alone."""
    pairs = _read_table(path, "PAWS", ("sentence1", "sentence2", "label"))
    short = [
        pair
        for pair in pairs
        if max(len(pair.first.split()), len(pair.second.split())) <= max_words
    ]
    return _some(path, short)


def _read_table(path: Path, name: str, columns: tuple[str, str, str]) -> list[PhrasePair]:
    """Read a tab-separated file with a header; quotes mean nothing, scores are from 0 to 1."""
    header: list[str] = []
    pairs = []
    for number, text in numbered_lines(path):
        values = text.split("\t")
        if not header:
            header = values
            continue
        row = dict(zip(header, values, strict=False))
        try:
            first, second, score = (row[column] for column in columns)
            pairs.append(PhrasePair(first, second, _number(score, 0, 1)))
        except (KeyError, ValueError) as exc:
            raise EvaluationError(
                f"{path}, line {number}, has not the columns {', '.join(columns)} (0 to 1) of "
                f"{name}: give the published file."
            ) from exc
    return pairs


def _number(text: str, low: float, high: float) -> float:
    number = float(text)
    if not low <= number <= high:
        raise ValueError(text)
    return number


def _some(path: Path, found: list[Any]) -> list[Any]:
    if not found:
        raise EvaluationError(f"{path} holds nothing to measure: give the published file.")
    return found


FILES: Mapping[str, tuple[str, Callable[[Path], list[Any]]]] = {
    "bird": ("bird.txt", read_bird),
    "turney": ("turney.txt", read_turney),
    "ppdb-train": ("ppdb-train.txt", read_ppdb),
    "ppdb-dev": ("ppdb-dev.txt", read_ppdb),
    "ppdb-test": ("ppdb-test.txt", read_ppdb),
    "paws": ("paws.tsv", read_paws),
    "pic-train": ("pic-ps-train.json", read_pic),
    "pic-dev": ("pic-ps-dev.json", read_pic),
}
"""Set -> the name of its file in a folder, and its reader."""

"""Sampling of batches: a pure function of the recipe's seed and the step's number.

So a killed run resumes with the batches that it would have had.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from slice_os.calibration.rows import read_unquoted
from slice_os.corpus import read
from slice_os.errors import CorpusError, TrainingError
from slice_os.text import split

FEWEST = 5
"""A passage of fewer words is not drawn."""
FILLERS = (1, 3)
"""How many other texts stand around the one that counts: from, to."""


@dataclass(frozen=True, slots=True)
class ScoredPair:
    """Two texts and their similarity, from 0 to 1."""

    first: str
    second: str
    likeness: float


class Passages:
    """Passages of `words` words (a range) of plain text, in memory, to draw from."""

    def __init__(self, sources: Sequence[tuple[Path, float]], words: tuple[int, int]) -> None:
        """Read `sources`, paths with their weights."""
        self._words = words
        self._texts: list[list[str]] = []
        for path, _ in sources:
            try:
                texts = [
                    passage.text
                    for document in read(str(path))
                    for passage in split(document, words[1])
                    if len(passage.text.split()) >= FEWEST
                ]
            except CorpusError as exc:
                raise TrainingError(f"The text {path} cannot be used: {exc}") from exc
            if not texts:
                raise TrainingError(
                    f"{path} holds no passage of {FEWEST} words or more: give other text."
                )
            self._texts.append(texts)
        weights = np.array([weight for _, weight in sources])
        self._shares = weights / weights.sum()

    def __len__(self) -> int:
        return sum(map(len, self._texts))

    def draw(self, rng: np.random.Generator, count: int) -> list[str]:
        """Return `count` passages; lengths vary as the recipe's range says."""
        drawn = []
        for source in rng.choice(len(self._texts), count, p=self._shares):
            text = self._texts[source][rng.integers(len(self._texts[source]))]
            words = text.split(" ")
            most = int(rng.integers(self._words[0], self._words[1] + 1))
            drawn.append(" ".join(words[:most]) if len(words) > most else text)
        return drawn

    def draw_run(self, rng: np.random.Generator, count: int) -> list[str]:
        """Return up to `count` neighbouring passages, most often of one document.

        All are cut to one length of the recipe's range.
        """
        texts = self._texts[int(rng.choice(len(self._texts), p=self._shares))]
        start = int(rng.integers(max(1, len(texts) - count + 1)))
        most = int(rng.integers(self._words[0], self._words[1] + 1))
        return [" ".join(text.split(" ")[:most]) for text in texts[start : start + count]]


def read_pairs(path: Path, most: float = 5.0) -> list[ScoredPair]:
    """Read a TSV file with the columns ``score``, ``sentence1`` and ``sentence2``.

    Args:
        path: The file, with a header; quotes mean nothing.
        most: The maximum score.
    """
    rows = read_unquoted(path, ("sentence1", "sentence2", "score"), (0, most))
    return [ScoredPair(first, second, score / most) for first, second, score in rows]


def place(rng: np.random.Generator, target: str, fillers: Sequence[str]) -> str:
    """Return a passage that contains `target` among `fillers`."""
    before = int(rng.integers(len(fillers) + 1))
    head = "".join(f"{_ended(text)} " for text in fillers[:before])
    tail = "".join(f" {_ended(text)}" for text in fillers[before:])
    return f"{head}{_ended(target)}{tail}"


def _ended(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


def spans_of(
    rng: np.random.Generator, counts: Sequence[int], spans: int, short: float
) -> list[tuple[int, int, int]]:
    """Return random spans ``(row, i, j)`` of passages of `counts` words, `spans` a passage.

    A share of `short` has one to five words, evenly; the others have six to twenty.
    """
    drawn = []
    for row, count in enumerate(counts):
        for _ in range(spans if count else 0):
            length = int(rng.integers(1, 6) if rng.random() < short else rng.integers(6, 21))
            length = min(length, count)
            start = int(rng.integers(count - length + 1))
            drawn.append((row, start, start + length))
    return drawn

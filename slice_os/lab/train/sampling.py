"""Sampling of batches: a pure function of the recipe's seed and the step's number.

So a killed run resumes with the batches that it would have had.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from slice_os.corpus import read
from slice_os.corpus.data_files import numbered_lines, read_unquoted
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


class Triple(NamedTuple):
    """A query, a passage that answers it, a passage that does not."""

    query: str
    positive: str
    negative: str


def read_triples(path: str | Path) -> Iterator[Triple]:
    """Yield the triples of a file with rows ``query<TAB>positive<TAB>negative``.

    A name that ends in ``.gz`` is unpacked. Rows are read as they are asked for, so memory does not
    grow with the file. Errors come when the row that has them is asked for.

    Raises:
        EvaluationError: The file is missing, empty or not text.
        TrainingError: A row has not three fields with text.
    """
    for number, row in numbered_lines(Path(path), newline="\n"):
        fields = row.split("\t")
        if len(fields) != 3 or not all(map(str.strip, fields)):
            raise TrainingError(
                f"{path}, line {number}, is not query<TAB>positive<TAB>negative, as in MS MARCO's "
                "triples.train.small.tsv: correct it or remove it."
            )
        yield Triple(*map(str.strip, fields))


class TripleBatches:
    """A file's triples, `batch` at a time, in order and again from the start at its end."""

    def __init__(self, path: Path, batch: int, process: int = 0, processes: int = 1) -> None:
        """Open `path`; of so many processes that take batches this is number `process`."""
        self._path = path
        self._batch = batch
        self._process, self._processes = process, processes
        self._rows = read_triples(path)

    def skip(self, batches: int) -> None:
        """Leave out so many batches."""
        for _ in range(batches):
            self.take()

    def take(self) -> list[Triple]:
        """Return this process's share of as many rows as all processes take."""
        rows = self._batch * self._processes
        batch = list(islice(self._rows, rows))
        while len(batch) < rows:
            self._rows = read_triples(self._path)
            batch += islice(self._rows, rows - len(batch))
        # In one piece: a process that accumulates has the same triples side by side in a batch.
        start = self._process * self._batch
        return batch[start : start + self._batch]


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

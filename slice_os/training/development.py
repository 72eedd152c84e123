"""What is measured on the way: pairs of known similarity, alone and inside passages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from slice_os.corpus import count_words
from slice_os.encoder.words import WordMap
from slice_os.records import Float32
from slice_os.spans import (
    best_span,
    fit_window,
    full_range,
    length_window,
    pick,
    span_cosines,
    span_norms,
    verified_degrees,
)
from slice_os.spans.scores import word_scores
from slice_os.training.sampling import Pair, place, read_pairs
from slice_os.training.student import Student

FILLERS = (1, 3)
"""How many other sentences stand around the one that counts: from, to."""
BATCH = 32


class DevelopmentSet:
    """Pairs, and for each a passage that says its second text among other pairs' sentences.

    The fillers of a passage come from the same file, unlike enough to both texts to say something
    else: words in common would let them pass for the text itself.
    """

    def __init__(
        self, path: Path, rows: int, seed: int = 0, fillers: tuple[int, int] = FILLERS
    ) -> None:
        """Read `path` and make the passages, each with `fillers` (from, to) other sentences.

        Raises:
            TrainingError: `path` is not a file of pairs.
        """
        rng = np.random.default_rng([seed, 1])
        pairs = read_pairs(path)
        order = rng.permutation(len(pairs))[:rows]
        self.pairs: list[Pair] = [pairs[k] for k in order]
        texts = sorted({text for pair in pairs for text in (pair.first, pair.second)})
        self.passages: list[str] = []
        for pair in self.pairs:
            others: list[str] = []
            count = rng.integers(fillers[0], fillers[1] + 1)
            while len(others) < count:
                text = texts[rng.integers(len(texts))]
                if len(texts) < 50 or not _alike(text, pair):
                    others.append(text)
            self.passages.append(place(rng, pair.second, others)[0])

    def measure(self, student: Student) -> dict[str, float]:
        """Return Pearson correlations with the pairs' likeness.

        `alone` is of the two texts; `single` of the first and the best span of any length of the
        passage; `window` of the best span within the query's length window; `verified` of the best
        of that window's first spans encoded alone, as a search verifies; `mean`, of the last two,
        decides which step is the best.

        """
        from scipy.stats import pearsonr

        queries = _encode(student, [pair.first for pair in self.pairs])
        targets = _encode(student, [pair.second for pair in self.pairs])
        gold = [pair.likeness for pair in self.pairs]
        found: dict[str, list[float]] = {"single": [], "window": [], "verified": []}
        found["alone"] = np.einsum("nd,nd->n", queries, targets).tolist()
        said: list[str] = []
        ends = []
        for pair, query, passage in zip(
            self.pairs, queries, _words(student, self.passages), strict=True
        ):
            text, at, words = passage
            norms = span_norms(words, 20)
            window = fit_window(length_window(count_words(pair.first)), len(words))
            scores = word_scores(words, query)
            for name, lengths in (("single", full_range()), ("window", window)):
                cosines = span_cosines(scores, norms, lengths)
                found[name].append(best_span(cosines, lengths).cosine)
            spans = pick(cosines, window)
            said += [text[at.starts[span.i] : at.ends[span.j - 1]] for span in spans]
            ends.append(len(said))
        alone = _encode(student, said)
        for query, start, end in zip(queries, [0, *ends], ends, strict=False):
            found["verified"].append(float(verified_degrees(query, alone[start:end]).max()))
        measures = {name: float(pearsonr(one, gold)[0]) for name, one in found.items()}
        measures["mean"] = (measures["verified"] + measures["window"]) / 2
        return {name: round(value, 4) for name, value in measures.items()}


def _alike(text: str, pair: Pair) -> bool:
    words = set(text.lower().split())
    return any(
        len(words & set(other.lower().split())) > len(words) / 2
        for other in (pair.first, pair.second)
    )


def _encode(student: Student, texts: Sequence[str]) -> Float32:
    import torch

    with torch.no_grad():
        vectors: Float32 = student.encode(texts).cpu().numpy()
    return vectors


def _words(student: Student, texts: Sequence[str]) -> list[tuple[str, WordMap, Float32]]:
    """Return of each text what was read of it, its words' places and their vectors."""
    import torch

    order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
    found: dict[int, tuple[str, WordMap, Float32]] = {}
    for start in range(0, len(order), BATCH):
        rows = order[start : start + BATCH]
        with torch.no_grad():
            batch = student.words([texts[row] for row in rows])
        for k, row in enumerate(rows):
            vectors = batch.vectors[k, : int(batch.counts[k])].cpu().numpy()
            found[row] = batch.texts[k].text, batch.texts[k].words, vectors
    return [found[row] for row in range(len(texts))]

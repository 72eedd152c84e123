"""The development set: pairs of known similarity, alone and inside passages."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from slice_os.errors import TrainingError
from slice_os.exporters.pooled import CheckpointEncoder
from slice_os.lab.evaluate.scorers import Encoded, rescored, single_pass, target_alone, window
from slice_os.lab.evaluate.significance import correlate
from slice_os.lab.train.sampling import FILLERS, ScoredPair, place, read_pairs
from slice_os.lab.train.student import Student

MEASURES = {
    "alone": target_alone,
    "single": single_pass,
    "window": window,
    "rescored": rescored,
}


TRIES = 200
"""Texts that are looked at for those that stand around one."""


class DevelopmentSet:
    """Pairs, and for each a passage that contains its second text among other pairs' sentences.

    The fillers of a passage come from the same file, unlike enough to both texts to say something
    else: words in common would let them pass for the text itself.
    """

    def __init__(
        self, path: Path, rows: int, seed: int = 0, fillers: tuple[int, int] = FILLERS
    ) -> None:
        """Read `path` and make the passages, each with `fillers` (from, to) other sentences.

        Raises:
            TrainingError: `path` is not a file of pairs, or they have too few scores.
        """
        rng = np.random.default_rng([seed, 1])
        pairs = read_pairs(path)
        if rows < 3 or len({pair.likeness for pair in pairs}) < 3:
            raise TrainingError(
                f"{path} is measured by correlation: give at least three pairs of different scores."
            )
        order = rng.permutation(len(pairs))[:rows]
        self.pairs: list[ScoredPair] = [pairs[k] for k in order]
        texts = sorted({text for pair in pairs for text in (pair.first, pair.second)})
        self.passages: list[str] = []
        for pair in self.pairs:
            others: list[str] = []
            count = rng.integers(fillers[0], fillers[1] + 1)
            tries = 0
            while len(others) < count:
                text = texts[rng.integers(len(texts))]
                tries += 1
                # Where all texts are made of the same words, any other text has to do.
                if len(texts) < 50 or tries > TRIES or not _alike(text, pair):
                    others.append(text)
            self.passages.append(place(rng, pair.second, others))

    def measure(self, student: Student) -> dict[str, float]:
        """Return Pearson correlations of the scorers with the likeness.

        `alone` is of the two texts; `single` of the first and the best span of any length of the
        passage; `window` of the best span within the query's length window; `rescored` of the best
        of that window's first spans encoded alone, as a search verifies; `mean`, of the last two,
        decides which step is the best.
        """
        encoded = Encoded(
            CheckpointEncoder(student),
            [pair.first for pair in self.pairs],
            self.passages,
            [pair.second for pair in self.pairs],
            lambda scorer, done, of: None,
        )
        gold = [pair.likeness for pair in self.pairs]
        measures = {
            name: correlate(scores(encoded), gold).pearson for name, scores in MEASURES.items()
        }
        measures["mean"] = (measures["rescored"] + measures["window"]) / 2
        return {name: round(value, 4) for name, value in measures.items()}


def _alike(text: str, pair: ScoredPair) -> bool:
    words = set(text.lower().split())
    return any(
        len(words & set(other.lower().split())) > len(words) / 2
        for other in (pair.first, pair.second)
    )

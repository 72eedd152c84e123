"""What a judge learns: of pairs of texts, whether one says the opposite of the other, and how."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from slice_os.encoders.judge import KINDS, Placed, opposed
from slice_os.errors import TrainingError
from slice_os.lab.evaluate.degrees import read_opposites
from slice_os.lab.train.recipe import Judge
from slice_os.lab.train.sampling import read_pairs
from slice_os.lab.train.student import Objective, Student
from slice_os.types import Float32

FEW = 64
"""Pairs that are judged at once when measured."""
TOLD = 0.5
"""How often a judge is told what rules say, so that it learns to see for itself, too."""
ALIKE = 0.9
"""From this likeness on, people say that two texts are the same."""


class Pair(NamedTuple):
    """A query, a span, and which of `KINDS` may be said of them: bool ``[8]``."""

    query: str
    placed: Placed
    said: npt.NDArray[np.bool_]


def read_judge_pairs(path: Path, without: Sequence[str] = ()) -> list[Pair]:
    """Return the pairs of a file that `recipes/judge_pairs.py` wrote, less those of some kinds.

    Raises:
        TrainingError: A line is not such a pair, or none is left.
    """
    pairs = []
    with path.open(encoding="utf-8") as stream:
        for number, line in enumerate(stream, 1):
            try:
                row: dict[str, Any] = json.loads(line)
                said = np.zeros(len(KINDS), bool)
                said[[KINDS.index(one) for one in row["said"]]] = True
                pair = Pair(str(row["query"]), Placed(**row["placed"]), said)
            except (ValueError, KeyError, TypeError, IndexError) as exc:
                raise TrainingError(
                    f"{path}, line {number}, is no pair for a judge ({exc}): write the file with "
                    "recipes/judge_pairs.py."
                ) from exc
            if row["said"] != ["same"] and set(row["said"]) <= {*without}:
                continue
            pairs.append(pair)
    if not pairs:
        raise TrainingError(f"{path} holds no pair of another kind: give another file.")
    return pairs


class Judging(Objective):
    """The cross-entropy of what may be said of pairs; of several words any will do."""

    def __init__(self, settings: Judge, root: Path) -> None:
        """Read the data.

        Raises:
            TrainingError: The file cannot be used.
        """
        self._batch = settings.batch
        self._pairs = read_judge_pairs(root / settings.pairs, settings.without)

    def losses(self, student: Student, rng: np.random.Generator) -> Mapping[str, Tensor]:
        """Return the loss of pairs drawn with `rng`."""
        drawn = [self._pairs[k] for k in rng.integers(len(self._pairs), size=self._batch)]
        told = (rng.random(self._batch) < TOLD).tolist()
        logits = student.judge([(pair.query, pair.placed) for pair in drawn], told)
        said = torch.from_numpy(np.stack([pair.said for pair in drawn])).to(logits.device)
        student.seen = student.seen + sum(len(pair.query.split()) for pair in drawn)
        of_these = logits.masked_fill(~said, -torch.inf).logsumexp(dim=1)
        return {"judged": (logits.logsumexp(dim=1) - of_these).mean()}


class JudgeDevelopment:
    """Rated pairs, and phrases with a paraphrase and an opposite."""

    def __init__(self, pairs: Path, opposites: Path | None, rows: int) -> None:
        """Read the files.

        Raises:
            TrainingError: A file cannot be used.
            EvaluationError: The file of opposites is not such a file.
        """
        alike = [pair for pair in read_pairs(pairs) if pair.likeness >= ALIKE][:rows]
        self._alike = [(pair.first, pair.second) for pair in alike]
        texts = read_opposites(opposites)[0] if opposites else []
        self._kept, self._opposites = (
            list(zip(texts[::3], texts[at::3], strict=True)) for at in (1, 2)
        )

    def measure(self, student: Student) -> dict[str, float]:
        """Return how sure a judge is, on average.

        `alike` that pairs which people find the same are no opposites, `kept` that paraphrases are
        none, `seen` that opposites are; `mean` is of them.
        """
        measures = {}
        for name, pairs in (
            ("alike", self._alike),
            ("kept", self._kept),
            ("seen", self._opposites),
        ):
            if pairs:
                found = self._opposed(student, pairs)
                measures[name] = float((found if name == "seen" else 1 - found).mean())
        measures["mean"] = float(np.mean([*measures.values()]))
        return {name: round(value, 4) for name, value in measures.items()}

    def _opposed(self, student: Student, pairs: Sequence[tuple[str, str]]) -> Float32:
        asked = [(query, Placed(said)) for query, said in pairs]
        with torch.no_grad():
            parts = [student.judge(asked[at : at + FEW]).cpu() for at in range(0, len(asked), FEW)]
        return opposed(torch.cat(parts).numpy())

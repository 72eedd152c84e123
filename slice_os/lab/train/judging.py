"""What a judge learns: the order of what says a query and what does not, and rated pairs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from slice_os.encoders import Encoder
from slice_os.encoders.judge import Placed
from slice_os.encoders.model_judge import SHIFT, Calibration
from slice_os.errors import TrainingError
from slice_os.lab.evaluate.degrees import read_opposites
from slice_os.lab.evaluate.significance import correlate
from slice_os.lab.train.recipe import Judge
from slice_os.lab.train.sampling import ScoredPair, read_pairs
from slice_os.lab.train.student import Objective, Student
from slice_os.spans import degree
from slice_os.types import Float32

ORDERED = ("contradiction", "intent", "other")
"""Kinds of negatives that are only to be below their positives, wherever those are."""
FEW = 64
"""Pairs that are judged at once when measured."""


class Row(NamedTuple):
    """A query, a span that says it, and one that does not, which differs in one kind of thing."""

    kind: str
    query: str
    positive: Placed
    negative: Placed


def read_judge_rows(path: Path, without: Sequence[str] = ()) -> list[Row]:
    """Return the rows of a file that `recipes/judge_rows.py` wrote, less those of some kinds.

    Raises:
        TrainingError: A line is not such a row, or none is left.
    """
    rows = []
    with path.open(encoding="utf-8") as stream:
        for number, line in enumerate(stream, 1):
            try:
                said: dict[str, Any] = json.loads(line)
                row = Row(
                    str(said["kind"]),
                    str(said["query"]),
                    Placed(**said["positive"]),
                    Placed(**said["negative"]),
                )
            except (ValueError, KeyError, TypeError) as exc:
                raise TrainingError(
                    f"{path}, line {number}, is no row of a judge ({exc}): write the file with "
                    "recipes/judge_rows.py."
                ) from exc
            if row.kind not in without:
                rows.append(row)
    if not rows:
        raise TrainingError(f"{path} holds no row of another kind: give another file.")
    return rows


def calibrated(pairs: Sequence[ScoredPair], degrees: Float32, weights_hash: str) -> Calibration:
    """Return what makes the verified degrees of rated pairs nearest to people's ratings.

    Cross-entropy with the ratings is minimised, without a judge: z is 0. `weights_hash` is of the
    encoder.
    """
    rated = torch.tensor([pair.likeness for pair in pairs])
    said = torch.from_numpy(degrees)
    weights = torch.zeros(2, requires_grad=True)
    # Degrees are centred, or slope and intercept hang together and converge slowly.
    centre = float(said.mean())
    optimizer = torch.optim.LBFGS([weights], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        logits = 10 * weights[0] * (said - centre) + weights[1]
        found = functional.binary_cross_entropy_with_logits(logits, rated)
        found.backward()  # type: ignore[no-untyped-call]
        return found

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    slope, shift = (10 * weights[0]).item(), weights[1].item()
    return Calibration(weights_hash, slope, shift - slope * centre)


def alone(encoder: Encoder, pairs: Sequence[tuple[str, str]]) -> Float32:
    """Return the degrees of pairs of texts that are encoded alone, float32 ``[n]``."""
    texts = dict.fromkeys(text for pair in pairs for text in pair)
    rows = {text: row for row, text in enumerate(texts)}
    vectors = encoder.encode(list(rows))
    own = [[rows[text] for text in side] for side in zip(*pairs, strict=True)]
    found: Float32 = degree((vectors[own[0]] * vectors[own[1]]).sum(axis=1)).astype(np.float32)
    return found


class Judging(Objective):
    """Rows' order, opposites' highest degree, and rated pairs' ratings.

    With l the logit of a judged degree, its loss is softplus(margin - (l+ - l-)) for the order,
    softplus(l- - logit(highest)) for opposites, by how much what says the query is lowered, and
    the cross-entropy of rated pairs.
    """

    def __init__(self, settings: Judge, root: Path, encoder: Encoder) -> None:
        """Read the data.

        Raises:
            TrainingError: A file cannot be used.
        """
        self._settings = settings
        self._encoder = encoder
        self._rows = read_judge_rows(root / settings.rows, settings.without)
        self._pairs = read_pairs(root / settings.pairs, settings.most)
        self._said = alone(encoder, [(pair.first, pair.second) for pair in self._pairs])
        self.calibration = calibrated(self._pairs, self._said, encoder.info.weights_hash)

    def losses(self, student: Student, rng: np.random.Generator) -> Mapping[str, Tensor]:
        """Return the weighted losses of rows and pairs drawn with `rng`."""
        wanted = self._settings
        rows = [self._rows[k] for k in rng.integers(len(self._rows), size=wanted.batch)]
        drawn = rng.integers(len(self._pairs), size=wanted.rated)
        rated = [self._pairs[k] for k in drawn]
        asked = [(row.query, row.positive) for row in rows]
        asked += [(row.query, row.negative) for row in rows]
        verified = alone(self._encoder, [(query, placed.span) for query, placed in asked])
        asked += [(pair.first, Placed(pair.second)) for pair in rated]
        lowered, logits = self._logits(student, asked, np.append(verified, self._said[drawn]))
        count = len(rows)
        above, below, alike = logits[:count], logits[count : 2 * count], logits[2 * count :]
        opposite = torch.tensor([row.kind not in ORDERED for row in rows], device=logits.device)
        limit = float(np.log(wanted.highest / (1 - wanted.highest)))
        likeness = torch.tensor([pair.likeness for pair in rated], device=logits.device)
        return {
            "order": functional.softplus(wanted.margin - (above - below)).mean(),
            "opposite": (functional.softplus(below - limit) * opposite).mean(),
            "kept": wanted.kept * lowered[:count].mean(),
            "rated": wanted.weight * functional.binary_cross_entropy_with_logits(alike, likeness),
        }

    def logits(self, student: Student, asked: Sequence[tuple[str, Placed]]) -> Tensor:
        """Return the logits of judged degrees, float32 ``[n]``."""
        verified = alone(self._encoder, [(query, placed.span) for query, placed in asked])
        return self._logits(student, asked, verified)[1]

    def _logits(
        self, student: Student, asked: Sequence[tuple[str, Placed]], verified: Float32
    ) -> tuple[Tensor, Tensor]:
        """Return by how much the model lowers logits, and those of judged degrees, ``[n]`` each."""
        own = self.calibration
        lowered = functional.softplus(student.judge(asked) - SHIFT)
        base = own.slope * torch.from_numpy(verified) + own.intercept
        student.seen = student.seen + sum(len(query.split()) for query, _ in asked)
        return lowered, base.to(lowered.device) - lowered


class JudgeDevelopment:
    """Rated pairs, and phrases with a paraphrase and an opposite."""

    def __init__(self, judging: Judging, pairs: Path, opposites: Path | None, rows: int) -> None:
        """Read the files.

        Raises:
            TrainingError: A file cannot be used.
            EvaluationError: The file of opposites is not such a file.
        """
        self._judging = judging
        self._pairs = read_pairs(pairs)[:rows]
        self._texts = read_opposites(opposites)[0] if opposites else []

    def measure(self, student: Student) -> dict[str, float]:
        """Return Pearson's correlation with ratings, and the share of paraphrases above opposites.

        Both are of judged degrees; `mean` is of both.
        """
        rated = [(pair.first, Placed(pair.second)) for pair in self._pairs]
        found = self._degrees(student, rated)
        measures = {
            "rated": correlate(found.tolist(), [pair.likeness for pair in self._pairs]).pearson
        }
        if texts := self._texts:
            said, against = (
                self._degrees(
                    student, list(zip(texts[::3], map(Placed, texts[at::3]), strict=True))
                )
                for at in (1, 2)
            )
            measures["above"] = float((said > against).mean())
        measures["mean"] = float(np.mean([*measures.values()]))
        return {name: round(value, 4) for name, value in measures.items()}

    def _degrees(self, student: Student, asked: Sequence[tuple[str, Placed]]) -> Float32:
        with torch.no_grad():
            parts = [
                self._judging.logits(student, asked[at : at + FEW]).cpu()
                for at in range(0, len(asked), FEW)
            ]
        found: Float32 = torch.cat(parts).sigmoid().numpy()
        return found

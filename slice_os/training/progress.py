"""What a run tells on the way and at its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is: `losses` are of the last step, `rate` is in words a second.

    `measures` are of the best weights so far, none before the first measuring.
    """

    step: int
    steps: int
    losses: Mapping[str, float]
    rate: float
    measures: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """What a run made: `checkpoint` is the folder to export, `measures` are of its weights."""

    checkpoint: Path
    step: int
    steps: int
    measures: Mapping[str, float]

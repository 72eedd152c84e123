"""What gives a step its loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from slice_os.training.student import Student


class Objective(ABC):
    """A part of a step's loss; `slice_os.training.objectives.objectives_of` makes it."""

    @abstractmethod
    def losses(self, student: Student, rng: np.random.Generator) -> Mapping[str, Tensor]:
        """Return weighted losses by name, of a batch drawn with `rng`."""

    def skip(self, steps: int) -> None:  # noqa: B027 - most batches are drawn: nothing to pass over
        """Pass over what `steps` steps have seen, if it is read in order."""

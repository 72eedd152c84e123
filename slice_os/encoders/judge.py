"""What a judge is: it compares a query and a span word by word, for what vectors cannot tell apart.

A span's verified degree compares two vectors that were made apart, so "wants to cancel" and "does
not want to cancel" are nearly one. `judges` loads one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating[Any]]
Self = TypeVar("Self", bound="Judge")  # in typing since Python 3.11


class Placed(NamedTuple):
    """A span, and the words of its sentence just before and after it."""

    span: str
    before: str = ""
    after: str = ""


class Judge(ABC):
    """What has the last word on verified degrees; a context manager that closes it."""

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:  # noqa: B027
        """Stop what it has running."""

    @abstractmethod
    def degrees(self, pairs: Sequence[tuple[str, Placed]], verified: Floats) -> Floats:
        """Return the judged degrees ``[n]`` of pairs with these verified ones.

        What a pair is given does not depend on its company.
        """

    def reasons(self, pairs: Sequence[tuple[str, Placed]]) -> list[tuple[str, ...]]:
        """Return what it has against each pair, such as "negation"; nothing if it cannot say."""
        return [()] * len(pairs)

    @abstractmethod
    def least(self, judged: float) -> float:
        """Return the verified degree below which no judged degree reaches `judged`."""

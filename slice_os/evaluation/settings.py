"""Settings of a search, written in short: `dense`, `hybrid:saturation:0.3`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast, get_args

from slice_os.backends.base import Mode
from slice_os.errors import EvaluationError, QueryError
from slice_os.fusion import FUSIONS, LATE, get_fusion
from slice_os.search import is_reranked

ALL_LENGTHS = "all-lengths"
LATE_PART = "late="
TAKES: Mapping[str, Sequence[str]] = {
    "lexical": ["all_lengths"],
    "dense": ["all_lengths", "late"],
}
"""What the modes take in which nothing is fused."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A way to search: a label and what `Index.search` is called with."""

    label: str
    mode: Mode = "hybrid"
    fusion: str = "saturation"
    weight: float | None = None
    all_lengths: bool = False
    late: float = LATE

    def __post_init__(self) -> None:
        """Raise EvaluationError unless a search takes these arguments."""
        if self.mode not in get_args(Mode):
            raise EvaluationError(
                f"The setting {self.label!r} has no mode: begin it with one of "
                f"{', '.join(get_args(Mode))}."
            )
        try:
            get_fusion(self.fusion, self.weight)
        except QueryError as exc:
            raise EvaluationError(f"The setting {self.label!r} is not usable: {exc}") from exc
        if not 0 <= self.late <= 1:
            raise EvaluationError(
                f"The setting {self.label!r} is not usable: {LATE_PART} must be from 0 to 1."
            )
        if self.late != LATE and not is_reranked(self.mode, self.fusion):
            raise EvaluationError(
                f"The setting {self.label!r} is not usable: {LATE_PART} is for the mode dense and "
                "the fusion saturation."
            )

    @property
    def arguments(self) -> dict[str, Any]:
        """The keyword arguments of `Index.search`; nothing is verified, which changes no score."""
        return {
            "mode": self.mode,
            "fusion": self.fusion,
            "weight": self.weight,
            "all_lengths": self.all_lengths,
            "late": self.late,
            "verify": 0,
        }


def parse_setting(text: str) -> Setting:
    """Read a mode, then in any order a fusion, its weight, ``late=`` and ``all-lengths``.

    Raises:
        EvaluationError: A part is none of these, or the fusion does not take the weight.
    """
    mode, *parts = text.split(":")
    found: dict[str, Any] = {}
    for part in parts:
        name, value = _part(part)
        if not name or name in found or name not in TAKES.get(mode, [name]):
            raise EvaluationError(
                f"The setting {text!r} cannot have {part!r} there: write a mode, after 'hybrid' a "
                f"fusion ({', '.join(FUSIONS)}) and a weight from 0 to 1, '{LATE_PART}' and a "
                f"share from 0 to 1, and {ALL_LENGTHS!r}, each once, with colons between."
            )
        found[name] = value
    return Setting(text, cast(Mode, mode), **found)


def _part(part: str) -> tuple[str, Any]:
    if part == ALL_LENGTHS:
        return "all_lengths", True
    if part in FUSIONS:
        return "fusion", part
    name = "late" if part.startswith(LATE_PART) else "weight"
    try:
        return name, float(part.removeprefix(LATE_PART))
    except ValueError:
        return "", None


SETTINGS = (
    "lexical",
    "dense",
    "dense:late=0",
    "dense:all-lengths",
    *(f"hybrid:saturation:{weight}" for weight in (0.2, 0.3, 0.4, 0.5)),
    "hybrid:saturation:0.2:late=0",
    "hybrid:saturation:0.3:all-lengths",
    *(f"hybrid:min_max:{weight}" for weight in (0.3, 0.5)),
    "hybrid:rrf",
)
"""What is compared unless told otherwise: the defaults of a search were chosen among these."""

"""Settings of a search, in short `dense` or `hybrid:saturation:0.3`, and rankings by them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from slice_os.api import Index
from slice_os.engine import is_reranked
from slice_os.errors import EvaluationError, QueryError
from slice_os.lab.evaluate.collections import Run
from slice_os.options import SearchOptions
from slice_os.storage.contract import Mode
from slice_os.storage.fusion import FUSIONS, LATE

ALL_LENGTHS = "all-lengths"
PASSAGES = 1000
"""Maximum passages read for a query's documents; a hybrid search has no more."""
LATE_PART = "late="
TAKES: Mapping[str, Sequence[str]] = {
    "lexical": ["all_lengths"],
    "dense": ["all_lengths", "late"],
}
"""Parts that a mode without fusion takes."""


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
        try:
            SearchOptions.of(**self.arguments)
        except QueryError as exc:
            raise EvaluationError(f"The setting {self.label!r} is not usable: {exc}") from exc
        if self.late != LATE and not is_reranked(self.mode, self.fusion):
            raise EvaluationError(
                f"The setting {self.label!r} is not usable: {LATE_PART} is for the mode dense and "
                "the fusion saturation."
            )

    @property
    def arguments(self) -> dict[str, Any]:
        """The keyword arguments of `Index.search`; nothing is rescored, which changes no score."""
        return {
            "mode": self.mode,
            "fusion": self.fusion,
            "weight": self.weight,
            "all_lengths": self.all_lengths,
            "late": self.late,
            "rescore": 0,
        }


def parse_setting(text: str) -> Setting:
    """Parse a mode, then in any order a fusion, its weight, ``late=`` and ``all-lengths``."""
    mode, *parts = text.split(":")
    options: dict[str, Any] = {}
    for part in parts:
        name, value = _part(part)
        if not name or name in options or name not in TAKES.get(mode, [name]):
            raise EvaluationError(
                f"The setting {text!r} cannot have {part!r} there: write a mode, after 'hybrid' a "
                f"fusion ({', '.join(FUSIONS)}) and a weight from 0 to 1, '{LATE_PART}' and a "
                f"share from 0 to 1, and {ALL_LENGTHS!r}, each once, with colons between."
            )
        options[name] = value
    return Setting(text, cast(Mode, mode), **options)


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
"""The settings compared by default, among which the defaults of a search were chosen."""


def search_queries(
    index: Index,
    queries: Mapping[str, str],
    setting: Setting,
    depth: int,
    progress: Callable[[str, int, int], object],
    warn: Callable[[str], object],
) -> Run:
    """Rank the documents for every query; one that the encoder cannot encode finds none."""
    run: Run = {}
    unknown: list[str] = []
    for number, (query, text) in enumerate(queries.items()):
        progress(setting.label, number, len(queries))
        try:
            run[query] = rank_documents(index, text, setting, depth)
        except QueryError:  # the setting is sound, so the query holds no word for the encoder
            run[query] = {}
            unknown.append(query)
    progress(setting.label, len(queries), len(queries))
    if unknown:
        warn(
            f"{setting.label}: queries without a word that the encoder knows count as zero: "
            f"{len(unknown)}, {unknown[0]!r} for one."
        )
    return run


def rank_documents(index: Index, query: str, setting: Setting, depth: int) -> dict[str, float]:
    """Return `depth` documents, each with its best passage's score, in the order they are found.

    Fewer where the best 1,000 passages belong to fewer.
    """
    best: dict[str, float] = {}
    for offset in range(0, PASSAGES, depth):
        size = min(depth, PASSAGES - offset)
        hits = index.search(query, size=size, offset=offset, literal=True, **setting.arguments)
        for hit in hits:
            best[hit.document] = max(hit.score, best.get(hit.document, hit.score))
        if len(hits) < size or len(best) >= depth:
            break
    return dict(list(best.items())[:depth])

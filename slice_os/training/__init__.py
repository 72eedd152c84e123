"""Training: a checkpoint becomes an encoder whose span vectors say what the span says.

Importing this loads no torch; names are looked up when they are used. The function `best_spans` is
imported from its module, which has the same name.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from slice_os.errors import MissingExtraError

if TYPE_CHECKING:
    from slice_os.training.best_spans import BestSpans
    from slice_os.training.objective import in_batch_loss, slice_loss
    from slice_os.training.progress import Progress, TrainingReport
    from slice_os.training.starting import train
    from slice_os.training.triples import Triple, read_triples

_HOMES = {
    "BestSpans": "best_spans",
    "Progress": "progress",
    "TrainingReport": "progress",
    "train": "starting",
    "Triple": "triples",
    "in_batch_loss": "objective",
    "read_triples": "triples",
    "slice_loss": "objective",
}

__all__ = [
    "BestSpans",
    "Progress",
    "TrainingReport",
    "Triple",
    "in_batch_loss",
    "read_triples",
    "slice_loss",
    "train",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'slice_os.training' has no attribute {name!r}")
    try:
        home = import_module(f"slice_os.training.{_HOMES[name]}")
    except ModuleNotFoundError as exc:
        if exc.name not in ("torch", "accelerate", "msgspec"):
            raise
        raise MissingExtraError("Training an encoder", "train") from exc
    return getattr(home, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])

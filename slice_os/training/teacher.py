"""The frozen encoder that a student learns from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from slice_os.encoder import load_encoder
from slice_os.encoder.info import DESCRIPTION
from slice_os.exporters.pooled import CheckpointEncoder
from slice_os.records import Float32


class Teacher(Protocol):
    """What turns texts into unit vectors."""

    def encode(self, texts: Sequence[str]) -> Float32:
        """Return the unit vectors of `texts`, float32 ``[n, d]``."""


def load_teacher(folder: Path, device: str = "cpu") -> Teacher:
    """Load an encoder folder or, where there is no `encoder.json`, a checkpoint.

    Args:
        folder: Where it is.
        device: Of torch: where a checkpoint runs; an encoder runs on a GPU only if that is one.

    Raises:
        EncoderError: The encoder folder is not usable.
        ExportError: The checkpoint is not usable.
    """
    if (folder / DESCRIPTION).is_file():
        return load_encoder(folder, "cpu" if device == "cpu" else "auto")
    return CheckpointEncoder.load(folder, device)

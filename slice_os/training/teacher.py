"""The frozen encoder that a student learns from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Protocol

from slice_os.encoder import load_encoder
from slice_os.encoder.info import DESCRIPTION
from slice_os.exporters.checkpoint import load_checkpoint
from slice_os.records import Float32, Words
from slice_os.training.student import Student

BATCH = 32
"""Texts whose words are encoded at once."""


class Teacher(Protocol):
    """What turns texts into unit vectors."""

    def encode(self, texts: Sequence[str]) -> Float32:
        """Return the unit vectors of `texts`, float32 ``[n, d]``."""


class Frozen:
    """A checkpoint that does not learn."""

    def __init__(self, folder: Path, device: str = "cpu") -> None:
        """Load the checkpoint in `folder`."""
        self._student = Student(load_checkpoint(folder))
        self._student.model.requires_grad_(False).to(device)

    def encode(self, texts: Sequence[str]) -> Float32:
        """Return the unit vectors of `texts`, float32 ``[n, d]``."""
        import torch

        with torch.no_grad():
            vectors: Float32 = self._student.encode(texts).cpu().numpy()
        return vectors

    def encode_words(self, texts: Iterable[str]) -> Iterator[Words]:
        """Yield the words of each text with their vectors, in order."""
        import torch

        rest = iter(texts)
        while batch := list(islice(rest, BATCH)):
            with torch.no_grad():
                found = self._student.words(batch)
            for text, count, vectors in zip(found.texts, found.counts, found.vectors, strict=True):
                words = slice(int(count))
                own: Float32 = vectors[words].cpu().numpy()
                yield Words(text.words.starts[words], text.words.ends[words], own)


def load_teacher(folder: Path, device: str = "cpu") -> Teacher:
    """Load an encoder folder or, where there is no `encoder.json`, a checkpoint.

    Raises:
        EncoderError: The encoder folder is not usable.
        ExportError: The checkpoint is not usable.
    """
    if (folder / DESCRIPTION).is_file():
        return load_encoder(folder, "auto")
    return Frozen(folder, device)

"""Encoders that are measured one after the other, to be compared."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import cast

from slice_os.encoders import Encoder, EncoderLike, open_encoder


def listed(encoder: EncoderLike | Sequence[EncoderLike]) -> list[EncoderLike]:
    """Return what was given as an encoder, or as several."""
    if isinstance(encoder, list | tuple):
        return list(encoder)
    return [cast(EncoderLike, encoder)]


def open_each(encoders: Sequence[EncoderLike], device: str) -> Iterator[tuple[str, Encoder]]:
    """Yield a name for each encoder, no name twice, and the encoder, open till the next one."""
    names: list[str] = []
    for location in encoders:
        with open_encoder(location, device) as loaded:
            name = str(location) if isinstance(location, str | os.PathLike) else loaded.info.name
            names.append(name if name not in names else f"{name} ({len(names) + 1})")
            yield names[-1], loaded

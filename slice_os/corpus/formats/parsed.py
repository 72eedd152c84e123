"""What a format gives for a whole file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parsed:
    """A file's text and title; `broken` places of it were not of its encoding."""

    text: str
    title: str = ""
    broken: int = 0

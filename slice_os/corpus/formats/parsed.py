"""What a format gives for a whole file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parsed:
    """A file's text and title; `broken` places of it were not of its encoding.

    `says`: the title, author and date are what the file itself says, which makes them metadata.
    """

    text: str
    title: str = ""
    broken: int = 0
    author: str = ""
    date: str = ""
    says: bool = False

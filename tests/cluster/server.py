"""What differs between the servers that test clusters are made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar


@dataclass(frozen=True)
class Server(ABC):
    """A server of one version.

    Attributes:
        name: Of the server, of its configuration file, and of its profile in pom.xml.
        artifacts: A folder of the home -> the artifacts of Maven whose closure it holds.
        managers: The setting that names the first managers of a cluster.
        files: What else decides what is in the home.
    """

    version: str
    name: ClassVar[str]
    artifacts: ClassVar[Mapping[str, Sequence[tuple[str, str, str]]]]
    managers: ClassVar[str]
    files: ClassVar[Sequence[Path]]

    @property
    def title(self) -> str:
        """What to call it."""
        return f"{self.name} {self.version}"

    @abstractmethod
    def finish(self, home: Path) -> None:
        """Make a home that Maven has filled ready to run."""

    @abstractmethod
    def command(self, home: Path, folder: Path) -> list[str]:
        """Return the arguments of `java` for a node in a folder."""

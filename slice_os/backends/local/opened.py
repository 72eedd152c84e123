"""Reading the file of a database that this process may have open.

SQLite's locks are POSIX's: closing any handle of a file drops all that the process has on it. Then
the next process that closes the database takes itself for the last, and deletes the log that this
one still reads and writes (https://www.sqlite.org/howtocorrupt.html, 2.2). So a file that was
opened to be read stays open as long as this process has a connection to any database.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import BinaryIO

from slice_os.threads import Forkable

BLOCK = 1 << 20


class _Opened(Forkable):
    """How many connections and readers this process has, and the files that wait for their end."""

    def __init__(self) -> None:
        self.users = 0
        self._files: dict[tuple[int, int], list[BinaryIO]] = defaultdict(list)
        self._one = Lock()
        self.watch_forks()

    def forked(self) -> None:
        """Begin with a lock that no thread holds."""
        self._one = Lock()

    def begin(self) -> None:
        """Count a user."""
        with self._one:
            self.users += 1

    def end(self) -> None:
        """Count one less; after the last, close all files."""
        with self._one:
            self.users -= 1
            if self.users == 0:
                for stream in chain.from_iterable(self._files.values()):
                    stream.close()
                self._files.clear()

    def take(self, file: Path) -> BinaryIO:
        """Return a file, opened before or now, at its beginning."""
        said = file.stat()
        with self._one:
            idle = self._files[said.st_dev, said.st_ino]
            stream = idle.pop() if idle else file.open("rb")
        stream.seek(0)
        return stream

    def keep(self, stream: BinaryIO) -> None:
        """Keep a file open for the next."""
        said = os.fstat(stream.fileno())
        with self._one:
            self._files[said.st_dev, said.st_ino].append(stream)


_opened = _Opened()
connection_begins, connection_ends = _opened.begin, _opened.end


def file_blocks(file: Path) -> Iterator[bytes]:
    """Yield what a file holds."""
    _opened.begin()
    try:
        stream = _opened.take(file)
        try:
            while some := stream.read(BLOCK):
                yield some
        finally:
            _opened.keep(stream)
    finally:
        _opened.end()

"""Reading the file of a database that this process may have open.

SQLite's locks are POSIX's: closing any handle of a file drops all that the process has on it. Then
the next process that closes the database takes itself for the last, and deletes the log that this
one still reads and writes (https://www.sqlite.org/howtocorrupt.html, 2.2). So a file that was
opened to be read stays open as long as this process has a connection to it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import BinaryIO

from slice_os.threads import Forkable

BLOCK = 1 << 20


Key = tuple[int, int]
"""The device and the number of a file."""


class _Opened(Forkable):
    """How many connections and readers a file has here, and the handles that wait for their end."""

    def __init__(self) -> None:
        self._users: Counter[Key] = Counter()
        self._files: dict[Key, list[BinaryIO]] = defaultdict(list)
        self._one = Lock()
        self.watch_forks()

    def forked(self) -> None:
        """Begin with a lock that no thread holds."""
        self._one = Lock()

    def begin(self, file: Path) -> Key:
        """Count a user of a file; `end` takes what this returns."""
        said = file.stat()
        key = said.st_dev, said.st_ino
        with self._one:
            self._users[key] += 1
        return key

    def end(self, key: Key) -> None:
        """Count one less; after the last, close the file."""
        with self._one:
            self._users[key] -= 1
            if not self._users[key]:
                del self._users[key]
                for stream in self._files.pop(key, ()):
                    stream.close()

    def take(self, file: Path, key: Key) -> BinaryIO:
        """Return a file, opened before or now, at its beginning."""
        with self._one:
            idle = self._files[key]
            stream = idle.pop() if idle else file.open("rb")
        stream.seek(0)
        return stream

    def keep(self, stream: BinaryIO, key: Key) -> None:
        """Keep a file open for the next."""
        with self._one:
            self._files[key].append(stream)


_opened = _Opened()
connection_begins, connection_ends = _opened.begin, _opened.end


def file_blocks(file: Path) -> Iterator[bytes]:
    """Yield what a file holds."""
    key = _opened.begin(file)
    try:
        stream = _opened.take(file, key)
        try:
            while some := stream.read(BLOCK):
                yield some
        finally:
            _opened.keep(stream, key)
    finally:
        _opened.end(key)

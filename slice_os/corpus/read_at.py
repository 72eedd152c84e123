"""Files of which only some bytes are read at a time, from wherever they are."""

from __future__ import annotations

import io
from typing import Any


class ReadAt(io.RawIOBase):
    """A file that can be read at any place; a subclass sets `_size` and gives its bytes."""

    _at = 0
    _size = 0

    def _read_at(self, at: int, size: int) -> bytes:
        """Return `size` bytes from `at` on, which the file has."""
        raise NotImplementedError

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the place that is read next."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Read from another place next, and return it."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Read as many bytes as fit, or are left, and return how many."""
        wanted = max(0, min(len(buffer), self._size - self._at))
        if wanted:
            buffer[:wanted] = self._read_at(self._at, wanted)
            self._at += wanted
        return wanted

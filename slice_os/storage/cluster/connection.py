"""The HTTP connections to a cluster: opensearch-py's, with limits of size and time.

urllib3 limits the time between two bytes; here a whole answer has a limit too.
"""

from __future__ import annotations

import http.client
import io
from time import monotonic
from types import SimpleNamespace
from typing import Any

from opensearchpy import Urllib3HttpConnection

from slice_os.storage.cluster.cluster_errors import OversizedError

LARGEST_ANSWER = 200_000_000
"""Bytes of an answer, unpacked: what slice-os asks for is far smaller."""
PATIENCE = 3
"""A whole answer may take so many times as long as its next byte."""
_PIECE = 1 << 20


class LimitedConnection(Urllib3HttpConnection):
    """Gives up an answer that is too large, or that comes too slowly."""

    def _create_urllib3_pool(self) -> None:
        super()._create_urllib3_pool()
        kind = self.pool.ConnectionCls
        self.pool.ConnectionCls = type(kind.__name__, (kind,), {"response_class": _Response})
        urlopen = self.pool.urlopen

        def limited(*args: Any, **options: Any) -> Any:
            answer = urlopen(*args, preload_content=False, **options)
            try:
                data = _read(answer)
            except BaseException:
                answer.close()  # what is left of it must not be read as the next answer
                raise
            answer.release_conn()
            return SimpleNamespace(data=data, status=answer.status, headers=answer.headers)

        self.pool.urlopen = limited


def _read(answer: Any) -> bytearray:
    data = bytearray()
    for piece in answer.stream(_PIECE):
        data += piece
        if len(data) > LARGEST_ANSWER:
            raise OversizedError(f"it answers more than {LARGEST_ANSWER:,} bytes")
    return data


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: Any, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        if timeout := sock.gettimeout():
            raw = self.fp.detach()
            self.fp = io.BufferedReader(_Timed(raw, monotonic() + PATIENCE * timeout))


class _Timed(io.RawIOBase):
    """Reads from a socket until a moment."""

    def __init__(self, raw: io.RawIOBase, until: float) -> None:
        self._raw, self._until = raw, until

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if monotonic() > self._until:
            raise TimeoutError("the answer comes too slowly")
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()

"""HTTP/1.1 as uvicorn speaks it, but not for clients that never say what they want."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

HEADER_SECONDS = 15.0
"""Seconds in which a new connection has to send the head of a request."""


class ImpatientProtocol(H11Protocol):
    """A connection that is closed unless the head of its first request comes in time.

    uvicorn has a limit between two requests, and none before the first.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait."""
        super().connection_made(transport)
        self._waiting = self.loop.call_later(HEADER_SECONDS, self._left)

    def _left(self) -> None:
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        if cycle is None:
            self.transport.close()

    def eof_received(self) -> None:
        """Let go of a client that is gone amid an answer, though it has not taken what was sent."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.response_complete:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._waiting.cancel()
        super().connection_lost(exc)

"""What every request passes before an endpoint sees it, and every answer on its way back."""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from slice_os.answers import to_json
from slice_os.options import ServeOptions
from slice_os.server.failures import RequestError, failure, status_of

if TYPE_CHECKING:
    from slice_os.server.metrics import Metrics

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]
BODY_SECONDS = 15.0
"""Seconds in which the body of a request has to come."""
GRACE = 10.0
"""Seconds that a request has beyond its limit to say itself that it is over."""
GUARDED = ("/api", "/v1", "/mcp", "/metrics", "/openapi.json")
"""What needs the token, if there is one: all but the page and whether the server is alive."""
LARGER = {"/api/parquet": 32}
"""Paths of which a body may be so many times as large; of these one is taken at a time."""
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
}
_log = logging.getLogger("slice_os.server")


class Guard:
    """An ASGI application around another: limits, the token, headers, the log, errors.

    Args:
        app: What answers.
        limits: The options of the server.
        token: What a client must show, if anything.
        hosts: Names by which the server may be asked for; none: by any.
        metrics: What counts requests, if anything.
    """

    def __init__(
        self,
        app: App,
        limits: ServeOptions,
        token: str,
        hosts: frozenset[str],
        metrics: Metrics | None = None,
    ) -> None:
        self._app, self._limits, self._hosts, self._metrics = app, limits, hosts, metrics
        self._token = token.encode()
        self._large = asyncio.Lock()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            with suppress(asyncio.CancelledError):  # by a second Ctrl-C
                await self._app(scope, receive, partial(_without_trace, send))
            return
        request = _Request(scope, receive, send)
        began = time.perf_counter()
        try:
            self._check(scope)
            times = LARGER.get(scope["path"], 1)
            async with self._large if times > 1 else nullcontext():
                await request.read(times * self._limits.max_body)
                await request.answer(self._app, self._limits.max_seconds)
        except asyncio.CancelledError:  # the server ends, and has waited for long
            await request.fail(RequestError("The server was stopped: ask again later.", 503))
        except Exception as exc:
            await request.fail(exc)
        self._note(scope, request.status, time.perf_counter() - began)

    def _check(self, scope: MutableMapping[str, Any]) -> None:
        """Raise RequestError unless a request may be answered."""
        headers = dict(scope["headers"])
        path: str = scope["path"]
        if "\0" in path:
            raise RequestError("The path holds a NUL: leave it out.")
        host = headers.get(b"host", b"").decode("latin-1")
        if self._hosts and _name(host) not in self._hosts:
            raise RequestError(
                "The Host of this request is none of this server's names",
                421,
                hint="ask http://127.0.0.1, or start the server with --allow-host NAME.",
            )
        if self._token and path.startswith(GUARDED):
            kind, _, given = headers.get(b"authorization", b"").partition(b" ")
            if kind.lower() != b"bearer" or not hmac.compare_digest(given.strip(), self._token):
                raise RequestError(
                    "This server needs its token",
                    401,
                    hint="send the header 'Authorization: Bearer TOKEN'.",
                )
        if scope["method"] != "POST":
            return
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != b"application/json":  # which a page from elsewhere cannot send unasked
            raise RequestError(
                "A request's body must be JSON",
                415,
                hint="send the header 'Content-Type: application/json'.",
            )

    def _note(self, scope: MutableMapping[str, Any], status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "") or "other"
        if self._metrics:
            self._metrics.requests.labels(route, str(status)).inc()
            self._metrics.seconds.labels(route).observe(seconds)
        path = scope.get("raw_path", b"").partition(b"?")[0].decode("latin-1")[:200]
        line = f"{scope['method']} {path} {status or 'gone'} {seconds * 1e3:.0f} ms"
        asked = scope.get("state", {}).get("asked")
        if self._limits.log_queries and asked:
            line = f"{line} {to_json(asked)}"
        _log.info("%s", line)


class _Request:
    """One request: its body, read whole, and what has been said to it so far.

    Attributes:
        status: That of the answer; 0 if there was none, since the client was gone.
    """

    def __init__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._to_client = scope, receive, send
        self._body: bytes | None = b""
        self._gone = asyncio.Event()
        self.status = 0

    async def read(self, most: int) -> None:
        """Read the body; RequestError if it is too large or takes too long."""
        length = dict(self._scope["headers"]).get(b"content-length", b"0")
        too_large = RequestError(
            f"The request has more than {most:,} bytes: send less, or several.", 413
        )
        if length.isdigit() and int(length[:20]) > most:
            raise too_large
        parts: list[bytes] = []
        size, more, until = 0, True, time.monotonic() + BODY_SECONDS
        while more:
            try:
                message = await asyncio.wait_for(self._receive(), until - time.monotonic())
            except asyncio.TimeoutError:  # another class before Python 3.11
                raise RequestError(
                    f"The request did not come within {BODY_SECONDS:.0f} seconds.", 408
                ) from None
            if message["type"] == "http.disconnect":
                self._gone.set()
                return
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > most:
                raise too_large
            more = message.get("more_body", False)
        self._body = b"".join(parts)

    async def answer(self, app: App, seconds: int) -> None:
        """Let an application answer; RequestError if it takes too long. It ends with the client."""
        if self._gone.is_set():
            return
        answering = asyncio.ensure_future(app(self._scope, self._given, self._send))
        watching = asyncio.ensure_future(self._watch())
        try:
            done, _ = await asyncio.wait(
                (answering, watching), timeout=seconds + GRACE, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            watching.cancel()
            while not answering.done():  # again, where something swallows it
                answering.cancel()
                await asyncio.wait([answering], timeout=1)
        if not answering.cancelled():
            await answering
        if not done:
            raise RequestError(f"This took longer than {seconds:,} seconds: ask for less.", 503)

    async def _watch(self) -> None:
        """Wait until the client is gone."""
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._gone.set()

    async def _given(self) -> Message:
        """Give the application the body, and then, when the client is gone, that it is."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = list(message.get("headers", ()))
            own = {**HEADERS, "cache-control": "no-store"}
            if any(name.lower() == b"etag" for name, _ in headers):  # a file of the page
                own["cache-control"] = "no-cache"
            if self.status in (429, 503):
                own["retry-after"] = "5"
            headers += [(name.encode(), value.encode()) for name, value in own.items()]
            message = {**message, "headers": headers}
        try:
            await self._to_client(message)
        except Exception:  # the connection has ended, as where the framing of a body is wrong
            self._gone.set()

    async def fail(self, error: Exception) -> None:
        """Say an error, unless an answer has begun; then the connection ends without its end."""
        if self.status >= 500:  # said already
            return
        answer = failure(error)
        if self.status or self._gone.is_set():
            return
        status, content = status_of(error), to_json(answer).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(content)).encode()),
        ]
        if status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        if status in (408, 413):  # the rest of the body is not read
            headers.append((b"connection", b"close"))
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": content})


async def _without_trace(send: Send, message: Message) -> None:
    """Send what an application says of its own begin and end, but no traceback at its end."""
    if message["type"] == "lifespan.shutdown.failed":
        message = {"type": message["type"]}
    await send(message)


def _name(host: str) -> str:
    """Return a Host without its port."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0].lower()

"""A server in front of a real node that wants TLS and credentials; and servers that are no node."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

Answer = tuple[int, str, bytes]
"""Status, content type and body."""
Gate = Callable[[Mapping[str, str]], Answer | None]
"""Sees the headers of a request: None lets it through."""
PASSED = ("content-type", "content-encoding")


@dataclass
class Request:
    """What a client has sent."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Proxy:
    """Passes requests on to a node; `requests` are those that came, let through or not."""

    upstream: str
    gate: Gate
    context: ssl.SSLContext | None = None
    requests: list[Request] = field(default_factory=list)
    url: str = ""

    def answer(self, request: Request) -> Answer:
        """Return what the client is told."""
        self.requests.append(request)
        if (refused := self.gate(request.headers)) is not None:
            return refused
        node = http.client.HTTPConnection(urlsplit(self.upstream).netloc, timeout=60)
        try:
            headers = {one: request.headers[one] for one in PASSED if one in request.headers}
            node.request(request.method, request.path, request.body or None, headers)
            answer = node.getresponse()
            return answer.status, answer.headers.get("content-type", ""), answer.read()
        finally:
            node.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    proxy: Proxy

    def get_request(self) -> tuple[socket.socket, object]:
        connection, address = super().get_request()
        if self.proxy.context is not None:  # the handshake comes with the first read, in a thread
            connection = self.proxy.context.wrap_socket(
                connection, server_side=True, do_handshake_on_connect=False
            )
        return connection, address

    def handle_error(self, request: object, client_address: object) -> None:
        """Read on after a handshake that failed: else the client may lose the alert."""
        if isinstance(request, ssl.SSLSocket):
            with suppress(OSError), socket.socket(fileno=request.detach()) as raw:
                raw.settimeout(0.3)
                while raw.recv(65_536):
                    pass


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        request = Request(self.command, self.path, self.headers, body)
        status, kind, content = self.server.proxy.answer(request)
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _handle  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def proxied(upstream: str, gate: Gate, context: ssl.SSLContext | None = None) -> Iterator[Proxy]:
    """Run a proxy of a node at a port of its own."""
    proxy = Proxy(upstream, gate, context)
    server = _Server(("127.0.0.1", 0), _Handler)
    server.proxy = proxy
    proxy.url = f"http{'s' if context else ''}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def wants(scheme: str, value: str) -> Gate:
    """Return a gate that lets one ``Authorization`` through, as OpenSearch's own does."""

    def gate(headers: Mapping[str, str]) -> Answer | None:
        given = headers.get("authorization")
        return None if given == f"{scheme} {value}" else (401, "text/plain", b"Unauthorized")

    return gate


@contextmanager
def silent() -> Iterator[str]:
    """Give the address of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def answering(*pieces: bytes, pause: float = 0.0) -> Iterator[str]:
    """Give the address of a server that answers every request with these bytes, slowly."""

    def answer(listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, suppress(OSError):
                    connection.recv(65_536)
                    for piece in pieces:
                        connection.sendall(piece)
                        time.sleep(pause)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer, args=(listener,), daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def closed() -> str:
    """Return an address where nobody listens."""
    with silent() as url:
        return url

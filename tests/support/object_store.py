"""An S3-compatible server (moto's), and one before it that cuts connections off."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def object_store() -> Iterator[str]:
    """Start a server and give its address."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(300):
            with suppress(OSError), urllib.request.urlopen(f"{url}/moto-api/", timeout=5):
                break
            assert server.poll() is None, "the server has ended"
            time.sleep(0.1)
        yield url
    finally:
        server.kill()
        server.wait()


def ask_for_rights(url: str, *, after: float) -> None:
    """Have a server refuse whoever has no rights, `after` so many requests more."""
    request = urllib.request.Request(
        f"{url}/moto-api/reset-auth", str(after).encode(), {"Content-Type": "text/plain"}
    )
    urllib.request.urlopen(request, timeout=10).close()


class Cutter:
    """Passes connections on; those that get more than `most` bytes are cut, `times` times."""

    def __init__(self, port: int, most: int, times: int) -> None:
        self._port, self._most, self.times, self.cut = port, most, times, 0
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Cutter:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                server = socket.create_connection(("127.0.0.1", self._port))
                for source, target, is_answer in ((client, server, False), (server, client, True)):
                    threading.Thread(
                        target=self._pass, args=(source, target, is_answer), daemon=True
                    ).start()

    def _pass(self, source: Any, target: Any, is_answer: bool) -> None:
        passed = 0
        with suppress(OSError):
            while data := source.recv(1 << 16):
                passed += len(data)
                if is_answer and passed > self._most and self.cut < self.times:
                    self.cut += 1
                    break
                target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

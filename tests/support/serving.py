"""A server on a free port, in a thread of this process or in one of its own, and its client."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import uvicorn

from slice_os.server.app import create_app
from slice_os.server.mining import Stopping
from slice_os.server.process import listen
from slice_os.server.protocol import ImpatientProtocol
from slice_os.types import Match

SLICE_OS = str(Path(sys.executable).with_name("slice-os"))
JSON = {"Content-Type": "application/json"}


class Server:
    """A server that runs, as a client sees it."""

    def __init__(self, port, stopping=None):
        self.port, self.stopping = port, stopping
        self.url = f"http://127.0.0.1:{port}"

    def ask(self, method, path, body=None, headers=JSON):
        """Return the status, the headers and the body of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        try:
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def get(self, path, status=200):
        """Return the JSON of what a path answers."""
        code, _, content = self.ask("GET", path)
        assert code == status, content
        return json.loads(content)

    def post(self, path, status=200, **body):
        """Return the JSON of what a body is answered."""
        code, _, content = self.ask("POST", path, body)
        assert code == status, content
        return json.loads(content)

    def mine(self, **body):
        """Return the matches and the last line of a mining."""
        code, headers, content = self.ask("POST", "/api/mine", body)
        assert code == 200, content
        assert headers["content-type"] == "application/x-ndjson"
        lines = [json.loads(line) for line in content.splitlines()]
        return lines[:-1], lines[-1]


@contextmanager
def serving(indexes, **options):
    """Give a server of indexes in a thread."""
    stopping = Stopping()
    app = create_app(indexes, stopping=stopping, **options)
    listening = listen("127.0.0.1", 0)
    server = uvicorn.Server(
        uvicorn.Config(app, http=ImpatientProtocol, ws="none", lifespan="on", log_config=None)
    )
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        yield Server(listening.getsockname()[1], stopping)
    finally:
        server.should_exit = True
        thread.join(60)
        listening.close()
        assert not thread.is_alive()


class Started(subprocess.Popen):
    """A process and the file of its log."""

    log = None


@contextmanager
def started(*arguments, verb="serve", **environment):
    """Give a process that serves, and the server; it is killed if it still runs."""
    with tempfile.TemporaryFile("w+") as log:  # a pipe would be full some time
        process = Started(
            [SLICE_OS, verb, "--port", "0", *map(str, arguments)],
            stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, **environment},
        )  # fmt: skip
        try:
            line = process.stdout.readline()
            assert "http://" in line, read(log)
            process.log = log
            yield process, Server(int(re.search(r":(\d+)/", line)[1]))
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def read(log):
    """Return what a process has written to its log."""
    log.seek(0)
    return log.read()


def end(process, which=signal.SIGTERM):
    """Tell a process to end; return its exit code, its log and how long it took."""
    began = time.monotonic()
    process.send_signal(which)
    process.wait(60)
    return process.returncode, read(process.log), time.monotonic() - began


class Endless:
    """Mining that never ends by itself, and counts who mines and who was let go."""

    def __init__(self):
        self.begun, self.closed, self.given = 0, 0, 0

    def mine(self, phrases, *, on_progress, **options):
        self.begun += 1
        return self._matches(on_progress)

    def _matches(self, on_progress):
        try:
            for n in count():
                on_progress(0.5)
                time.sleep(0.0001)
                self.given += 1
                yield Match("a", "a", "d" * 300, n, 0, 1, "a", 0.9, 0, 1)
        finally:
            self.closed += 1

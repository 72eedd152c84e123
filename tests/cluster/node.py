"""One node of a cluster: its folder, its process, and what may befall it."""

from __future__ import annotations

import http.client
import json
import os
import pwd
import signal
import subprocess
import time
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from .java import ClusterError, as_root
from .watchdog import Watchdog

PATIENCE = 120.0
LOGGING = """\
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d{ISO8601}][%-5p][%c{1.}] %m%n
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
"""
# No proxy of the environment may stand between a test and a node of its own.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Node:
    """A process of a server; `start` after `kill` takes up the same data and ports."""

    process: subprocess.Popen[bytes]

    def __init__(
        self,
        folder: Path,
        command: list[str],
        settings: Mapping[str, object],
        watchdog: Watchdog,
        configuration: str = "node.yml",
    ) -> None:
        self.name = folder.name
        self.folder = folder
        self.log = folder / "node.log"
        self.url = f"http://127.0.0.1:{settings['http.port']}"
        self.paused = False
        self._command = command
        self._watchdog = watchdog
        self._write_folder(settings, configuration)

    @property
    def alive(self) -> bool:
        """Whether the process runs and may answer."""
        return self.process.poll() is None and not self.paused

    def start(self) -> None:
        """Start, and wait until the node answers."""
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Start, and do not wait."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command,
                cwd=self.folder,
                env={**os.environ, "HOME": str(self.folder)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for us: we end the nodes
                **other_user(),
            )
        self._watchdog.tell("+", self.process.pid)

    def wait(self, nodes: int = 1, patience: float = PATIENCE) -> None:
        """Return when the node is in a cluster of at least so many nodes."""
        end = time.monotonic() + patience
        while self._count() < nodes:
            if self.process.poll() is not None:
                raise ClusterError(f"{self.name} ended with {self.process.returncode}: {self.end}")
            if time.monotonic() > end:
                raise ClusterError(f"{self.name} is not ready after {patience:.0f} s: {self.end}")
            time.sleep(0.2)

    @property
    def end(self) -> str:
        """The end of the log."""
        return "its log ends\n" + self.log.read_text(encoding="utf-8", errors="replace")[-4000:]

    def kill(self) -> None:
        """Kill with -9, as a machine that loses its power."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Stop the process: it holds its connections and answers nothing."""
        self.process.send_signal(signal.SIGSTOP)
        self.paused = True

    def resume(self) -> None:
        """Let a paused process go on."""
        self.process.send_signal(signal.SIGCONT)
        self.paused = False

    def terminate(self) -> None:
        """Ask the process to end; `kill` makes sure."""
        if self.process.poll() is None:
            self.resume()
            self.process.terminate()

    def finish(self, patience: float = 10) -> None:
        """Wait for a terminated process, not for ever."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(patience)
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        self.process.send_signal(how)  # does nothing where the process has ended
        self.process.wait()
        self.paused = False
        self._watchdog.tell("-", self.process.pid)

    def _count(self) -> int:
        try:
            with OPENER.open(f"{self.url}/_cluster/health", timeout=5) as answer:
                return int(json.load(answer)["number_of_nodes"])
        except (OSError, http.client.HTTPException):
            return 0

    def _write_folder(self, settings: Mapping[str, object], configuration: str) -> None:
        config = self.folder / "config"
        for folder in (config, self.folder / "data", self.folder / "logs", self.folder / "tmp"):
            folder.mkdir(parents=True)
        # A JSON value is a YAML value.
        lines = [f"{name}: {json.dumps(value)}\n" for name, value in settings.items()]
        (config / configuration).write_text("".join(lines), encoding="utf-8")
        (config / "log4j2.properties").write_text(LOGGING, encoding="utf-8")
        if as_root():
            user = other_user()
            for path in [self.folder, *self.folder.rglob("*")]:
                os.chown(path, user["user"], user["group"])


def other_user() -> dict[str, Any]:
    """Say as whom a node runs: OpenSearch refuses to be root."""
    if not as_root():
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}

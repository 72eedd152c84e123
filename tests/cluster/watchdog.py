"""A process beside a cluster that ends its nodes when the one who started them is gone.

It learns pids from the pipe that is its standard input ("+7" when one starts, "-7" when it has
ended). The pipe ends with its writer, even one killed with -9; then what is left is killed and the
folder removed. (PR_SET_PDEATHSIG would also do, but only on Linux, and it fires when the *thread*
that started a node ends.)
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path


class Watchdog:
    """Tells the process that outlives us which nodes to end."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-IS", __file__, str(folder)],
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # whoever ends our process group spares it
        )

    def tell(self, sign: str, pid: int) -> None:
        """Say that a process has started ("+") or ended ("-")."""
        assert self._process.stdin
        with suppress(BrokenPipeError):  # someone ended it: nodes can still be ended without
            self._process.stdin.write(f"{sign}{pid}\n".encode())
            self._process.stdin.flush()

    def close(self) -> None:
        """Let it end whatever is left, and itself."""
        assert self._process.stdin
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()


def main(folder: str) -> None:
    """Listen until the pipe ends, then clean up."""
    left: set[int] = set()
    for line in sys.stdin:
        (left.add if line[0] == "+" else left.discard)(int(line[1:]))
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    shutil.rmtree(folder, ignore_errors=True)
    if left:  # a dying node may have written while the folder was being removed
        time.sleep(1)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1])

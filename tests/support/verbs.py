"""The command line as users run it, and a node as curl asks it."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

SLICE_OS = Path(sys.executable).with_name("slice-os")
TEXTS = [
    "Good morning. I would like to end my subscription today, please.",
    "The money was sent back to her card, as the shoes were torn.",
    "Could you move me to a seat by the window? I do not like the aisle.",
]


def request(method, url, body=None):
    """Send a body, or lines of several, and return the answer."""
    data = json.dumps(body).encode() if body is not None else None
    if isinstance(body, str):
        data = body.encode()
    headers = {"Content-Type": "application/json"}
    asked = urllib.request.Request(url, data, headers, method=method)
    with urllib.request.urlopen(asked) as answer:
        return json.load(answer)


def run(*arguments, ok=0):
    done = subprocess.run([SLICE_OS, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == ok, done.stderr
    assert "Traceback" not in done.stderr
    return done

"""The command line, and a node as curl asks it."""

from __future__ import annotations

import json
import urllib.request

from click.testing import CliRunner

from slice_os.cli.main import main

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


def run(*arguments, ok=0, **options):
    """Run a verb in this process: to start another for each takes most of their time."""
    done = CliRunner().invoke(main, [*map(str, arguments)], prog_name="slice-os", **options)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == ok, done.output
    assert "Traceback" not in done.output
    return done

"""Requests that mean harm, or nothing: each gets a 4xx, or nothing, and the server goes on.

SLICE_OS_FUZZ says how many there are.
"""

from __future__ import annotations

import json
import os
import random
import socket
import string
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.serving import end, started

CASES = int(os.environ.get("SLICE_OS_FUZZ", "400"))
AT_ONCE = 8
PATHS = [
    "/api/search", "/api/mine", "/api/teach", "/v1/embeddings", "/api/documents", "/api/status",
    "/api/server", "/api/taught", "/api/taught/x", "/api/documents/calls/1", "/", "/page.js",
    "/metrics", "/healthz", "/openapi.json", "/v1/models", "/nothing",
]  # fmt: skip
FIELDS = [
    "query", "phrases", "counter_examples", "size", "offset", "min_degree", "filters", "must",
    "top", "rescore", "mode", "fusion", "index", "taught", "labels", "save", "ask", "liked",
    "context", "input", "model", "weight", "group", "sort", "name", "seed", "min_probability",
    "progress", "nothing", "", "__class__", "constructor",
]  # fmt: skip
VALUES = [
    None, True, False, 0, -1, 1, 3, 10**9, 10**30, 0.5, -0.0, 1e308, "", " ", "a", "to cancel",
    "\0", "\ud800", "\u202e", "'; DROP TABLE documents; --", "../../etc/passwd", "%s%n", "{{7*7}}",
    "NEAR(", '"', '"a', "-", "-a", "*", "a" * 5000, "\U0001f600" * 50, [], {}, [[]], [None], ["a"],
    {"a": "b"}, {"a": ["b", 1]}, {"": ""}, ["a"] * 50, "number>=2", "number in 1,2", "x exists",
    [{"document": "calls/2", "start": 0, "end": 9, "right": True}],
    [{"document": "calls/2", "start": -5, "end": 10**18, "right": False}],
    [{"document": 1, "start": "x"}], "hybrid", "lexical", "rrf", "calls", "slice-english-v2",
]  # fmt: skip
HEADERS = [
    "Content-Length: -1", "Content-Length: 99999999999999999999", "Content-Length: 5",
    "Content-Length: abc", "Transfer-Encoding: chunked", "Transfer-Encoding: gzip",
    "Host: evil.example", "Host:", "Expect: 100-continue", "Upgrade: websocket",
    "Connection: Upgrade", "Authorization: Bearer x", "Cookie: a=b", "X: " + "y" * 20_000,
    "Content-Type: text/html", "Content-Type: application/json; charset=utf-7", "Range: bytes=0-",
    "Content-Encoding: gzip", "Bad header", "\0: \0", "Accept: */*", "Origin: null",
]  # fmt: skip


def fuzzed_json(rng):
    """Return a body: an object of odd values, a damaged one, one far too deep, or noise."""
    kind = rng.random()
    made = {rng.choice(FIELDS): rng.choice(VALUES) for _ in range(rng.randrange(4))}
    if rng.random() < 0.5:
        made["query"] = "cancel"
    text = json.dumps(made).encode()
    if kind < 0.6:
        return text
    if kind < 0.8:
        at = rng.randrange(len(text))
        return text[:at] + bytes([rng.randrange(256)]) + text[at + rng.randrange(3) :]
    if kind < 0.85:
        depth = rng.randrange(100_000)
        return b'{"query":' + b"[" * depth + b"]" * rng.choice([depth, 0])
    if kind < 0.9:
        return b"x" * rng.choice([10, 10_000, 5_000_000])
    return rng.choice([b"", b"null", b"[]", b"1", b'"a"', b"NaN", b"\xff\xfe", b"{}{}", text * 3])


def fuzzed_path(rng):
    path = rng.choice(PATHS)
    kind = rng.random()
    if kind < 0.7:
        return path
    odd = ["..", "%2e%2e", "%00", "%ff", "//", "\\", "%", "%zz", ";", "?at=-1", "?size=9e9", "#"]
    odd += [
        "?index=%00",
        "?filter=" + "a" * 3000,
        "?at=1&at=2",
        "é",
        "a" * 9000,
        "?size=0",
        "%0d%0a",
    ]
    return path + rng.choice(["", "/"]) + "/".join(rng.choices(odd, k=rng.randrange(1, 4)))


def request(rng):
    """Return the bytes of a request."""
    if rng.random() < 0.1:
        return bytes(rng.randrange(256) for _ in range(rng.randrange(200))) + b"\r\n\r\n"
    method = rng.choice(["POST"] * 6 + ["GET"] * 3 + ["PUT", "DELETE", "OPTIONS", "HEAD", "TRACE"])
    body = fuzzed_json(rng) if method == "POST" or rng.random() < 0.1 else b""
    headers = ["Host: 127.0.0.1"] if rng.random() < 0.95 else []
    if body:
        headers += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    if rng.random() < 0.4:
        headers += rng.choices(HEADERS, k=rng.randrange(1, 3))
    version = rng.choice(["HTTP/1.1"] * 20 + ["HTTP/1.0", "HTTP/9.9", "HTTPS", ""])
    head = "\r\n".join([f"{method} {fuzzed_path(rng)} {version}", *headers, "", ""])
    return head.encode() + body


def send(port, seed):
    """Send a request, whole or not; return the status of the answer, None if there was none."""
    rng = random.Random(seed)
    content, leaves = request(rng), rng.random()
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        try:
            if leaves < 0.15:  # goes amid the request
                client.sendall(content[: rng.randrange(len(content))])
                return None
            if leaves < 0.2:  # in pieces
                for at in range(0, len(content), max(1, len(content) // 5)):
                    client.sendall(content[at : at + max(1, len(content) // 5)])
            else:
                client.sendall(content)
            if leaves > 0.9:  # goes amid the answer
                return None
            client.shutdown(socket.SHUT_WR) if leaves > 0.85 else None
            client.settimeout(3 if b"Content-Length: 5" in content or b"chunked" in content else 60)
            answer = client.recv(100_000)
        except (ConnectionError, TimeoutError):
            return None
    assert b"Traceback" not in answer
    assert b'File "' not in answer
    return int(answer.split(b" ")[1]) if answer.startswith(b"HTTP/1.1 ") else None


@pytest.mark.slow
def test_hostile_requests_get_a_4xx_and_the_server_goes_on(location, tmp_path):
    arguments = ("--index", location, "--workspace", tmp_path / "kept", "--max-seconds", 30)
    with started(*arguments) as (process, server), ThreadPoolExecutor(AT_ONCE) as threads:
        statuses = list(threads.map(lambda seed: send(server.port, seed), range(CASES)))
        wrong = [seed for seed, status in enumerate(statuses) if (status or 0) >= 500]
        assert wrong == [], f"seeds {wrong[:10]}: {[statuses[seed] for seed in wrong[:10]]}"
        assert sum(400 <= (status or 0) < 500 for status in statuses) > CASES / 4
        assert server.post("/api/search", query="wants to cancel", size=1)["hits"]
        assert process.poll() is None
        for file in (tmp_path / "kept").rglob("*"):
            assert file.suffix == ".json"
        code, err, _ = end(process)
    assert code == 0
    for trace in ("Traceback", "Unexpected"):
        assert trace not in err, err[err.index(trace) :][:5000]
    printable = set(string.printable)
    assert all(set(line) <= printable for line in err.splitlines())

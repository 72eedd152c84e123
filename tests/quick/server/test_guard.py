"""Who may ask, for how much and how long, and what becomes of those who go or do not listen."""

from __future__ import annotations

import json
import logging
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import openai
import pytest

import slice_os
from slice_os.server import guard, protocol
from slice_os.server.process import listen
from support.serving import JSON, Endless, end, serving, started
from support.verbs import run

ASKED = {"query": "wants to cancel", "size": 1}
HEAD = b"POST /api/mine HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def connected(server):
    """Return a socket to a server whose receiving buffer is small."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(20)
    client.connect(("127.0.0.1", server.port))
    return client


def begin_mining(server, **body):
    """Send a mining and return its socket; nothing is read of it."""
    content = json.dumps({"phrases": "wants to cancel", **body}).encode()
    client = connected(server)
    client.sendall(HEAD + f"Content-Length: {len(content)}\r\n\r\n".encode() + content)
    return client


def script_of(server):
    """Return the name of the page's script."""
    return re.search(r'<script [^>]*src="([^"]+)"', server.ask("GET", "/")[2].decode())[1]


@pytest.fixture
def endless(index, monkeypatch):
    mining = Endless()
    monkeypatch.setattr(index, "mine", mining.mine)
    return mining


def until(condition, seconds=20):
    """Wait until something holds."""
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, condition.__code__.co_firstlineno
        time.sleep(0.02)


def test_a_token_is_asked_for_by_all_but_the_page_and_health(index):
    with serving({"calls": index}, token="s3cret") as server:
        for path in ("/", f"/{script_of(server)}", "/healthz"):
            assert server.ask("GET", path)[0] == 200
        for path in ("/api/status", "/metrics", "/openapi.json", "/v1/models"):
            status, headers, content = server.ask("GET", path)
            assert (status, headers["www-authenticate"]) == (401, "Bearer")
            assert "Authorization: Bearer" in json.loads(content)["hint"]
        for given in ("Bearer s3cre", "Bearer s3crett", "Basic s3cret", "s3cret", "Bearer \xe9"):
            assert server.ask("GET", "/api/status", None, {"Authorization": given})[0] == 401
        shown = {"Authorization": "Bearer s3cret"}
        assert server.ask("GET", "/api/status", None, shown)[0] == 200
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key="s3cret") as client:
            assert client.models.list().data
        other = openai.OpenAI(base_url=f"{server.url}/v1", api_key="x", max_retries=0)
        with other, pytest.raises(openai.AuthenticationError):
            other.models.list()


def test_only_names_of_this_machine_are_answered_unless_told(index):
    with serving({"calls": index}, allow_hosts=["Search.example"]) as server:
        for host in ("localhost", "127.0.0.1:80", "[::1]:8080", "search.example", "LOCALHOST"):
            assert server.ask("GET", "/healthz", None, {"Host": host})[0] == 200
        for host in ("evil.example", "localhost.evil.example", "127.0.0.2", "", "[::2]"):
            assert server.ask("GET", "/healthz", None, {"Host": host})[0] == 421


def test_pages_from_elsewhere_may_not_ask_unless_they_are_named(index):
    preflight = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    allowed = "access-control-allow-origin"
    with serving({"calls": index}) as server:
        assert allowed not in server.ask("OPTIONS", "/api/search", None, preflight)[1]
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
            body = json.dumps(ASKED).encode()
            assert server.ask("POST", "/api/search", body, {"Content-Type": kind})[0] == 415
    with serving({"calls": index}, cors=["https://app.example"], token="s3cret") as server:
        status, headers, _ = server.ask("OPTIONS", "/api/search", None, preflight)
        assert (status, headers[allowed]) == (200, "https://app.example")
        other = {**preflight, "Origin": "https://evil.example"}
        assert allowed not in server.ask("OPTIONS", "/api/search", None, other)[1]
        refused = server.ask("POST", "/api/search", ASKED, {**JSON, **preflight})
        assert (refused[0], refused[1][allowed]) == (401, "https://app.example")


def test_the_page_comes_with_a_strict_policy_and_keeps_to_it(server):
    status, headers, content = server.ask("GET", "/")
    assert status == 200
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    text = content.decode()
    assert "<script>" not in text
    assert "style=" not in text
    assert "://" not in text
    assert server.ask("GET", f"/{script_of(server)}")[1]["cache-control"] == "no-cache"
    assert server.ask("GET", "/healthz")[1]["cache-control"] == "no-store"


def test_what_is_too_large_is_refused_before_it_is_read(index):
    with serving({"calls": index}, max_body=1000) as server:
        status, _, content = server.ask("POST", "/api/search", b"x" * 1001)
        assert status == 413
        assert "more than 1,000 bytes" in json.loads(content)["error"]
        with connected(server) as client:  # it says that it sends little, or not how much
            client.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
            for _ in range(3):
                client.sendall(b"1f4\r\n" + b" " * 500 + b"\r\n")
            assert client.recv(100).startswith(b"HTTP/1.1 413 ")
        assert server.post("/api/search", **ASKED)["hits"]


def test_who_sends_slowly_is_left(index, monkeypatch):
    monkeypatch.setattr(guard, "BODY_SECONDS", 0.5)
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 0.5)
    with serving({"calls": index}) as server:
        with connected(server) as client:
            client.sendall(HEAD + b"Content-Length: 100\r\n\r\n{")
            assert client.recv(100).startswith(b"HTTP/1.1 408 ")
        with connected(server) as client:
            client.sendall(HEAD)
            assert client.recv(100) == b""
        with connected(server) as client:
            client.sendall(HEAD + b"Content-Length: 100\r\n\r\n{")  # and goes
        assert server.post("/api/search", **ASKED)["hits"]


def test_mining_ends_when_the_client_is_gone(index, endless):
    with serving({"calls": index}) as server:
        client = begin_mining(server)
        assert client.recv(100).startswith(b"HTTP/1.1 200 ")
        client.close()
        until(lambda: endless.closed == 1)
        given = endless.given
        time.sleep(0.3)
        assert endless.given == given
        until(lambda: b"slice_os_minings 0.0" in server.ask("GET", "/metrics")[2])


def test_who_reads_slowly_holds_no_thread(index, endless, monkeypatch):
    with serving({"calls": index}) as server:
        slow = [begin_mining(server) for _ in range(6)]
        until(lambda: endless.begun == 6)
        given = -1
        while given != endless.given:  # until all wait for their clients
            given = endless.given
            time.sleep(0.5)
        monkeypatch.setattr(index, "mine", slice_os.Index.mine.__get__(index))
        matches, report = server.mine(phrases="wants to cancel")
        assert matches
        assert report["done"]
        for client in slow:
            client.close()
        until(lambda: endless.closed == 6)


def test_a_client_that_takes_nothing_is_left(index, endless, monkeypatch):
    monkeypatch.setattr("slice_os.server.app.STALLED", 0.5)
    with serving({"calls": index}) as server, begin_mining(server):
        until(lambda: endless.closed == 1)


def test_mining_that_takes_too_long_says_so_in_its_last_line(index, endless):
    with serving({"calls": index}, max_seconds=1) as server:
        matches, report = server.mine(phrases="wants to cancel")
    assert report["done"] is False
    assert "stopped after 1 seconds" in report["error"]
    assert report["counts"]["a"] == len(matches) > 0


def test_mining_that_runs_when_the_server_ends_says_so(index, endless):
    with serving({"calls": index}) as server:
        server.stopping.seconds = 0.5
        timer = threading.Timer(0.5, server.stopping.begin)
        timer.start()
        matches, report = server.mine(phrases="wants to cancel")
        timer.join()
    assert "The server was stopped" in report["error"]
    assert report["counts"]["a"] == len(matches) > 0


def test_a_search_that_takes_too_long_is_given_up(index, monkeypatch):
    monkeypatch.setattr(guard, "GRACE", 0.0)
    monkeypatch.setattr(index, "search_many", lambda *_, **__: time.sleep(2))
    with serving({"calls": index}, max_seconds=1) as server:
        assert "longer than 1 seconds" in server.post("/api/search", 503, **ASKED)["error"]


def test_a_search_whose_client_is_gone_is_not_run(index, monkeypatch):
    asked, search_many = [], index.search_many

    def slow(queries, **options):
        asked.extend(queries)
        time.sleep(0.5)
        return search_many(queries, **options)

    monkeypatch.setattr(index, "search_many", slow)
    monkeypatch.setattr("slice_os.server.app.BATCHES", 1)
    with serving({"calls": index}) as server:
        first = threading.Thread(target=server.post, args=["/api/search"], kwargs={"query": "a"})
        first.start()
        until(lambda: asked)
        content = json.dumps({"query": "gone"}).encode()
        with connected(server) as client:
            head = HEAD.replace(b"mine", b"search")
            client.sendall(head + f"Content-Length: {len(content)}\r\n\r\n".encode() + content)
            time.sleep(0.1)
        first.join()
        server.post("/api/search", query="last")
    assert asked == ["a", "last"]


@pytest.mark.parametrize("told", [False, True])
def test_the_log_holds_queries_only_if_asked_to(index, caplog, told):
    caplog.set_level(logging.INFO, "slice_os.server")
    with serving({"calls": index}, log_queries=told) as server:
        server.post("/api/search", query="my secret\nwords")
        server.mine(phrases=["other secret words"])
        server.post("/api/search", 400, query="secret filter", filters="nope=secret")
    lines = [record.getMessage() for record in caplog.records if record.name == "slice_os.server"]
    assert any("POST /api/search 200" in line for line in lines)
    assert any("secret" in line for line in lines) == told
    assert not any("\n" in line for line in lines)


def test_an_end_finishes_what_runs(location):
    with started("--index", location) as (process, server):
        answers = []
        body = {"phrases": ["wants to cancel"], "min_degree": 0.3}
        thread = threading.Thread(
            target=lambda: answers.append(server.ask("POST", "/api/mine", body))
        )
        thread.start()
        time.sleep(0.05)
        code, err, seconds = end(process)
        thread.join()
    assert code == 0, err
    assert "Traceback" not in err
    assert seconds < 30
    assert json.loads(answers[0][2].splitlines()[-1])["done"] is True


def test_a_second_ctrl_c_does_not_wait(location):
    with started("--index", location) as (process, server):
        body = {"phrases": [f"wants to cancel {n}" for n in range(900)], "min_degree": 0}
        mining = begin_mining(server, **body)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        assert process.poll() is None
        code, err, seconds = end(process, signal.SIGINT)
        mining.close()
    assert code == 0, err
    assert "Traceback" not in err
    assert seconds < 15


def test_an_address_of_others_needs_a_token_and_says_how_to_put_tls(location):
    failed = run("serve", "--index", location, "--host", "0.0.0.0", ok=1)
    assert "SLICE_OS_TOKEN" in failed.stderr
    assert "TLS" in failed.stderr
    arguments = ("--index", location, "--host", "0.0.0.0")
    with started(*arguments, SLICE_OS_TOKEN="s3cret") as (process, server):
        assert server.ask("GET", "/healthz", None, {"Host": "any.example"})[0] == 200
        assert server.ask("GET", "/api/status")[0] == 401
        _, err, _ = end(process)
    assert "put a proxy with TLS before it" in err


def test_what_cannot_be_served_is_one_sentence(location, tmp_path):
    failed = run("serve", "--index", tmp_path / "none.slice", ok=1)
    assert "There is no index at" in failed.stderr
    failed = run("serve", "--index", location, "--index", f"calls={location}", ok=1)
    assert "Two indexes are called 'calls'" in failed.stderr
    (tmp_path / "file").write_text("")
    failed = run("serve", "--index", location, "--workspace", tmp_path / "file", ok=1)
    assert "cannot be made" in failed.stderr
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        failed = run("serve", "--index", location, "--port", taken.getsockname()[1], ok=1)
    assert "cannot be listened at" in failed.stderr


def test_answers_do_not_wait_for_nagles_delay():
    with listen("127.0.0.1", 0) as listening:  # asyncio looks at this, and at nothing else
        assert listening.proto == socket.IPPROTO_TCP


MISSING = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("fastapi", "uvicorn", "mcp", "prometheus_client"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from slice_os.cli.main import main
main()
"""


@pytest.mark.parametrize("verb", ["serve", "mcp"])
def test_a_missing_extra_names_the_pip_line(verb, location):
    command = [sys.executable, "-c", MISSING, verb, "--index", location]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"pip install 'slice-os[{verb}]'" in done.stderr


def test_parquet_without_its_extra_names_the_pip_line(server, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    answer = server.post("/api/parquet", 501, columns={"text": ["a"]})
    assert answer["hint"] == "pip install 'slice-os[parquet]'."


def test_the_environment_may_name_an_index(location):
    with started(SLICE_OS_INDEX=str(location)) as (_, server):
        assert server.get("/api/server")["indexes"] == ["calls"]


def test_nothing_is_written_to_an_index(index, location):
    def state():
        return {
            file: (file.stat().st_mtime_ns, file.stat().st_size)
            for file in location.rglob("*")
            if file.is_file()
        }

    before = state()
    with serving({"calls": index}) as server:
        server.post("/api/search", **ASKED)
        server.mine(phrases="wants to cancel")
        server.post("/api/teach", phrases="wants to cancel")
        server.get("/api/documents")
    assert state() == before

"""Places that are no cluster, or none that answers: one sentence each, and soon."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from opensearchpy import ConnectionError

from slice_os.errors import ClusterError
from slice_os.storage.cluster import connection
from slice_os.storage.cluster.cluster_errors import FIRST_RETRY_TIMEOUT, RETRY_TIMEOUT, with_retries
from support.credentials import LOGIN, SECRETS, USER, refused, use
from support.proxy import answering, closed, silent

SLICE_OS = str(Path(sys.executable).with_name("slice-os"))
pytestmark = pytest.mark.usefixtures("no_credentials")


def command(*args, **environment):
    return subprocess.Popen(
        [SLICE_OS, *args],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


WRONG = {
    "closed port": "No cluster answers at",
    "unknown host": "The host of https://nowhere.invalid:9200 is not known: check its name",
    "http to https": "check https or http",
    "https to http": "does not speak TLS: write http://",
    "silent": "did not answer in time: look at its load, or set SLICE_OS_TIMEOUT",
    "web page": "is neither OpenSearch nor Elasticsearch (SerializationError): check it",
    "wrong password": "asks who you are",
    "password in address": "Leave the user and the password out of the address",
}


FOREIGN = {
    "no_page": "is neither OpenSearch nor Elasticsearch (status 404): check it",
    "text": "is neither OpenSearch nor Elasticsearch (SerializationError): check it",
    "half": "broke its answer off: look at what stands between",
    "gateway": "is too busy or not ready",
    "large": "refused a request (413)",
}


@pytest.fixture(scope="module")
def outcomes(servers):
    """What the command line says of each, and after how many seconds; all run side by side."""
    with silent() as mute:
        places = {
            "closed port": closed(),
            "unknown host": "https://nowhere.invalid:9200",
            "http to https": servers.key.url.replace("https", "http"),
            "https to http": servers.open.url.replace("http", "https"),
            "silent": mute,
            "web page": servers.web_page.url,
            "wrong password": servers.key.url,
            "password in address": f"https://{USER}:hunter2@{urlsplit(servers.key.url).netloc}",
        }
        told = {
            **LOGIN,
            "SLICE_OS_CA_CERTS": servers.ca,
            "SLICE_OS_DEBUG": "1",
            "SLICE_OS_TIMEOUT": "2",
        }
        started = time.monotonic()
        running = {
            kind: command("status", "--index", f"{place}/x", **told)
            for kind, place in places.items()
        }
        ended = {
            kind: (*process.communicate(timeout=60), process.returncode)
            for kind, process in running.items()
        }
        assert time.monotonic() - started < 60
        return ended


@pytest.mark.parametrize("kind", WRONG)
def test_the_command_line_says_what_is_wrong_in_one_sentence(outcomes, kind):
    out, err, code = outcomes[kind]
    assert (out, code) == ("", 1)
    assert WRONG[kind] in err
    assert err.startswith("Error: ")
    assert err.endswith(".\n")
    assert err.count("\n") == 1
    assert not [secret for secret in (*SECRETS, "hunter2") if secret in err]


@pytest.mark.parametrize("kind", FOREIGN)
def test_answers_that_are_not_those_of_a_cluster(servers, kind):
    assert FOREIGN[kind] in refused(f"{getattr(servers, kind).url}/x")


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
SLOW = {
    "head": [b"HTTP/1.1 200 OK\r\nx: ", *[b"x"] * 50],
    "body": [HEAD, b"content-length: 50\r\n\r\n", *[b" "] * 50],
    "chunks": [HEAD, b"transfer-encoding: chunked\r\n\r\n", *[b"1\r\n \r\n"] * 50],
}


@pytest.mark.parametrize("part", SLOW)
def test_an_answer_of_a_byte_now_and_then_times_out(monkeypatch, part):
    use(monkeypatch, SLICE_OS_TIMEOUT="0.4")
    began = time.monotonic()
    with answering(*SLOW[part], pause=0.2) as url:
        assert "did not answer in time" in refused(f"{url}/x")
    assert time.monotonic() - began < 8


def test_an_answer_that_unpacks_to_too_much_is_given_up(monkeypatch):
    monkeypatch.setattr(connection, "LARGEST_ANSWER", 3_000_000)
    bomb = gzip.compress(b"[" + b" " * 50_000_000)
    head = HEAD + b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(bomb)
    with answering(head, bomb) as url:
        assert "it answers more than 3,000,000 bytes" in refused(f"{url}/x")


@pytest.mark.parametrize("seconds", ["-1", "0", "nan", "inf", "soon"])
def test_a_timeout_that_is_none(servers, monkeypatch, seconds):
    use(monkeypatch, SLICE_OS_TIMEOUT=seconds)
    assert f"SLICE_OS_TIMEOUT is '{seconds}': it must be" in refused(f"{servers.open.url}/x")


def test_the_first_contact_fails_fast_and_later_ones_are_retried(monkeypatch):
    url, clock, attempts = "http://somewhere.test", [0.0], []

    def wait(seconds):
        clock[0] += seconds

    def fail():
        attempts.append(clock[0])
        raise ConnectionError("N/A", "refused", OSError("refused"))

    monkeypatch.setattr("time.sleep", wait)
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    with pytest.raises(ClusterError, match="No cluster answers"):
        with_retries(fail, url)
    assert attempts[-1] == pytest.approx(FIRST_RETRY_TIMEOUT)
    assert with_retries(lambda: 1, url) == 1
    del attempts[:]
    with pytest.raises(ClusterError, match="No cluster answers"):
        with_retries(fail, url)
    assert attempts[-1] - attempts[0] == pytest.approx(RETRY_TIMEOUT)

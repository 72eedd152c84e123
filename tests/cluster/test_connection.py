"""Reaching a cluster: credentials of every kind, and one sentence for whatever goes wrong."""

from __future__ import annotations

import base64
import logging
import os
import pty
import select
import ssl
import subprocess
import sys
import time
import traceback
import uuid
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
import trustme
from opensearchpy import ConnectionError, OpenSearch

import slice_os
from slice_os.backends.opensearch.connection import (
    SEARCH_PATIENCE,
    connect,
    parse_place,
    patiently,
)
from slice_os.errors import ClusterError, MissingExtraError, PlaceError
from support.proxy import closed, proxied, silent, wants

SLICE_OS = str(Path(sys.executable).with_name("slice-os"))
USER, PASSWORD, KEY = "analyst", "pa:ss wörd€/@{}", "c2VjcmV0LWtleQ=="
BASIC = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
SECRETS = (PASSWORD, KEY, BASIC, "AWSSECRETAWSSECRET")
TEXT = "I would like to cancel my plan, please."
LOGIN = {"SLICE_OS_USER": USER, "SLICE_OS_PASSWORD": PASSWORD}
AWS = {
    "SLICE_OS_AWS_REGION": "eu-central-1",
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "AWSSECRETAWSSECRET",
}


@pytest.fixture(autouse=True)
def _no_credentials(monkeypatch, tmp_path):
    for name in os.environ:
        if name.startswith(("SLICE_OS_", "AWS_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))


@pytest.fixture(scope="module")
def name(cluster):
    """An index of one document that is in the node behind every proxy here."""
    name = f"connection-{uuid.uuid4().hex[:12]}"
    slice_os.index([slice_os.Document("talk", TEXT)], f"{cluster.url}/{name}")
    yield name
    with OpenSearch(cluster.url) as client:
        client.indices.delete(index=f"{name}-000001")


def server_context(leaf, authority=None):
    """A server's side of TLS; with an authority, it wants certificates of its own."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    leaf.configure_cert(context)
    if authority is not None:
        authority.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


@pytest.fixture(scope="module")
def servers(cluster, tmp_path_factory):
    """Proxies of the node, by what they want; and where the certificates are."""
    folder = tmp_path_factory.mktemp("certificates")
    authority, stranger = trustme.CA(), trustme.CA()
    leaf, client = authority.issue_cert("127.0.0.1"), authority.issue_cert("us@example.org")
    paths = SimpleNamespace(
        **{
            one: str(folder / f"{one}.pem")
            for one in ("ca", "stranger", "cert", "key_file", "locked")
        }
    )
    authority.cert_pem.write_to_path(paths.ca)
    stranger.cert_pem.write_to_path(paths.stranger)
    client.cert_chain_pems[0].write_to_path(paths.cert)
    client.private_key_pem.write_to_path(paths.key_file)
    Path(paths.locked).write_bytes(locked(client.private_key_pem.bytes()))
    plain = server_context(leaf)
    kinds = {
        "password": (wants("Basic", BASIC), plain),
        "key": (wants("ApiKey", KEY), plain),
        "certificate": (lambda _: None, server_context(leaf, authority)),
        "other host": (lambda _: None, server_context(authority.issue_cert("elsewhere.test"))),
        "expired": (
            lambda _: None,
            server_context(
                authority.issue_cert(
                    "127.0.0.1", not_after=datetime(2020, 1, 1, tzinfo=timezone.utc)
                )
            ),
        ),
        "open": (lambda _: None, None),
        "forbidden": (lambda _: (403, "application/json", FORBIDDEN), None),
        "aws": (lambda _: (403, "application/json", b'{"Message":"not authorized"}'), None),
        "web page": (lambda _: (200, "text/html; charset=utf-8", b"<p>Hello</p>"), None),
        "no page": (lambda _: (404, "text/html", b"<p>Not here</p>"), None),
        "text": (lambda _: (200, "text/plain", b"OK"), None),
        "half": (lambda _: (200, "application/json", b'{"half":'), None),
        "gateway": (lambda _: (502, "text/html", b"<p>Bad Gateway</p>"), None),
        "large": (lambda _: (413, "text/html", b"<p>Too large</p>"), None),
    }
    with ExitStack() as stack:
        yield SimpleNamespace(
            **vars(paths),
            **{
                kind.replace(" ", "_"): stack.enter_context(proxied(cluster.url, *how))
                for kind, how in kinds.items()
            },
        )


FORBIDDEN = (
    b'{"error":{"root_cause":[{"type":"security_exception","reason":"no permissions for '
    b'[indices:admin/get]"}],"type":"security_exception","reason":"no permissions for '
    b'[indices:admin/get]"},"status":403}'
)


def locked(key):
    from cryptography.hazmat.primitives import serialization as forms

    return forms.load_pem_private_key(key, None).private_bytes(
        forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.BestAvailableEncryption(b"phrase")
    )


def use(monkeypatch, **environment):
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)


def refused(place, kind=ClusterError):
    """Return the one sentence with which opening fails, and hold it to the house rules."""
    with pytest.raises(kind) as caught:
        slice_os.open(place)
    said = str(caught.value)
    whole = "".join(traceback.format_exception(caught.value))
    assert not any(secret in whole for secret in SECRETS)
    assert "\n" not in said
    assert said.endswith(".")
    return said


def found(place):
    with slice_os.open(place) as index:
        (hit,) = index.search("cancel the plan")
        return hit.document


def command(*args, **environment):
    return subprocess.Popen(
        [SLICE_OS, *args],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# Credentials


def test_each_kind_of_credentials_is_let_in(servers, name, monkeypatch):
    use(monkeypatch, SLICE_OS_CA_CERTS=servers.ca)
    with monkeypatch.context() as patch:
        use(patch, **LOGIN)
        assert found(f"{servers.password.url}/{name}") == "talk"
    with monkeypatch.context() as patch:
        use(patch, SLICE_OS_API_KEY=f"{KEY}\n")  # as it comes out of a file
        assert found(f"{servers.key.url}/{name}") == "talk"
    with monkeypatch.context() as patch:
        use(patch, SLICE_OS_CLIENT_CERT=servers.cert, SLICE_OS_CLIENT_KEY=servers.key_file)
        assert found(f"{servers.certificate.url}/{name}") == "talk"


def test_an_index_is_made_through_tls(servers, cluster, monkeypatch):
    use(monkeypatch, SLICE_OS_CA_CERTS=servers.ca, **LOGIN)
    place = f"{servers.password.url}/made-{uuid.uuid4().hex[:12]}"
    slice_os.index([slice_os.Document("talk", TEXT)], place)
    assert found(place) == "talk"
    with OpenSearch(cluster.url) as client:
        client.indices.delete(index=f"{place.rpartition('/')[2]}-000001")


@pytest.mark.parametrize(
    "given", [{}, {**LOGIN, "SLICE_OS_PASSWORD": "no"}, {"SLICE_OS_API_KEY": "no"}]
)
def test_wrong_or_no_credentials_are_told_what_to_set(servers, name, monkeypatch, given):
    use(monkeypatch, SLICE_OS_CA_CERTS=servers.ca, **given)
    said = refused(f"{servers.password.url}/{name}")
    assert "asks who you are: set SLICE_OS_USER and SLICE_OS_PASSWORD, or SLICE_OS_API_KEY" in said


def test_who_may_not_is_told_what(servers):
    assert "no permissions for [indices:admin/get]" in refused(f"{servers.forbidden.url}/x")
    assert "not authorized" in refused(f"{servers.aws.url}/x")


def test_a_user_without_a_password_and_nobody_to_ask(servers, monkeypatch):
    use(monkeypatch, SLICE_OS_CA_CERTS=servers.ca, SLICE_OS_USER=USER)
    assert "set SLICE_OS_PASSWORD too" in refused(f"{servers.password.url}/x")


@pytest.mark.parametrize(
    "given",
    [
        {"SLICE_OS_API_KEY": f"{KEY}\n{KEY}"},
        {"SLICE_OS_API_KEY": f"{KEY}é"},
        {"SLICE_OS_USER": f"{USER}:{PASSWORD}"},
    ],
)
def test_credentials_that_cannot_be_sent_are_not_shown(servers, monkeypatch, given):
    use(monkeypatch, **given)
    assert next(iter(given)) in refused(f"{servers.open.url}/x")


@pytest.mark.parametrize(
    "place",
    [
        "https://me:hunter2@127.0.0.1:9200/x",
        "https://me:hun/hunter2@127.0.0.1:9200/x",
        "https://127.0.0.1:9200,me:hunter2@127.0.0.1:9201/x",
    ],
)
def test_a_password_in_the_address_is_refused_and_not_repeated(place):
    said = refused(place, PlaceError)
    assert "SLICE_OS_PASSWORD" in said
    assert "hunter2" not in said


def test_nothing_shows_a_secret(servers, name, monkeypatch, caplog, capfd):
    use(monkeypatch, SLICE_OS_CA_CERTS=servers.ca, **LOGIN)
    with caplog.at_level(logging.DEBUG):
        place = f"{servers.password.url}/{name}"
        client = connect(parse_place(place))
        with slice_os.open(place) as index:
            index.search("cancel", mode="lexical")
            shown = [index, index._backend, client, client.transport, *vars(client.transport)]
            shown += client.transport.connection_pool.connections
            text = " ".join(f"{one!r} {one}" for one in shown)
        refused(f"{servers.key.url}/{name}")
        assert connect(parse_place("HTTPS://h/x")).transport.get_connection().use_ssl
    text += caplog.text + "".join(capfd.readouterr())
    assert "_search" in text
    assert not [secret for secret in SECRETS if secret in text]


# TLS


def test_an_unknown_authority_is_refused(servers, name, monkeypatch):
    use(monkeypatch, **LOGIN)
    place = f"{servers.password.url}/{name}"
    sent = len(servers.password.requests)
    assert "set SLICE_OS_CA_CERTS to the file of its authority" in refused(place)
    use(monkeypatch, SLICE_OS_CA_CERTS=servers.stranger)
    assert "set SLICE_OS_CA_CERTS" in refused(place)
    assert len(servers.password.requests) == sent, "a stranger was told the password"
    use(monkeypatch, SLICE_OS_VERIFY_CERTS="false")
    assert found(place) == "talk"


def test_a_certificate_for_another_host_or_time_is_refused(servers, monkeypatch):
    use(monkeypatch, SLICE_OS_CA_CERTS=servers.ca)
    assert "is for another host" in refused(f"{servers.other_host.url}/x")
    assert "have it renewed" in refused(f"{servers.expired.url}/x")


def test_a_client_certificate_is_asked_for(servers, name, monkeypatch):
    place = f"{servers.certificate.url}/{name}"
    use(monkeypatch, SLICE_OS_CA_CERTS=servers.ca)
    assert "set SLICE_OS_CLIENT_CERT and SLICE_OS_CLIENT_KEY" in refused(place)
    use(monkeypatch, SLICE_OS_CLIENT_CERT=servers.cert)
    assert "cannot be read: check the files" in refused(place)
    use(monkeypatch, SLICE_OS_CLIENT_KEY=servers.locked)
    assert "locked by a passphrase" in refused(place)
    use(monkeypatch, SLICE_OS_CLIENT_KEY=servers.key_file, SLICE_OS_VERIFY_CERTS="0")
    assert found(place) == "talk"
    use(monkeypatch, SLICE_OS_CA_CERTS="nowhere.pem")
    assert "cannot be read: check the files" in refused(place)


# AWS


def test_aws_without_its_package(servers, monkeypatch):
    use(monkeypatch, **AWS)
    monkeypatch.setitem(sys.modules, "boto3", None)
    assert "'slice-os[aws]'" in refused(f"{servers.open.url}/x", MissingExtraError)


def test_aws_without_credentials(servers, monkeypatch):
    pytest.importorskip("boto3")
    use(monkeypatch, SLICE_OS_AWS_REGION="eu-central-1")
    assert "set AWS_ACCESS_KEY_ID" in refused(f"{servers.open.url}/x")
    use(monkeypatch, AWS_PROFILE="nobody")
    assert "AWS credentials cannot be had" in refused(f"{servers.open.url}/x")


@pytest.mark.parametrize("service", ["es", "aoss"])
def test_requests_are_signed_for_aws(servers, name, monkeypatch, service):
    pytest.importorskip("boto3")
    use(monkeypatch, SLICE_OS_AWS_SERVICE=service, SLICE_OS_COMPRESS="1", **AWS)
    del servers.open.requests[:]
    with slice_os.open(f"{servers.open.url}/{name}") as index:
        assert index.status().documents == 1
    signed = [request for request in servers.open.requests if request.body]
    assert signed
    for request in servers.open.requests:
        said = request.headers["authorization"]
        assert said.startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
        assert f"/eu-central-1/{service}/aws4_request" in said
        assert said.endswith(f"Signature={signature(request, servers.open.url, service)}")


def signature(request, url, service):
    """Sign what has come anew, as the receiver does."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    names = request.headers["authorization"].split("SignedHeaders=")[1].split(",")[0].split(";")
    headers = {one: request.headers[one] for one in names}
    again = AWSRequest(request.method, url + request.path, headers, request.body)
    again.context["timestamp"] = request.headers["x-amz-date"]
    keys = Credentials(AWS["AWS_ACCESS_KEY_ID"], AWS["AWS_SECRET_ACCESS_KEY"])
    signer = SigV4Auth(keys, service, "eu-central-1")
    return signer.signature(signer.string_to_sign(again, signer.canonical_request(again)), again)


# What is no cluster

WRONG = {
    "closed port": "No cluster answers at",
    "unknown host": "The host of https://nowhere.invalid:9200 is not known: check its name",
    "http to https": "check https or http",
    "https to http": "does not speak TLS: write http://",
    "silent": "did not answer in time: look at its load, or set SLICE_OS_TIMEOUT",
    "web page": "is not OpenSearch (SerializationError): check the address",
    "wrong password": "asks who you are",
    "password in address": "Leave the user and the password out of the address",
}
FOREIGN = {
    "no_page": "is not OpenSearch (status 404): check the address",
    "text": "is not OpenSearch (no JSON): check the address",
    "half": "is not OpenSearch (no JSON): check the address",
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
        yield {
            kind: (*one.communicate(timeout=60), one.returncode) for kind, one in running.items()
        }
        assert time.monotonic() - started < 60


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


@pytest.mark.parametrize("seconds", ["-1", "0", "nan", "inf", "soon"])
def test_a_timeout_that_is_none(servers, monkeypatch, seconds):
    use(monkeypatch, SLICE_OS_TIMEOUT=seconds)
    assert f"SLICE_OS_TIMEOUT is '{seconds}': it must be" in refused(f"{servers.open.url}/x")


def test_the_first_contact_fails_fast_and_later_ones_are_patient(monkeypatch):
    url, clock, attempts = "http://somewhere.test", [0.0], []

    def wait(seconds):
        clock[0] += seconds

    def fail():
        attempts.append(clock[0])
        raise ConnectionError("N/A", "refused", OSError("refused"))

    monkeypatch.setattr("time.sleep", wait)
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    with pytest.raises(ClusterError, match="No cluster answers"):
        patiently(fail, url)
    assert attempts[-1] < 6
    assert patiently(lambda: 1, url) == 1
    del attempts[:]
    with pytest.raises(ClusterError, match="No cluster answers"):
        patiently(fail, url)
    assert attempts[-1] - attempts[0] >= SEARCH_PATIENCE


# A person at a terminal


def test_the_password_is_asked_for_once_and_not_shown(servers, cluster, tmp_path):
    (tmp_path / "talk.txt").write_text(TEXT)
    made = f"asked-{uuid.uuid4().hex[:12]}"
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [SLICE_OS, "index", "talk.txt", "--index", f"{servers.password.url}/{made}"],
        env={**os.environ, "SLICE_OS_USER": USER, "SLICE_OS_CA_CERTS": servers.ca},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        cwd=tmp_path,
    )
    os.close(theirs)
    shown = read_until(ours, f"Password of {USER} at {servers.password.url}: ")
    os.write(ours, f"{PASSWORD}\n".encode())
    shown += read_until(ours, None)
    os.close(ours)
    assert process.wait(30) == 0, shown
    assert shown.count("Password of") == 1
    assert "1 document indexed" in shown
    assert PASSWORD not in shown
    with OpenSearch(cluster.url) as client:
        client.indices.delete(index=f"{made}-000001")


def read_until(terminal, text, seconds=60):
    """Return what a terminal shows until it shows a text, or (None) until it is left."""
    shown, end = b"", time.monotonic() + seconds
    while text is None or text.encode() not in shown:
        assert time.monotonic() < end, shown
        if select.select([terminal], [], [], 1)[0]:
            try:
                piece = os.read(terminal, 65_536)
            except OSError:  # how Linux says that nobody is there any more
                break
            if not piece:
                break
            shown += piece
    return shown.decode()

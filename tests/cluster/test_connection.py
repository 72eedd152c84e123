"""Reaching a cluster: credentials of every kind, TLS, AWS, and a password that is asked for."""

from __future__ import annotations

import base64
import logging
import os
import pty
import select
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from opensearchpy import OpenSearch

import slice_os
from slice_os.errors import LocationError, MissingExtraError
from slice_os.storage.cluster.client import Client
from slice_os.storage.cluster.settings import parse_location
from support.credentials import KEY, LOGIN, PASSWORD, SECRETS, USER, refused, use

pytestmark = pytest.mark.usefixtures("no_credentials")
SLICE_OS = str(Path(sys.executable).with_name("slice-os"))
TEXT = "I would like to cancel my plan, please."
AWS = {
    "SLICE_OS_AWS_REGION": "eu-central-1",
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "AWSSECRETAWSSECRET",
}


@pytest.fixture(scope="module")
def name(cluster):
    """An index of one document that is in the node behind every proxy here."""
    name = f"connection-{uuid.uuid4().hex[:12]}"
    slice_os.index([slice_os.Document("talk", TEXT)], f"{cluster.url}/{name}")
    yield name
    with OpenSearch(cluster.url) as client:
        client.indices.delete(index=f"{name}-000001")


def found(place):
    with slice_os.open(place) as index:
        (hit,) = index.search("cancel the plan")
        return hit.document


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
    said = refused(place, LocationError)
    assert "SLICE_OS_PASSWORD" in said
    assert "hunter2" not in said


def test_nothing_shows_a_secret(servers, name, monkeypatch, caplog, capfd):
    use(monkeypatch, SLICE_OS_CA_CERTS=servers.ca, **LOGIN)
    with caplog.at_level(logging.DEBUG):
        place = f"{servers.password.url}/{name}"
        client = Client(parse_location(place))
        transport = client._own.transport
        with slice_os.open(place) as index:
            index.search("cancel", mode="lexical")
            shown = [index, index._backend, client, transport, *vars(transport)]
            shown += transport.connection_pool.connections
            text = " ".join(f"{one!r} {one}" for one in shown)
        refused(f"{servers.key.url}/{name}")
        encrypted = Client(parse_location("HTTPS://h/x"))
        assert encrypted._own.transport.get_connection().use_ssl
    text += caplog.text + "".join(capfd.readouterr())
    assert "_search" in text
    assert not [secret for secret in SECRETS if secret in text]


def test_a_server_that_quotes_the_credentials_has_them_hidden(servers, monkeypatch):
    for credentials in (LOGIN, {"SLICE_OS_API_KEY": KEY}):
        with monkeypatch.context() as patch:
            use(patch, **credentials)
            message = refused(f"{servers.quoting.url}/x")
        assert r"\x1b[31m no" in message
        assert r"*** \u202e" in message


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


def test_an_authority_is_known_by_its_fingerprint(servers, name, monkeypatch):
    place = f"{servers.chain.url}/{name}"
    use(monkeypatch, SLICE_OS_API_KEY=KEY)
    digits = servers.fingerprint
    pairs = ":".join(digits[n : n + 2] for n in range(0, 64, 2)).upper()
    for written in (digits, pairs):
        use(monkeypatch, SLICE_OS_CA_FINGERPRINT=written)
        assert found(place) == "talk"
    asked = len(servers.chain.requests)
    use(monkeypatch, SLICE_OS_CA_FINGERPRINT="ab" * 32)
    assert "No certificate of https://127.0.0.1" in refused(place)
    use(monkeypatch, SLICE_OS_CA_FINGERPRINT="abc")
    assert "is no SHA-256 fingerprint" in refused(place)
    assert len(servers.chain.requests) == asked, "a stranger was told the key"
    use(monkeypatch, SLICE_OS_CA_FINGERPRINT=digits)
    # Who shows another's certificate beside its own is no friend.
    assert "No certificate of" in refused(f"{servers.other_host.url}/x")
    assert "shows no certificate" in refused(f"https://{servers.open.url.partition('//')[2]}/x")


@pytest.mark.parametrize(
    ("inside", "url"),
    [
        ("eu.example.org$abc$kib", "https://abc.eu.example.org:443"),
        ("eu.example.org:9243$abc$", "https://abc.eu.example.org:9243"),
        ("eu.example.org", "https://eu.example.org:443"),
    ],
)
def test_a_cloud_id_is_an_address(inside, url):
    cloud_id = f"my-deployment:{base64.b64encode(inside.encode()).decode()}"
    address = parse_location(f"cloud://{cloud_id}/calls")
    assert (address.url, address.name) == (url, "calls")
    assert parse_location(f"cloud://{cloud_id}", named=False).url == url
    with pytest.raises(LocationError, match="holds no cloud id"):
        parse_location("cloud://my-deployment/calls")


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

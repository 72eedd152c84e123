"""Servers before a node: each wants credentials of a kind, or is no cluster."""

from __future__ import annotations

import hashlib
import json
import os
import ssl
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace

import pytest
import trustme

from support.credentials import BASIC, KEY
from support.proxy import proxied, wants

FORBIDDEN = (
    b'{"error":{"root_cause":[{"type":"security_exception","reason":"no permissions for '
    b'[indices:admin/get]"}],"type":"security_exception","reason":"no permissions for '
    b'[indices:admin/get]"},"status":403}'
)


@pytest.fixture
def no_credentials(monkeypatch, tmp_path):
    """Keep a person's own credentials out of what is tested."""
    for name in os.environ:
        if name.startswith(("SLICE_OS_", "AWS_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))


def quote(headers):
    """Refuse with the credentials that came, and with what a terminal would obey."""
    reason = f"\x1b[31m no {headers['authorization']} \u202e"
    body = {"error": {"type": "security_exception", "reason": reason}, "status": 403}
    return 403, "application/json", json.dumps(body).encode()


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
    authority_der = ssl.PEM_cert_to_DER_cert(authority.cert_pem.bytes().decode())
    whole = folder / "chain.pem"  # with the authority, as Elasticsearch's own set-up has it
    whole.write_bytes(leaf.private_key_and_cert_chain_pem.bytes() + authority.cert_pem.bytes())
    shown = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    shown.load_cert_chain(whole)
    plain = server_context(leaf)
    kinds = {
        "password": (wants("Basic", BASIC), plain),
        "key": (wants("ApiKey", KEY), plain),
        "chain": (wants("ApiKey", KEY), shown),
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
        "quoting": (quote, None),
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
            fingerprint=hashlib.sha256(authority_der).hexdigest(),
            **{
                kind.replace(" ", "_"): stack.enter_context(proxied(cluster.url, *how))
                for kind, how in kinds.items()
            },
        )


def locked(key):
    from cryptography.hazmat.primitives import serialization as forms

    return forms.load_pem_private_key(key, None).private_bytes(
        forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.BestAvailableEncryption(b"phrase")
    )

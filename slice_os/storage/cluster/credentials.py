"""Who asks a cluster, and whom it trusts: passwords, keys, certificates, signatures.

Secrets come from the environment, the caller or, of the command line, a prompt; they are in no
message or repr.
"""

from __future__ import annotations

import base64
import hashlib
import os
import socket
import ssl
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import regex

from slice_os.errors import ClusterError, MissingExtraError, UnreachableError
from slice_os.storage.cluster.settings import Address

CONNECT_TIMEOUT = 5.0
"""Seconds for a connection to come about; for an answer there is more."""
SHORTEST_HIDDEN = 6
"""Characters of a secret that is looked for in what a server says: shorter ones are words."""
_NO = ("0", "false", "no", "off")
_AUTHORIZATION = ("USER", "PASSWORD", "API_KEY", "AWS_REGION", "AWS_SERVICE")
_FILES = {"CA_CERTS": "--cacert", "CLIENT_CERT": "--cert", "CLIENT_KEY": "--key"}
"""What names a file -> the option of curl for it."""
_NAMES = (*_AUTHORIZATION, *_FILES, "CA_FINGERPRINT", "VERIFY_CERTS", "TIMEOUT", "COMPRESS")
_HEADER = regex.compile(r"(?i)\b(basic|bearer|apikey)\s+[\w+/=.~-]{8,}")
_sent: set[str] = set()
"""The secrets that this process has sent: a server may quote them."""
_ask: Callable[[str], str] | None = None


def environment_of(credentials: Mapping[str, str] | None) -> Mapping[str, str]:
    """Return the environment, with credentials that are given instead of those in it.

    Raises:
        ClusterError: there are none of such a name.
    """
    given = {name.upper(): str(value) for name, value in (credentials or {}).items()}
    if unknown := given.keys() - {*_NAMES}:
        known = ", ".join(map(str.lower, _NAMES))
        raise ClusterError(f"There are no credentials {min(unknown).lower()!r}: give {known}.")
    environment = dict(os.environ)
    if given.keys() & {*_AUTHORIZATION}:
        for name in _AUTHORIZATION:
            environment.pop(f"SLICE_OS_{name}", None)
    return environment | {f"SLICE_OS_{name}": value for name, value in given.items()}


def without_secrets(text: str) -> str:
    """Return what a server said without the secrets that were sent to it."""
    for secret in _sent:
        if len(secret) >= SHORTEST_HIDDEN:
            text = text.replace(secret, "***")
    return _HEADER.sub(r"\1 ***", text)


def trust(environment: Mapping[str, str], address: Address) -> ssl.SSLContext:
    """Return a TLS context that trusts the system's authorities, or those of a file, or all.

    With a fingerprint it trusts the one authority of that fingerprint that the server shows.
    """
    get = environment.get
    authority = None
    if (fingerprint := get("SLICE_OS_CA_FINGERPRINT")) and not _trusts_all(environment):
        authority = pinned(fingerprint, address)
    try:
        cafile = None if authority else get("SLICE_OS_CA_CERTS") or None
        context = ssl.create_default_context(cafile=cafile, cadata=authority)
        if authority:  # whatever it is signed by
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        if _trusts_all(environment):
            import urllib3

            # It was asked for: no warning at every request.
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if certificate := get("SLICE_OS_CLIENT_CERT"):
            key = get("SLICE_OS_CLIENT_KEY") or None
            context.load_cert_chain(certificate, key, lambda: _passphrase(key or certificate))
    except OSError as exc:  # an SSLError is one too
        forget_secrets()
        raise ClusterError(
            "A certificate cannot be read: check the files that SLICE_OS_CA_CERTS, "
            f"SLICE_OS_CLIENT_CERT and SLICE_OS_CLIENT_KEY name ({exc.strerror or exc})."
        ) from exc
    return context


def pinned(fingerprint: str, address: Address) -> bytes:
    """Return the certificate (DER) of a SHA-256 fingerprint from those that the first host shows.

    Nothing is sent to the host before it has shown one, and then only what TLS checks against it.

    Raises:
        ClusterError: the fingerprint is none, or no certificate of the host has it.
    """
    digits = fingerprint.replace(":", "").strip().lower()
    if not regex.fullmatch("[0-9a-f]{64}", digits):
        raise ClusterError(
            "SLICE_OS_CA_FINGERPRINT is no SHA-256 fingerprint: set it to the 64 hexadecimal "
            "digits that the set-up has printed."
        )
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    host, _ = address.hosts[0]
    try:
        with (
            socket.create_connection(address.hosts[0], CONNECT_TIMEOUT) as raw,
            context.wrap_socket(raw, server_hostname=host) as connection,
        ):
            shown = _chain(connection)
    except OSError as exc:
        raise UnreachableError(
            f"{address.url} shows no certificate ({exc.strerror or exc}): check the address, https "
            "or http, and that it runs."
        ) from exc
    for certificate in shown:
        if hashlib.sha256(certificate).hexdigest() == digits:
            return certificate
    raise UnreachableError(
        f"No certificate of {address.url} has the fingerprint in SLICE_OS_CA_FINGERPRINT: check "
        "both, or set SLICE_OS_CA_CERTS to the file of its authority."
    )


def _chain(connection: ssl.SSLSocket) -> list[bytes]:
    """Return the certificates that a server shows, DER."""
    if hasattr(connection, "get_unverified_chain"):  # Python 3.13
        return list(connection.get_unverified_chain())
    inside = connection._sslobj  # type: ignore[attr-defined]
    return [ssl.PEM_cert_to_DER_cert(each.public_bytes()) for each in inside.get_unverified_chain()]


def authorization_of(environment: Mapping[str, str], url: str) -> str | None:
    """Return the header that says who asks. None of its errors may hold a secret."""
    if key := environment.get("SLICE_OS_API_KEY", "").strip():
        if not (key.isascii() and key.isprintable()):
            raise ClusterError(
                "SLICE_OS_API_KEY holds characters that no key has: set it to the encoded key "
                "alone, on one line."
            )
        _sent.add(key)
        return f"ApiKey {key}"
    if not (user := environment.get("SLICE_OS_USER")):
        return None
    if ":" in user:
        raise ClusterError("SLICE_OS_USER holds a colon: put the password in SLICE_OS_PASSWORD.")
    password = environment.get("SLICE_OS_PASSWORD")
    if password is None:
        if _ask is None:
            raise ClusterError(f"SLICE_OS_USER is {user}: set SLICE_OS_PASSWORD too.")
        password = _ask(f"Password of {user} at {url}: ")
    # In UTF-8, as OpenSearch reads it; opensearch-py knows only Latin-1.
    pair = base64.b64encode(f"{user}:{password}".encode("utf-8", "surrogateescape")).decode()
    _sent.update([pair, password])
    return f"Basic {pair}"


def _passphrase(file: str) -> str:
    if _ask is None:
        raise ClusterError(
            f"The key in {file} is locked by a passphrase: run this where it can be asked for, or "
            "let SLICE_OS_CLIENT_KEY name a key without one."
        )
    return _ask(f"Passphrase of {file}: ")


def ask_with(ask: Callable[[str], str] | None) -> None:
    """Have a secret that is missing asked for by a function of its prompt; None: by nobody.

    Each is asked for once: an index is opened by more than one client.
    """
    global _ask
    _ask = None if ask is None else lru_cache(ask)


def curl_options(environment: Mapping[str, str]) -> str:
    """Return the options of curl that stand for these credentials, without a secret in them.

    The shell takes them out of its environment; what AWS signs, curl cannot.
    """
    options = ""
    if environment.get("SLICE_OS_API_KEY"):
        options += ' -H "Authorization: ApiKey $SLICE_OS_API_KEY"'
    elif environment.get("SLICE_OS_USER"):
        options += ' -u "$SLICE_OS_USER:$SLICE_OS_PASSWORD"'
    for name, option in _FILES.items():
        if environment.get(f"SLICE_OS_{name}"):
            options += f' {option} "$SLICE_OS_{name}"'
    return options + (" -k" if _trusts_all(environment) else "")


def _trusts_all(environment: Mapping[str, str]) -> bool:
    return environment.get("SLICE_OS_VERIFY_CERTS", "").strip().lower() in _NO


def signer(region: str, service: str) -> Any:
    """Return what signs requests for AWS, with the credentials that boto3 finds."""
    try:
        import boto3
        from botocore.exceptions import BotoCoreError
    except ImportError:
        raise MissingExtraError("Signing requests for AWS", "aws") from None
    from opensearchpy import Urllib3AWSV4SignerAuth

    try:
        credentials = boto3.Session().get_credentials()
    except BotoCoreError as exc:
        raise ClusterError(f"AWS credentials cannot be had: {str(exc).rstrip('.')}.") from exc
    if credentials is None:
        raise ClusterError(
            "SLICE_OS_AWS_REGION is set and AWS credentials are nowhere to be found: set "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE."
        )
    return Urllib3AWSV4SignerAuth(credentials, region, service)


def forget_secrets() -> None:
    """Let what was typed be asked for again: it was wrong."""
    if _ask is not None:
        _ask.cache_clear()  # type: ignore[attr-defined]

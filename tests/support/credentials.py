"""Who asks a cluster, with what secrets, and how it is refused."""

from __future__ import annotations

import base64
import traceback

import pytest

import slice_os
from slice_os.errors import ClusterError

USER, PASSWORD, KEY = "analyst", "pa:ss wörd€/@{}", "c2VjcmV0LWtleQ=="
BASIC = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
SECRETS = (PASSWORD, KEY, BASIC, "AWSSECRETAWSSECRET")
LOGIN = {"SLICE_OS_USER": USER, "SLICE_OS_PASSWORD": PASSWORD}


def use(monkeypatch, **environment):
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)


def refused(location, kind=ClusterError):
    """Return the one sentence with which opening fails, and hold it to the house rules."""
    with pytest.raises(kind) as caught:
        slice_os.open(location)
    said = str(caught.value)
    whole = "".join(traceback.format_exception(caught.value))
    assert not any(secret in whole for secret in SECRETS)
    assert "\n" not in said
    assert said.endswith(".")
    return said

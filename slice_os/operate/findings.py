"""What an examination finds, and what it reads on the way."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from slice_os.encoders.info import EncoderInfo
from slice_os.errors import (
    BlockedError,
    BusyError,
    ClusterTimeoutError,
    GoneError,
    RefusedError,
    UnauthorizedError,
)
from slice_os.storage.cluster.client import Client
from slice_os.storage.contract import IndexMeta

Severity = Literal["ok", "notice", "warning", "error"]
DELETED_SHARE = 0.3
"""Of what is stored, the share of deleted words or documents that is worth a word."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is well or not; `advice` says what to do, where something is to be done."""

    severity: Severity
    what: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was read (`facts`, plain JSON types by name) and what follows from it."""

    facts: dict[str, Any]
    findings: tuple[Finding, ...]

    @property
    def healthy(self) -> bool:
        """Whether no finding is an error."""
        return all(finding.severity != "error" for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return the diagnosis as plain JSON types."""
        found = [asdict(finding) for finding in self.findings]
        return {"healthy": self.healthy, "facts": self.facts, "findings": found}


@dataclass(slots=True)
class Notes:
    """A diagnosis while it is made."""

    facts: dict[str, Any] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def find(self, severity: Severity, what: str, advice: str = "") -> None:
        """Note a finding."""
        self.findings.append(Finding(severity, what, advice))

    def find_error(self, exc: Exception) -> None:
        """Note an error of slice-os: what is wrong, a colon, what to do."""
        what, _, advice = str(exc).partition(": ")
        self.find("error", what, advice)

    def done(self) -> Diagnosis:
        """Return the diagnosis."""
        return Diagnosis(self.facts, tuple(self.findings))


def size_of(count: float) -> str:
    """Return a number of bytes as people say it: '1.5 GB'."""
    units = ["bytes", "kB", "MB", "GB", "TB", "PB"]
    while count >= 999.5 and len(units) > 1:
        count /= 1000
        del units[0]
    return f"{count:.3g} {units[0]}"


class Asker:
    """Asks a cluster; what it may not or cannot answer is None, and noted."""

    def __init__(self, client: Client, notes: Notes) -> None:
        self.client, self._notes = client, notes
        self.address, self.url = client.address, client.url

    def curl(self, path: str, method: str = "GET") -> str:
        """Return the beginning of a curl command; see `Client.curl`."""
        return self.client.curl(path, method)

    @property
    def why(self) -> str:
        """What to do about shards that are on no node."""
        return f"ask why with: {self.curl('/_cluster/allocation/explain?pretty')}"

    def get(self, path: str, body: dict[str, Any] | None = None, **params: Any) -> Any:
        """Return what a path answers."""
        try:
            return self.client.request("POST" if body else "GET", path, body, **params)
        except UnauthorizedError as exc:
            if exc.status != 403:
                raise
            self._notes.find(
                "notice",
                f"{path} is not allowed to these credentials",
                "for the whole picture, run this with those of an administrator.",
            )
        except (BlockedError, BusyError, ClusterTimeoutError) as exc:
            self._notes.find("warning", f"{path} is not answered now: {str(exc).rstrip('.')}")
        except (GoneError, RefusedError) as exc:
            if exc.status not in (400, 404, 405):  # no such plugin, or not on such a service
                raise
        return None


def fit(notes: Notes, meta: IndexMeta, info: EncoderInfo) -> None:
    """Say what made an index, and whether an encoder fits it."""
    notes.facts |= {
        "format": meta.format,
        "encoder": meta.encoder,
        "weights_hash": meta.weights_hash,
        "dimension": meta.dimension,
        "max_words": meta.max_words,
        "passage_words": meta.passage_words,
    }
    if meta.weights_hash == info.weights_hash:
        notes.find("ok", f"The encoder {info.name} fits the index.")
        return
    notes.find(
        "error",
        f"The index was made by the encoder {meta.encoder} (weights {meta.weights_hash[:12]}, "
        f"{meta.dimension} dimensions), not by {info.name} (weights {info.weights_hash[:12]}, "
        f"{info.dimension} dimensions)",
        "give that encoder's folder with --encoder, or index to a new location.",
    )


def complete(notes: Notes, documents: int, incomplete: int) -> None:
    """Say whether every document of an index is whole."""
    if incomplete:
        notes.find(
            "warning",
            f"Incomplete documents: {incomplete:,} (a run was broken off, or is under way)",
            "run the same 'slice-os index' again, and it goes on.",
        )
    elif documents:
        notes.find("ok", "Every document is complete.")
    else:
        notes.find("notice", "The index is empty", "fill it with 'slice-os index'.")

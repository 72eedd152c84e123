"""What an examination of an index finds."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from slice_os.encoders import EncoderInfo
from slice_os.errors import LocationError, SliceOSError
from slice_os.storage.contract import IndexMeta

Severity = Literal["ok", "notice", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is well or not; `advice` says what to do, where something is to be done."""

    severity: Severity
    what: str
    advice: str = ""


@dataclass(slots=True)
class Diagnosis:
    """What was read (`facts`, plain JSON types by name) and what follows from it."""

    facts: dict[str, Any] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def healthy(self) -> bool:
        """Whether no finding is an error."""
        return all(finding.severity != "error" for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return the diagnosis as plain JSON types."""
        findings = [asdict(finding) for finding in self.findings]
        return {"healthy": self.healthy, "facts": self.facts, "findings": findings}

    def add(self, severity: Severity, what: str, advice: str = "") -> None:
        """Add a finding."""
        self.findings.append(Finding(severity, what, advice))

    def add_error(self, exc: SliceOSError) -> None:
        """Add an error of slice-os: what is wrong, and what to do about it."""
        self.add("error", exc.args[0], exc.hint)

    def compare_encoder(self, meta: IndexMeta, info: EncoderInfo) -> None:
        """Add what made an index, and whether an encoder fits it."""
        self.facts |= {
            "format": meta.format,
            "encoder": meta.encoder,
            "weights_hash": meta.weights_hash,
            "dimension": meta.dimension,
            "max_words": meta.max_words,
            "passage_words": meta.passage_words,
        }
        if meta.weights_hash == info.weights_hash:
            self.add("ok", f"The encoder {info.name} fits the index.")
            return
        self.add(
            "error",
            f"The index was made by the encoder {meta.encoder} (weights {meta.weights_hash[:12]}, "
            f"{meta.dimension} dimensions), not by {info.name} (weights {info.weights_hash[:12]}, "
            f"{info.dimension} dimensions)",
            "give that encoder's folder with --encoder, or index to a new location.",
        )

    def count_incomplete(self, documents: int, incomplete: int) -> None:
        """Add whether every document of an index is whole."""
        if incomplete:
            self.add(
                "warning",
                f"Incomplete documents: {incomplete:,} (a run was broken off, or is under way)",
                "run the same 'slice-os index' again, and it goes on.",
            )
        elif documents:
            self.add("ok", "Every document is complete.")
        else:
            self.add("notice", "The index is empty", "fill it with 'slice-os index'.")


def nothing_at(location: str) -> LocationError:
    """Return the error of a location that has no index.

    A folder's name may look like a cluster without https://.
    """
    address = f", or write https://{location} for one in a cluster"
    looks = re.match(r"[\w.-]+:\d+/", location)
    return LocationError(
        f"There is no index at {location}",
        hint=f"make one with 'slice-os index PATHS --index {location}'{address if looks else ''}.",
    )

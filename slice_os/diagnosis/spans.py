"""Whether the stored spans of an index of a cluster are those of its words, and safe to stay so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from slice_os.backends.cluster.documents import MOST_SPANS
from slice_os.backends.cluster.index import ClusterBackend
from slice_os.backends.cluster.mending import count_crowded, survey
from slice_os.backends.cluster.requests import Cluster
from slice_os.backends.cluster.settings import Layout
from slice_os.diagnosis.documents import inspect, report
from slice_os.diagnosis.findings import Notes
from slice_os.errors import ClusterError


def check_spans(cluster: Cluster, notes: Notes, layout: Layout, deep: bool) -> None:
    """Look at the stored spans of a sample, or if `deep` at all that is stored."""
    try:
        many = count_crowded(cluster)
        if deep:
            inspected = inspect(cluster, layout, None)
            report(notes, inspected)
        found = inspected.complaints if deep else survey(cluster, layout)
    except ClusterError as exc:
        notes.find("notice", f"The stored spans could not be looked at ({str(exc).rstrip('.')})")
        return
    report_spans(cluster, notes, many, found)


def report_spans(cluster: Cluster, notes: Notes, many: int, found: Counter[str]) -> None:
    """Say how many passages have too many spans, and what is wrong with those of others."""
    command = f"'slice-os doctor --repair --index {cluster.address}'"
    notes.facts["passages_of_150_spans"] = many
    if many:
        notes.find(
            "error",
            f"Passages with more than {MOST_SPANS} spans: {many:,}. The k-NN plugin derives a wrong"
            " _source of them, so that _reindex, _update and the recovery of a replica ruin them",
            f"{command} makes them anew from the stored words.",
        )
    if found["spans"]:
        notes.find(
            "error",
            f"Passages whose stored spans are not those of their words: {found['spans']:,} of the "
            f"{found.total():,} looked at",
            f"{command} makes all anew from the stored words.",
        )
    if found["filters"]:
        notes.find(
            "warning",
            "Passages whose metadata was changed (by _update, say) and their filters were not: "
            f"{found['filters']:,} of the {found.total():,} looked at",
            f"{command} has the filters follow.",
        )
    if found.total() and found[""] == found.total() and not many:
        notes.find("ok", "The stored spans that were looked at are those of their words.")


def repair_spans(location: str, notes: Notes, deep: bool, options: Mapping[str, Any]) -> None:
    """Make anew what `check_spans` would find wrong, and say how much it was."""
    backend = ClusterBackend.open(location, **options)
    if backend is not None:
        mended = backend.mend(everything=deep)
        backend.close()
        notes.find("ok", f"Repaired: {mended:,} passages were written anew from what they hold.")

"""What is wrong with an index of a cluster: what it says of itself, and what it holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from slice_os.encoders import EncoderInfo, encoder_info
from slice_os.errors import ClusterError, LocationError
from slice_os.storage.cluster.backend import ClusterBackend
from slice_os.storage.cluster.check import add_complaints, check_documents, repair_spans, survey
from slice_os.storage.cluster.client import Client
from slice_os.storage.cluster.dialect import JSON, Asker, dialect_of
from slice_os.storage.cluster.generations import check_named, full_beside, naming
from slice_os.storage.cluster.mapping import named_index, read_meta
from slice_os.storage.cluster.requests import Cluster
from slice_os.storage.cluster.responses import (
    Amount,
    Count,
    IndexDescription,
    IndexSettings,
    Shards,
    decoded,
    nested,
)
from slice_os.storage.cluster.searches import FOREIGN, OURS
from slice_os.storage.cluster.settings import parse_location
from slice_os.storage.findings import Diagnosis, nothing_at

WAITED = 5.0
"""Seconds for an index to answer whose shards may be away."""
SEGMENTS = 10
"""Of a shard, above which a search goes through too many graphs."""


def diagnose(
    location: str,
    encoder: str | Path | None,
    *,
    deep: bool = False,
    repair: bool = False,
    **options: Any,
) -> Diagnosis:
    """Examine the index that a location names, if it names one; see `slice_os.doctor`."""
    info = encoder_info(encoder)
    named = bool(location.partition("://")[2].partition("/")[2].strip("/"))
    address = parse_location(location, named=named)
    diagnosis = Diagnosis({"cluster": address.url})
    with Client(address, **options) as client:
        asker = Asker(client, diagnosis)
        server = asker.get("/", dict[str, Any]) or {}
        try:
            dialect = dialect_of(client)
        except ClusterError as exc:  # it answers, but is not for us
            diagnosis.add_error(exc)
            return diagnosis
        if dialect.version:
            number = nested(server, "version", "number")
            diagnosis.facts |= {"name": server.get("cluster_name", ""), "version": number}
        dialect.examine(asker, diagnosis)
        _check_cluster_blocks(asker, diagnosis)
        if named:
            diagnosis.facts["index"] = location
            _examine_index(asker, diagnosis, info, deep, repair)
    return diagnosis


def check(
    location: str,
    *,
    sample: int | None,
    on_progress: Callable[[float], object],
    **options: Any,
) -> Diagnosis:
    """Compare what an index holds with its hashes; see `slice_os.check`."""
    diagnosis = Diagnosis({"index": location})
    backend = ClusterBackend.open(location, **options)
    if backend is None:
        raise nothing_at(location)
    with closing(backend):
        cluster = backend.cluster
        cluster.refresh()
        diagnosis.facts["generation"] = cluster.index
        _count_documents(Asker(cluster.client, diagnosis), diagnosis, cluster)
        complaints = check_documents(cluster, backend.layout, diagnosis, sample, on_progress)
        add_complaints(cluster, diagnosis, complaints)
    return diagnosis


def _examine_index(
    asker: Asker, diagnosis: Diagnosis, info: EncoderInfo, deep: bool, repair: bool
) -> None:
    """Add what an index is and what is wrong with it."""
    name = asker.address.name
    indexes = asker.get(f"/{name}", dict[str, IndexDescription], ignore_unavailable="true")
    try:
        if not indexes:
            check_named(asker.client, dialect_of(asker.client))
            raise nothing_at(str(asker.address))
        index, description = named_index(name, indexes)
        diagnosis.facts["generation"] = index
        cluster = Cluster(asker.client, dialect_of(asker.client), index)
        meta, layout = read_meta(index, description, cluster.dialect)
    except LocationError as exc:
        diagnosis.add_error(exc)
        return
    settings = description["settings"]["index"]
    diagnosis.compare_encoder(meta, info)
    diagnosis.facts |= {
        "tolerance": layout.tolerance,
        "vectors": f"{layout.vector_type}, {layout.dimensions or meta.dimension} dimensions",
        "engine": layout.engine,
        "analyzer": layout.analyzer,
        "shards": layout.shards,
        "replicas": layout.replicas,
    }
    if nested(description["mappings"], "_meta", "slice_os", "loading"):
        diagnosis.add(
            "warning",
            "The index is set for loading (no refresh, no replicas): a run is under way, or one "
            "was killed",
            "if none runs, run the same 'slice-os index' again: it puts the settings back.",
        )
    held = nested(description["mappings"], "_meta", "slice_os", "held") or {}
    _check_blocks(diagnosis, settings, held, asker.put_settings(index))
    if settings.get("verified_before_close") == "true":
        open_it = asker.client.curl(f"/{index}/_open", "POST")
        diagnosis.add("error", "The index is closed", f"open it: {open_it}")
        return
    if repair:
        count = repair_spans(cluster, layout)
        diagnosis.add("ok", f"Repaired: {count:,} passages were written anew from what they hold.")
    _check_shards(asker, diagnosis, index)
    if _count_documents(asker, diagnosis, cluster):
        try:
            if deep:
                complaints = check_documents(cluster, layout, diagnosis, None)
            else:
                complaints = survey(cluster, layout)
            add_complaints(cluster, diagnosis, complaints)
        except ClusterError as exc:
            reason = str(exc).rstrip(".")
            diagnosis.add("notice", f"The stored spans could not be looked at ({reason})")


def _check_blocks(
    diagnosis: Diagnosis, settings: IndexSettings, held: Mapping[str, Any], put: str
) -> None:
    """Add which blocks keep documents or searches from an index, by whom, and what lifts them."""
    for block, value in (settings.get("blocks") or {}).items():
        if str(value) != "true":
            continue
        if block == "write" and held:
            diagnosis.add(
                "warning",
                f"Writers are held off by {held.get('by')} since {held.get('since')}, to move the "
                "name",
                "wait: if that process is dead, a run that writes goes on within a minute.",
            )
        else:
            full = block == "read_only_allow_delete"
            diagnosis.add(
                "error" if full or block == "read" else "warning",
                f"The index is blocked (index.blocks.{block}): "
                + ("a disk was too full" if full else "somebody has set it so"),
                ("free disk; if it stays, " if full else "")
                + f"""lift it: {put} '{{"index":{{"blocks.{block}":null}}}}'""",
            )


def _check_cluster_blocks(asker: Asker, diagnosis: Diagnosis) -> None:
    """Add which blocks are on the whole cluster, and what lifts them."""
    settings = asker.get("/_cluster/settings", dict[str, dict[str, Any]], flat_settings="true")
    put = f"{asker.client.curl('/_cluster/settings', 'PUT')} {JSON}"
    for scope, values in (settings or {}).items():
        for name, value in values.items():
            if name.startswith("cluster.blocks.") and str(value) == "true":
                what = "make an index" if name.endswith("create_index") else "write to the cluster"
                diagnosis.add(
                    "error",
                    f"Nobody may {what} ({name}): disks are nearly full, or somebody has set it",
                    f"free disk; if it stays, lift it: {put} "
                    f"""'{json.dumps({scope: {name: None}})}'""",
                )


def _check_shards(asker: Asker, diagnosis: Diagnosis, index: str) -> None:
    """Add whether a part of the index cannot be searched, or goes through too many graphs."""
    health = asker.get(f"/_cluster/health/{index}", dict[str, Any])
    if health and health.get("status") == "red":
        explain = asker.client.curl("/_cluster/allocation/explain?pretty")
        diagnosis.add(
            "error",
            f"Shards of the index on no node: {health.get('unassigned_shards')}; part of it cannot "
            "be searched",
            f"ask why with: {explain}",
        )
    elif health:
        diagnosis.add("ok", "Every shard of the index is on a node.")
    path, kind, url = f"/{index}/_stats/segments", dict[str, dict[str, Any]], asker.client.url
    indexes = asker.get(path, kind, at="indices", level="shards") or {}
    # Shards that are all away have no statistics, and a copy that only starts has none of segments.
    kinds = dict[str, list[dict[str, Any]]]
    shards = decoded(indexes.get(index, {}).get("shards", {}), kinds, url)
    copies = [copy for shard in shards.values() for copy in shard if "segments" in copy]
    most = max((decoded(copy, Count, url, "segments/count") for copy in copies), default=0)
    if most > SEGMENTS:
        path = f"/{index}/_forcemerge?max_num_segments=1&wait_for_completion=false"
        diagnosis.add(
            "notice",
            f"A shard has {most} segments, each with a graph of its own that a search goes through "
            "(25 instead of one take a search three to five times as long)",
            f"if little is written to it now, merge them: {asker.client.curl(path, 'POST')}",
        )


def _count_documents(asker: Asker, diagnosis: Diagnosis, cluster: Cluster) -> bool:
    """Add how much there is, and whether documents are whole; False if the index cannot say."""
    body = {
        "size": 0,
        "query": OURS,
        "track_total_hits": True,
        "aggs": {
            "words": {"sum": {"field": "word_count"}},
            "complete": {
                "filter": {"exists": {"field": "document_hash"}},
                "aggs": {"before": {"sum": {"field": "passage"}}},
            },
            # Every document has a first passage: counted exactly, where a cardinality is not.
            "begun": {"filter": {"term": {"passage": 0}}},
        },
    }
    path, options = f"/{cluster.index}/_search", {"retry_timeout": WAITED}
    answer = asker.get(path, dict[str, Any], body, **options)
    if answer is None or decoded(answer, Shards, cluster.url, "_shards").missing:
        return False
    paths = ("hits/total/value", "aggregations/words/value", "aggregations/complete/doc_count",
             "aggregations/complete/before/value", "aggregations/begun/doc_count")  # fmt: skip
    passages, words, documents, before, begun = (
        int(decoded(answer, Amount, cluster.url, path)) for path in paths
    )
    diagnosis.facts |= {"documents": documents, "passages": passages, "words": words}
    count, ids = cluster.foreign()
    if count:
        path = f"/{cluster.index}/_delete_by_query?refresh=true"
        query = json.dumps({"query": FOREIGN})
        diagnosis.add(
            "warning",
            f"Documents that slice-os did not put there: {count:,} ({', '.join(ids)}); it leaves "
            "them out",
            f"delete them: {asker.client.curl(path, 'POST')} {JSON} '{query}'",
        )
    diagnosis.count_incomplete(documents, abs(begun - documents))
    # The last passage of each says how many there are.
    expected = documents + before
    if begun == documents and expected != passages:
        diagnosis.add(
            "error",
            f"The documents should have {expected:,} passages, and there are {passages:,}",
            "run the same 'slice-os index' again: it finds the documents that are not whole.",
        )
    if not passages and (full := full_beside(cluster)):  # as _rollover leaves it
        back = naming(asker.client, full, cluster.index)
        diagnosis.add(
            "error",
            f"{asker.address.name} names the empty {cluster.index}, while {full} holds documents "
            "(_rollover does that)",
            f"let it name that again: {back}",
        )
    return True

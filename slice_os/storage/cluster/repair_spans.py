"""Stored spans that are wrong or unsafe: finding them, and making them again from the words.

Of a document with 150 or more nested ones the k-NN plugin derives a wrong `_source`
(docs/known-issues.md), and whatever is made from that is wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson

from slice_os.errors import RefusedError
from slice_os.storage.cluster import passages as stored
from slice_os.storage.cluster.cluster_errors import WRITE_RETRY_TIMEOUT, reason_of
from slice_os.storage.cluster.filters import filter_tokens
from slice_os.storage.cluster.requests import Cluster
from slice_os.storage.cluster.responses import PassageSource, RevisedHit
from slice_os.storage.cluster.settings import Layout
from slice_os.text.filters import flat_metadata

PAGE = 20
"""Passages that are read with their span vectors: some 5 MB."""


def crowded() -> dict[str, Any]:
    """Return the query for the passages with more spans than the k-NN plugin can derive."""
    each = {"constant_score": {"filter": {"match_all": {}}, "boost": 1.0}}
    counted = {"nested": {"path": "spans", "score_mode": "sum", "query": each}}
    return {"function_score": {"query": counted, "min_score": stored.MOST_SPANS + 1}}


def not_crowded() -> dict[str, Any]:
    """Return the query for all other passages."""
    return {"bool": {"must_not": [crowded()]}}


def complaint(source: PassageSource, layout: Layout) -> str:
    """Return what is wrong with a passage's `_source`, whole: "spans", "filters" or nothing."""
    words = stored.packed_passage(source["words"])
    first = {start: number for number, start in enumerate(words.starts.tolist())}
    last = {end: number + 1 for number, end in enumerate(words.ends.tolist())}
    try:
        spans = [(first[span["start"]], last[span["end"]]) for span in source["spans"]]
    except KeyError:
        return "spans"
    if spans:
        expected = stored.span_vectors(words.vectors, np.array(spans, np.int32), layout)
        vectors = np.array([span["vector"] for span in source["spans"]], expected.dtype)
        if vectors.shape != expected.shape or not np.allclose(vectors, expected, atol=1e-6):
            return "spans"
    metadata = stored.stored_metadata(source)
    typed = stored.typed_fields(metadata, layout.fields)
    if filter_tokens(metadata) != sorted(source.get("filters", [])):
        return "filters"
    return "" if flat_metadata(source.get("fields", {})) == typed else "filters"


def repair_spans(cluster: Cluster, layout: Layout) -> int:
    """Write anew what is crowded and what `complaint` complains of; return how many passages.

    From what is stored, without an encoder. What somebody else writes meanwhile is left as it is.

    Raises:
        ClusterError: the cluster cannot be reached or refuses.
    """
    options = {"seq_no_primary_term": True}
    written = 0
    without_spans = {"_source": {"excludes": ["spans"]}}
    for page in cluster.pages({"query": crowded(), **without_spans, **options}, RevisedHit, PAGE):
        written += _rewrite(cluster, layout, page)
    whole = cluster.dialect.whole_source
    for page in cluster.pages({"query": not_crowded(), **whole, **options}, RevisedHit, PAGE):
        wrong = [hit for hit in page if complaint(hit["_source"], layout)]
        written += _rewrite(cluster, layout, wrong)
    cluster.refresh(WRITE_RETRY_TIMEOUT)
    return written


def _rewrite(cluster: Cluster, layout: Layout, hits: list[RevisedHit]) -> int:
    lines: list[bytes] = []
    for hit in hits:
        source = {name: value for name, value in hit["_source"].items() if name != "fields"}
        metadata = stored.stored_metadata(source)
        vectors = stored.vector_fields(stored.packed_passage(hit["_source"]["words"]), layout)
        source |= {name: vectors[name] for name in ("spans", "tolerance")}
        source["filters"] = filter_tokens(metadata)
        if typed := stored.typed_fields(metadata, layout.fields):
            source["fields"] = typed
        unchanged = {"if_seq_no": hit["_seq_no"], "if_primary_term": hit["_primary_term"]}
        lines.append(orjson.dumps({"index": {"_id": hit["_id"], **unchanged}}))
        lines.append(orjson.dumps(source, option=orjson.OPT_SERIALIZE_NUMPY))
    if not lines:
        return 0
    results = cluster.bulk(b"\n".join((*lines, b"")), len(hits), WRITE_RETRY_TIMEOUT)
    for result in results:
        if "error" in result and result["status"] != 409:
            raise RefusedError(f"{cluster.url} refuses a passage: {reason_of(result)}.")
    return sum("error" not in result for result in results)

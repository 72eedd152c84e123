"""Stored spans that are wrong, or in danger: finding them, and making them again from the words.

Of a document with 150 or more nested ones the k-NN plugin derives a wrong `_source`
(docs/known-issues.md). Indexes made before slice-os stored at most 149 spans of a passage hold such
documents, and whatever was made from their `_source` since is wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import orjson

from slice_os.errors import RefusedError
from slice_os.storage.cluster import passages as made
from slice_os.storage.cluster.cluster_errors import WRITE_RETRY_TIMEOUT, reason_of
from slice_os.storage.cluster.query import filter_tokens
from slice_os.storage.cluster.requests import Cluster
from slice_os.storage.cluster.response_checks import reading, reads_answers
from slice_os.storage.cluster.settings import Layout
from slice_os.storage.cluster.template import ADDED, FORMAT
from slice_os.storage.contract import IndexMeta
from slice_os.text.filters import flat_metadata

PAGE = 20
"""Passages that are read with their span vectors: some 5 MB."""
NO_SPANS = {"excludes": ["spans"]}


def crowded() -> dict[str, Any]:
    """Return the query for the passages with more spans than the k-NN plugin can derive."""
    each = {"constant_score": {"filter": {"match_all": {}}, "boost": 1.0}}
    counted = {"nested": {"path": "spans", "score_mode": "sum", "query": each}}
    return {"function_score": {"query": counted, "min_score": made.MOST_SPANS + 1}}


def complaint(source: Mapping[str, Any], layout: Layout) -> str:
    """Return what is wrong with a passage's `_source`, whole: "spans", "filters" or nothing."""
    words = made.packed_passage(source["words"])
    first = {start: number for number, start in enumerate(words.starts.tolist())}
    last = {end: number + 1 for number, end in enumerate(words.ends.tolist())}
    try:
        spans = [(first[one["start"]], last[one["end"]]) for one in source["spans"]]
    except KeyError:
        return "spans"
    if spans:
        wanted = made.span_vectors(words.vectors, np.array(spans, np.int32), layout)
        stored = np.array([one["vector"] for one in source["spans"]], wanted.dtype)
        if stored.shape != wanted.shape or not np.allclose(stored, wanted, atol=1e-6):
            return "spans"
    metadata = made.stored_metadata(source)
    follows = filter_tokens(metadata) == sorted(source.get("filters", []))
    typed = made.typed_fields(metadata, layout.fields)
    follows = follows and flat_metadata(source.get("fields", {})) == typed
    return "" if follows else "filters"


def count_crowded(cluster: Cluster) -> int:
    """Return how many passages `crowded` finds."""
    return cluster.total(crowded())


@reads_answers
def survey(cluster: Cluster, layout: Layout) -> Counter[str]:
    """Return how often `complaint` says what, of `PAGE` random ones of all that is not crowded."""
    rest = {"bool": {"must_not": [crowded()]}}
    at_random = {"random_score": {"seed": 7, "field": "_seq_no"}, "boost_mode": "replace"}
    drawn = {"function_score": {"query": rest, **at_random}}
    body = {"query": drawn, "size": PAGE, **cluster.dialect.whole_source}
    hits = cluster.search(body)["hits"]["hits"]
    return Counter(complaint(hit["_source"], layout) for hit in hits)


def mend(
    cluster: Cluster,
    meta: IndexMeta,
    layout: Layout,
    on_progress: Callable[[float], object] = lambda share: None,
    *,
    everything: bool = False,
) -> int:
    """Write anew what `crowded` finds; count it.

    With `everything`, or where a sample of the others shows some, what `complaint` finds too.
    From what is stored, without an encoder. What somebody else writes meanwhile is left as it is.

    Raises:
        ClusterError: the cluster cannot be reached or refuses.
    """
    if meta.format < FORMAT:
        cluster.put_mapping({"properties": ADDED})
    sample = survey(cluster, layout)
    everything = everything or sample[""] < sample.total()
    mended = 0
    for hits in _unsound(cluster, layout, on_progress, everything):
        mended += _rewrite(cluster, layout, hits)
    cluster.refresh(WRITE_RETRY_TIMEOUT)
    if meta.format < FORMAT:
        with cluster.alone():
            cluster.note(format=FORMAT)
    return mended


def _unsound(
    cluster: Cluster,
    layout: Layout,
    on_progress: Callable[[float], object],
    everything: bool,
) -> Iterator[list[dict[str, Any]]]:
    """Yield the passages to be written anew, page by page, without their spans."""
    searches: list[dict[str, Any]] = [{"query": crowded(), "_source": NO_SPANS}]
    if everything:
        rest = {"bool": {"must_not": [crowded()]}}
        searches.append({"query": rest, **cluster.dialect.whole_source})
    total, done = sum(cluster.total(one["query"]) for one in searches), 0
    for body in searches:
        for page in cluster.pages({**body, "seq_no_primary_term": True}, PAGE):
            whole = body.get("_source") is not NO_SPANS
            with reading(cluster.url):
                odd = [hit for hit in page if not whole or complaint(hit["_source"], layout)]
            yield odd
            done += len(page)
            on_progress(min(done / max(total, 1), 1.0))


@reads_answers
def _rewrite(cluster: Cluster, layout: Layout, hits: list[dict[str, Any]]) -> int:
    lines: list[bytes] = []
    for hit in hits:
        source = {name: value for name, value in hit["_source"].items() if name != "fields"}
        metadata = made.stored_metadata(source)
        vectors = made.vector_fields(made.packed_passage(source["words"]), layout)
        source |= {name: vectors[name] for name in ("spans", "tolerance")}
        source["filters"] = filter_tokens(metadata)
        if typed := made.typed_fields(metadata, layout.fields):
            source["fields"] = typed
        unchanged = {"if_seq_no": hit["_seq_no"], "if_primary_term": hit["_primary_term"]}
        lines.append(orjson.dumps({"index": {"_id": hit["_id"], **unchanged}}))
        lines.append(orjson.dumps(source, option=orjson.OPT_SERIALIZE_NUMPY))
    if not lines:
        return 0
    body = b"\n".join((*lines, b""))
    done = 0
    for result in cluster.bulk(body, len(hits), WRITE_RETRY_TIMEOUT):
        if "error" in result and result["status"] != 409:
            raise RefusedError(f"{cluster.url} refuses a passage: {reason_of(result)}.")
        done += "error" not in result
    return done

"""Whether documents of an index are what was written, field by field; making their spans anew.

Of a document with 150 or more nested ones the k-NN plugin derives a wrong `_source`
(docs/known-issues.md), and whatever is made from that is wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import orjson

from slice_os.errors import IndexDamagedError, RefusedError
from slice_os.spans import PackedPassage
from slice_os.storage.cluster import passages as stored
from slice_os.storage.cluster.candidates import WINDOW, stored_text
from slice_os.storage.cluster.cluster_errors import WRITE_RETRY_TIMEOUT, blocked_error, reason_of
from slice_os.storage.cluster.dialect import Dialect
from slice_os.storage.cluster.hold import await_block
from slice_os.storage.cluster.requests import WRITTEN, Cluster
from slice_os.storage.cluster.responses import DocumentHit, PassageHit, PassageSource, RevisedHit
from slice_os.storage.cluster.searches import OURS
from slice_os.storage.cluster.settings import Layout
from slice_os.storage.filters import filter_tokens
from slice_os.storage.findings import Diagnosis
from slice_os.text import with_neighbours
from slice_os.text.filters import flat_metadata
from slice_os.types import Passage

PAGE = 20
"""Passages that are read with their span vectors: some 5 MB."""
_ANEW = "delete these with 'slice-os delete' and index them again."
_WRONG = {
    "whole": (
        "Documents that are not whole",
        "if no run is under way, run the same 'slice-os index' again: it finds these documents.",
    ),
    "text": ("Documents whose text or offsets are not what was indexed", _ANEW),
    "fields": ("Documents with fields that are not what was indexed", _ANEW),
    "words": ("Documents whose word vectors cannot be read, or are not those of the text", _ANEW),
}
_NOT_STAMPED = ("stamp", "words", "word_count", "tolerance", "spans")


def check_documents(
    cluster: Cluster,
    layout: Layout,
    diagnosis: Diagnosis,
    sample: int | None,
    on_progress: Callable[[float], object] = lambda share: None,
) -> Counter[str]:
    """Add what is wrong with a sample of documents, or all, from one state of the index.

    Returns:
        How often `complaint` says what of their passages.
    """
    clauses: list[dict[str, Any]] = [OURS]
    if sample is not None:
        clauses.append({"terms": {"document": _drawn(cluster, min(sample, WINDOW))}})
    query = {"bool": {"filter": clauses}}
    total, done, documents = cluster.total(query), 0, 0
    wrong: dict[str, list[str]] = {}
    complaints: Counter[str] = Counter()
    for name, sources in _documents(cluster, query):
        for what in dict.fromkeys(_wrong(sources)):
            wrong.setdefault(what, []).append(name)
        complaints.update(
            complaint(source, layout, cluster.dialect)
            for source in sources
            # Of more the k-NN plugin derives a wrong _source.
            if len(source.get("spans", ())) <= stored.MOST_SPANS
        )
        documents, done = documents + 1, done + len(sources)
        on_progress(min(done / max(total, 1), 1.0))
    del complaints["words"]  # of which the documents are named
    for what, names in wrong.items():
        sentence, advice = _WRONG[what]
        some = ", ".join(names[:3])
        sentence += f": {len(names):,} of the {documents:,} looked at ({some})"
        diagnosis.add("error", sentence, advice)
    if documents and not wrong:
        sentence = "Texts, fields and words are what was indexed, of documents"
        diagnosis.add("ok", f"{sentence}: {documents:,}.")
    return complaints


def _documents(
    cluster: Cluster, query: Mapping[str, Any]
) -> Iterator[tuple[str, list[PassageSource]]]:
    """Yield the documents with all that is stored of their passages, from one state."""
    order = {"query": query, "sort": [{"document": "asc"}, {"passage": "asc"}, "_shard_doc"]}
    pages = cluster.pages({**order, **cluster.dialect.whole_source}, PassageHit, PAGE)
    sources = (hit["_source"] for page in pages for hit in page)
    for name, passages in groupby(sources, key=lambda source: source["document"]):
        yield name, list(passages)


def _drawn(cluster: Cluster, count: int) -> list[str]:
    drawn = {
        "query": {"term": {"passage": 0}},
        "random_score": {"seed": 11, "field": "_seq_no"},
        "boost_mode": "replace",
    }
    body = {"query": {"function_score": drawn}, "size": count, "_source": ["document"]}
    return [hit["_source"]["document"] for hit in cluster.search(body, list[DocumentHit])]


def _wrong(sources: Sequence[PassageSource]) -> Iterator[str]:
    """Yield what is wrong with the passages of a document, by the names of `_WRONG`."""
    last = sources[-1]
    if "document_hash" not in last:
        return  # a run was broken off, or goes on: `count_incomplete` counts these
    are_all = [source["passage"] for source in sources] == list(range(len(sources)))
    stamps = [source.get("stamp", "") for source in sources[:-1]]
    if not are_all or last.get("document_digest") != stored.digest(stamps):
        yield "whole"
        return
    passages = with_neighbours([stored_text(source) for source in sources])
    for source, passage in zip(sources, passages, strict=True):
        length = passage.end - passage.start
        if passage.hash != source.get("content_hash") or length != len(passage.text):
            yield "text"
        fields = {name: value for name, value in source.items() if name not in _NOT_STAMPED}
        if stored.fingerprint(fields) != source.get("stamp"):
            yield "fields"
        if not _fits(_words(source), source, passage):
            yield "words"


def _words(source: PassageSource) -> PackedPassage | None:
    try:
        return stored.packed_passage(source.get("words", ""))
    except IndexDamagedError:
        return None


def _fits(packed: PackedPassage | None, source: PassageSource, passage: Passage) -> bool:
    """Tell whether words can be those of a passage's text."""
    if packed is None or packed.own_words(passage) != source.get("word_count"):
        return False
    ordered = (packed.starts < packed.ends).all()
    return bool(ordered and packed.ends.max() <= len(passage.text))


def crowded() -> dict[str, Any]:
    """Return the query for the passages with more spans than the k-NN plugin can derive."""
    each = {"constant_score": {"filter": {"match_all": {}}, "boost": 1.0}}
    counted = {"nested": {"path": "spans", "score_mode": "sum", "query": each}}
    return {"function_score": {"query": counted, "min_score": stored.MOST_SPANS + 1}}


def not_crowded() -> dict[str, Any]:
    """Return the query for all other passages of ours."""
    return {"bool": {"filter": [OURS], "must_not": [crowded()]}}


def complaint(source: PassageSource, layout: Layout, dialect: Dialect) -> str:
    """Return what is wrong with a passage's `_source`, whole: a word of these, or nothing.

    "words" cannot be read; "spans" are not theirs; "filters" are not those of the metadata.
    """
    words = _words(source)
    if words is None:
        return "words"
    stored_spans = source.get("spans", [])
    first = {start: number for number, start in enumerate(words.starts.tolist())}
    last = {end: number + 1 for number, end in enumerate(words.ends.tolist())}
    try:
        spans = [(first[span["start"]], last[span["end"]]) for span in stored_spans]
    except KeyError:
        return "spans"
    if spans:
        expected = stored.span_vectors(words.vectors, np.array(spans, np.int32), layout)
        try:
            vectors = dialect.unpacked_vectors([span["vector"] for span in stored_spans], layout)
        except (ValueError, OverflowError):
            return "spans"
        if vectors.shape != expected.shape or not np.allclose(vectors, expected, atol=1e-6):
            return "spans"
    metadata = stored.stored_metadata(source)
    typed = stored.typed_fields(metadata, layout.fields)
    if filter_tokens(metadata) != sorted(source.get("filters", [])):
        return "filters"
    return "" if flat_metadata(source.get("fields", {})) == typed else "filters"


def survey(cluster: Cluster, layout: Layout) -> Counter[str]:
    """Return how often `complaint` says what, of `PAGE` random passages that are not crowded."""
    at_random = {"random_score": {"seed": 7, "field": "_seq_no"}, "boost_mode": "replace"}
    drawn = {"function_score": {"query": not_crowded(), **at_random}}
    body = {"query": drawn, "size": PAGE, **cluster.dialect.whole_source}
    hits = cluster.search(body, list[PassageHit])
    return Counter(complaint(hit["_source"], layout, cluster.dialect) for hit in hits)


def add_complaints(cluster: Cluster, diagnosis: Diagnosis, complaints: Counter[str]) -> None:
    """Add how many passages have too many spans, and what is wrong with those of others."""
    repair = f"'slice-os doctor --repair --index {cluster.address}'"
    many, looked_at = cluster.total(crowded()), f"{complaints.total():,} looked at"
    diagnosis.facts["passages_of_150_spans"] = many
    if many:
        diagnosis.add(
            "error",
            f"Passages with more than {stored.MOST_SPANS} spans: {many:,}. The k-NN plugin derives "
            "a wrong _source of them, so that _reindex, _update and the recovery of a replica ruin "
            "them",
            f"{repair} makes them anew from the stored words.",
        )
    if complaints["spans"]:
        diagnosis.add(
            "error",
            f"Passages whose stored spans are not those of their words: {complaints['spans']:,} of "
            f"the {looked_at}",
            f"{repair} makes all anew from the stored words.",
        )
    if complaints["words"]:
        diagnosis.add(
            "error",
            f"Passages whose words cannot be read: {complaints['words']:,} of the {looked_at}",
            f"'slice-os check --all --index {cluster.address}' names their documents.",
        )
    if complaints["filters"]:
        diagnosis.add(
            "warning",
            "Passages whose metadata was changed (by _update, say) and their filters were not: "
            f"{complaints['filters']:,} of the {looked_at}",
            f"{repair} has the filters follow.",
        )
    if complaints.total() and complaints[""] == complaints.total() and not many:
        diagnosis.add("ok", "The stored spans that were looked at are those of their words.")


def repair_spans(cluster: Cluster, layout: Layout) -> int:
    """Write anew what is crowded and what `complaint` complains of; return how many passages.

    From what is stored, without an encoder. What somebody else writes meanwhile is left as it is.

    Raises:
        ClusterError: the cluster cannot be reached or refuses.
    """
    cluster.change_alias("add", WRITTEN.format(cluster.index))
    options = {"seq_no_primary_term": True}
    written = 0
    without_spans = {"_source": {"excludes": ["spans"]}}
    for page in cluster.pages({"query": crowded(), **without_spans, **options}, RevisedHit, PAGE):
        written += _rewrite(cluster, layout, page)
    whole = cluster.dialect.whole_source
    for page in cluster.pages({"query": not_crowded(), **whole, **options}, RevisedHit, PAGE):
        wrong = [
            hit
            for hit in page
            if complaint(hit["_source"], layout, cluster.dialect) in ("spans", "filters")
        ]
        written += _rewrite(cluster, layout, wrong)
    cluster.refresh(WRITE_RETRY_TIMEOUT)
    return written


def _rewrite(cluster: Cluster, layout: Layout, hits: list[RevisedHit]) -> int:
    lines: list[bytes] = []
    for hit in hits:
        source = {name: value for name, value in hit["_source"].items() if name != "fields"}
        metadata = stored.stored_metadata(source)
        vectors = stored.vector_fields(
            stored.packed_passage(hit["_source"].get("words", "")), layout, cluster.dialect
        )
        source |= {name: vectors[name] for name in ("spans", "tolerance")}
        source["filters"] = filter_tokens(metadata)
        if typed := stored.typed_fields(metadata, layout.fields):
            source["fields"] = typed
        unchanged = {"if_seq_no": hit["_seq_no"], "if_primary_term": hit["_primary_term"]}
        lines.append(orjson.dumps({"index": {"_id": hit["_id"], **unchanged}}))
        lines.append(orjson.dumps(source, option=orjson.OPT_SERIALIZE_NUMPY))
    if not lines:
        return 0
    body = b"\n".join((*lines, b""))
    results = cluster.bulk(body, len(hits), WRITE_RETRY_TIMEOUT)
    blocks = (blocked_error(cluster.url, reason_of(result)) for result in results)
    if blocked := next(filter(None, blocks), None):
        await_block(cluster, blocked)
        results = cluster.bulk(body, len(hits), WRITE_RETRY_TIMEOUT)
    for result in results:
        if "error" in result and result["status"] != 409:
            raise RefusedError(f"{cluster.url} refuses a passage: {reason_of(result)}.")
    return sum("error" not in result for result in results)

"""Whether documents of an index of a cluster are what was written, field by field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from slice_os.errors import ClusterError, IndexDamagedError
from slice_os.operate.findings import Notes
from slice_os.spans import PackedPassage
from slice_os.storage.cluster import passages as made
from slice_os.storage.cluster.candidates import WINDOW, stored_text
from slice_os.storage.cluster.passages import MOST_SPANS
from slice_os.storage.cluster.read import ClusterBackend
from slice_os.storage.cluster.repair_spans import PAGE, complaint, count_crowded, survey
from slice_os.storage.cluster.requests import Cluster
from slice_os.storage.cluster.response_checks import reads_answers, typed
from slice_os.storage.cluster.settings import Layout
from slice_os.text import with_neighbours
from slice_os.types import Passage

AGAIN = "if no run is under way, run the same 'slice-os index' again: it finds these documents."
ANEW = "delete these with 'slice-os delete' and index them again."
WRONG = {
    "whole": ("Documents that are not whole", AGAIN),
    "text": ("Documents whose text or offsets are not what was indexed", ANEW),
    "fields": ("Documents with fields that are not what was indexed", ANEW),
    "words": ("Documents whose word vectors cannot be read, or are not those of the text", ANEW),
}
_VECTORS = ("words", "word_count", "tolerance", "spans")


@dataclass(slots=True)
class Inspection:
    """How many documents, what is wrong with which, and how often `complaint` says what."""

    documents: int = 0
    wrong: dict[str, list[str]] = field(default_factory=dict)
    complaints: Counter[str] = field(default_factory=Counter)


def inspect(
    cluster: Cluster,
    layout: Layout,
    sample: int | None,
    on_progress: Callable[[float], object] = lambda share: None,
) -> Inspection:
    """Look at a sample of documents, or all, from one state of the index."""
    query: dict[str, Any] = {"match_all": {}}
    if sample is not None:
        query = {"terms": {"document": _drawn(cluster, min(sample, WINDOW))}}
    total, done, found = cluster.total(query), 0, Inspection()
    for passages in _inspected(cluster, layout, query, found):
        done += passages
        on_progress(min(done / max(total, 1), 1.0))
    return found


@reads_answers
def _inspected(
    cluster: Cluster, layout: Layout, query: Mapping[str, Any], found: Inspection
) -> Iterator[int]:
    """Note what is wrong with each document; yield how many passages it has."""
    order = {"query": query, "sort": [{"document": "asc"}, {"passage": "asc"}, "_shard_doc"]}
    pages = cluster.pages({**order, **cluster.dialect.whole_source}, PAGE)
    hits = (hit["_source"] for page in pages for hit in page)
    for name, some in groupby(hits, key=lambda source: source["document"]):
        sources = list(some)
        for what in dict.fromkeys(_wrong(sources)):
            found.wrong.setdefault(what, []).append(name)
        for one in sources:
            # Of more the k-NN plugin derives a wrong _source.
            if len(one["spans"]) <= made.MOST_SPANS and _words(one) is not None:
                found.complaints[complaint(one, layout)] += 1
        found.documents += 1
        yield len(sources)


@reads_answers
def _drawn(cluster: Cluster, count: int) -> list[str]:
    drawn = {
        "query": {"term": {"passage": 0}},
        "random_score": {"seed": 11, "field": "_seq_no"},
        "boost_mode": "replace",
    }
    body = {"query": {"function_score": drawn}, "size": count, "_source": ["document"]}
    hits = cluster.search(body)["hits"]["hits"]
    return [typed(hit["_source"], document=str)[0] for hit in hits]


def _wrong(sources: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what is wrong with the passages of a document, by the names of `WRONG`."""
    last = sources[-1]
    if "document_hash" not in last:
        return  # a run was broken off, or goes on: `complete` counts these
    whole = [one["passage"] for one in sources] == list(range(len(sources)))
    stamps = [one["stamp"] for one in sources[:-1]]
    if not whole or last["document_digest"] != made.digest(stamps):
        yield "whole"
        return
    passages = with_neighbours([stored_text(one) for one in sources])
    for one, passage in zip(sources, passages, strict=True):
        if passage.hash != one["content_hash"] or passage.end - passage.start != len(passage.text):
            yield "text"
        said = {name: one[name] for name in one.keys() - {"stamp", *_VECTORS}}
        if made.fingerprint(said) != one["stamp"]:
            yield "fields"
        if not _fits(_words(one), one, passage):
            yield "words"


def _words(source: Mapping[str, Any]) -> PackedPassage | None:
    try:
        return made.packed_passage(source["words"])
    except (IndexDamagedError, KeyError):
        return None


def _fits(packed: PackedPassage | None, source: Mapping[str, Any], passage: Passage) -> bool:
    """Tell whether words can be those of a passage's text."""
    if packed is None or packed.own_words(passage) != source["word_count"]:
        return False
    ordered = (packed.starts < packed.ends).all()
    return bool(ordered and packed.ends.max() <= len(passage.text))


def report(notes: Notes, found: Inspection) -> None:
    """Say what `inspect` has found, but for the spans."""
    for what, names in found.wrong.items():
        said, advice = WRONG[what]
        some = ", ".join(names[:3])
        notes.find(
            "error", f"{said}: {len(names):,} of the {found.documents:,} looked at ({some})", advice
        )
    if found.documents and not found.wrong:
        notes.find(
            "ok",
            f"Texts, fields and words are what was indexed, of documents: {found.documents:,}.",
        )


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

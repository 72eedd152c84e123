"""Whether documents of an index of a cluster are what was written, field by field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from slice_os.backends.cluster import documents as made
from slice_os.backends.cluster.damaged import reads_answers, typed
from slice_os.backends.cluster.mending import PAGE, complaint
from slice_os.backends.cluster.requests import Cluster
from slice_os.backends.cluster.retrieve import WINDOW, stored_text
from slice_os.backends.cluster.settings import Layout
from slice_os.corpus import with_neighbours
from slice_os.diagnosis.findings import Notes
from slice_os.errors import IndexDamagedError
from slice_os.records import Passage
from slice_os.spans import PackedPassage

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

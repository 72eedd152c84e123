"""A passage as a document of the cluster, and what the cluster knows of a document's passages."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
import orjson
import pybase64

from slice_os.spans import PackedPassage, bounded_cover, prefix_sums
from slice_os.storage.cluster.dialect import Dialect
from slice_os.storage.cluster.settings import Layout
from slice_os.storage.cluster.vectors import field_vectors
from slice_os.storage.contract import StoredDocument
from slice_os.storage.filters import filter_tokens
from slice_os.text.filters import flat_metadata
from slice_os.text.normal_form import normal_form
from slice_os.types import Float32, Int32, Passage, content_hash

MOST_SPANS = 149
"""Nested documents of a passage. Of a document with 150 or more, the k-NN plugin derives a wrong
`_source`, and with it everything that is made of that: `_update`, `_reindex`, the recovery of a
replica by operations (docs/known-issues.md)."""
LONGEST_VALUE = 8_000
"""Bytes of a field of metadata, its name included: Lucene's terms have a longest."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What the cluster knows of one stored passage."""

    id: str
    number: int
    content: str
    fingerprint: str
    document_hash: str | None
    digest: str | None
    words: int


def passage_id(document: str, content: str, occurrence: int) -> str:
    """Return a passage's _id: its document, what it says, and which of its equals it is.

    Derived from the corpus alone, so that a run can be repeated; and from what is said rather
    than from where, so that a passage that has moved keeps its id and its vectors.
    """
    return f"{content_hash(document)}-{content}-{occurrence}"


def fields(
    passage: Passage,
    metadata: Mapping[str, Any],
    source: str,
    declared: Mapping[str, str],
) -> dict[str, Any]:
    """Return all fields of a passage but its vectors; `declared` are those of the settings."""
    plain = json.loads(json.dumps(_finite(metadata), ensure_ascii=False, default=str))
    indexed, unindexed = _split_metadata(plain)
    typed = typed_fields(plain, declared)
    texts = [passage.title, passage.text]
    normal = [normal_form(text) for text in texts]
    return {
        "document": passage.document,
        "source": source,
        "passage": passage.number,
        "title": passage.title,
        "text": passage.text,
        **({"normal_form": normal} if normal != texts else {}),
        "metadata": indexed,
        "unindexed": unindexed,
        "filters": filter_tokens(plain),
        **({"fields": typed} if typed else {}),
        "start": passage.start,
        "end": passage.end,
        "content_hash": passage.hash,
    }


def typed_fields(metadata: Mapping[str, Any], declared: Mapping[str, str]) -> dict[str, Any]:
    """Return the declared fields that the metadata has a value for."""
    flat = flat_metadata(metadata)
    return {name: flat[name] for name in declared if flat.get(name) not in (None, "", [])}


def stored_metadata(source: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata that `fields` was given; what is nested too deeply is JSON text."""
    return {**source.get("metadata", {}), **source.get("unindexed", {})}


def _finite(value: Any) -> Any:
    """Return a value with NaN, infinities and what Java's long cannot hold as texts."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): _finite(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(member) for member in value]
    return value


def _split_metadata(metadata: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the metadata that can be indexed, and the rest; what is nested too deeply as JSON."""
    indexed: dict[str, Any] = {}
    unindexed: dict[str, Any] = {}
    for name, value in metadata.items():
        text = json.dumps(value)
        try:
            orjson.dumps(value)
        except TypeError:  # nested too deeply
            unindexed[name] = text
        else:
            fits = name and len(name.encode()) + len(text) <= LONGEST_VALUE
            (indexed if fits else unindexed)[name] = value
    return indexed, unindexed


def vector_fields(
    packed: PackedPassage, layout: Layout, dialect: Dialect, passage: Passage | None = None
) -> dict[str, Any]:
    """Return the fields `words`, `spans`, `tolerance`, and `word_count`.

    Words that the passage before holds too, as `passage` knows, are not counted.
    """
    words = packed.vectors
    spans, tolerance = bounded_cover(words, layout.tolerance, MOST_SPANS, packed.max_words)
    vectors = span_vectors(words, spans, layout)
    points_somewhere = vectors.any(axis=1)  # what does not is near nothing
    spans, vectors = spans[points_somewhere], vectors[points_somewhere]
    starts = packed.starts[spans[:, 0]].tolist()
    ends = packed.ends[spans[:, 1] - 1].tolist()
    return {
        "words": pybase64.b64encode_as_string(packed.to_bytes()),
        "word_count": packed.own_words(passage) if passage else len(packed),
        "tolerance": tolerance,
        "spans": [
            {"start": start, "end": end, "vector": vector}
            for start, end, vector in zip(
                starts, ends, dialect.packed_vectors(vectors), strict=True
            )
        ],
    }


def packed_passage(words: str) -> PackedPassage:
    """Return the packed passage that a field `words` holds.

    Raises:
        IndexDamagedError: it holds something else.
    """
    try:
        data = pybase64.b64decode(words, validate=True)
    except ValueError:
        data = b""
    return PackedPassage.from_bytes(data)


def span_vectors(words: Float32, spans: Int32, layout: Layout) -> npt.NDArray[Any]:
    """Return the vectors of spans ``[K, 2]`` of words ``[N, d]`` as an index stores them."""
    sums = prefix_sums(words)
    return field_vectors(
        sums[spans[:, 1]] - sums[spans[:, 0]], layout.vector_type, layout.dimensions
    )


def fingerprint(body: Mapping[str, Any]) -> str:
    """Return the hash of a passage's fields, but for its vectors: equal needs no sending."""
    return content_hash(body)


def digest(fingerprints: Iterable[str]) -> str:
    """Return the hash of the fingerprints of a document's passages, in order."""
    return content_hash(*fingerprints)


def index_operation(id_: str, body: Mapping[str, Any]) -> bytes:
    """Return the lines of a _bulk body that put a document."""
    action = orjson.dumps({"index": {"_id": id_}})
    return b"\n".join((action, orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY), b""))


def delete_operation(id_: str) -> bytes:
    """Return the line of a _bulk body that deletes a document."""
    return orjson.dumps({"delete": {"_id": id_}}) + b"\n"


def stored_document(entries: Sequence[Entry]) -> StoredDocument:
    """Return what is stored of a document; its hash only if all its passages are there.

    The last passage says which they are, by a hash of the fingerprints of those before it.
    """
    ordered = sorted(entries, key=lambda entry: entry.number)
    last = ordered[-1]
    are_all = [entry.number for entry in ordered] == list(range(len(ordered)))
    are_all = are_all and last.digest == digest(entry.fingerprint for entry in ordered[:-1])
    return StoredDocument(
        last.document_hash if are_all else None, Counter(entry.content for entry in entries)
    )

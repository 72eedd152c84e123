"""A passage as a document of the cluster, and what the cluster knows of a document's passages."""

from __future__ import annotations

import base64
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
import orjson

from slice_os.backends.base import ClusterSettings, StoredDocument
from slice_os.backends.opensearch.encoding import pack_words, split_metadata, unpack_words
from slice_os.filters import flat_metadata
from slice_os.query import field_vectors, filter_tokens
from slice_os.records import Int32, Passage, Words, content_hash
from slice_os.spans import bounded_cover, prefix_sums, shared_words

MOST_SPANS = 149
"""Nested documents of a passage. Of a document with 150 or more, the k-NN plugin derives a wrong
`_source`, and with it everything that is made of that: `_update`, `_reindex`, the recovery of a
replica by operations (docs/known-issues.md)."""


_NONE: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Entry:
    """What the cluster knows of one stored passage."""

    id: str
    number: int
    content: str
    stamp: str
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
    source: str = "",
    declared: Mapping[str, str] = _NONE,
) -> dict[str, Any]:
    """Return all fields of a passage but its vectors; `declared` are those of the settings."""
    plain = json.loads(json.dumps(_finite(metadata), ensure_ascii=False, default=str))
    indexed, unindexed = split_metadata(plain)
    typed = typed_fields(plain, declared)
    return {
        "document": passage.document,
        "source": source,
        "passage": passage.number,
        "title": passage.title,
        "text": passage.text,
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
        return {str(name): _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return value


def packed_words(words: Words, max_words: int, passage: Passage) -> str:
    """Return the field `words`, from which the others of a passage's vectors follow."""
    return base64.b64encode(pack_words(words, max_words, passage)).decode()


def vector_fields(
    packed: str, max_words: int, settings: ClusterSettings, passage: Passage | None = None
) -> dict[str, Any]:
    """Return the fields `words`, `spans`, `tolerance`, and `word_count`.

    Words that the passage before holds too, as `passage` knows, are not counted.
    """
    stored, _ = unpack_words(packed)
    spans, tolerance = bounded_cover(stored.vectors, settings.tolerance, MOST_SPANS, max_words)
    vectors = span_vectors(stored, spans, settings)
    starts = stored.starts[spans[:, 0]].tolist()
    ends = stored.ends[spans[:, 1] - 1].tolist()
    return {
        "words": packed,
        "word_count": len(stored) - (shared_words(stored, passage)[0] if passage else 0),
        "tolerance": tolerance,
        "spans": [
            {"start": start, "end": end, "vector": vector}
            for start, end, vector in zip(starts, ends, vectors, strict=True)
            if vector.any()  # a span that points nowhere is near nothing
        ],
    }


def span_vectors(words: Words, spans: Int32, settings: ClusterSettings) -> npt.NDArray[Any]:
    """Return the vectors of spans ``[K, 2]`` of words as an index stores them, ``[K, d]``."""
    sums = prefix_sums(words.vectors)
    return field_vectors(
        sums[spans[:, 1]] - sums[spans[:, 0]], settings.vector_type, settings.dimensions
    )


def stamp(body: Mapping[str, Any]) -> str:
    """Return the hash of a passage's fields, but for its vectors: equal needs no sending."""
    return content_hash(body)


def digest(stamps: Iterable[str]) -> str:
    """Return the hash of the stamps of a document's passages, in order."""
    return content_hash(*stamps)


def index_operation(id_: str, body: Mapping[str, Any]) -> bytes:
    """Return the lines of a _bulk body that put a document."""
    action = orjson.dumps({"index": {"_id": id_}})
    return b"\n".join((action, orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY), b""))


def delete_operation(id_: str) -> bytes:
    """Return the line of a _bulk body that deletes a document."""
    return orjson.dumps({"delete": {"_id": id_}}) + b"\n"


def stored_document(entries: Sequence[Entry]) -> StoredDocument:
    """Return what is stored of a document; its hash only if all its passages are there.

    The last passage says which they are, by a hash of the stamps of those before it.
    """
    ordered = sorted(entries, key=lambda entry: entry.number)
    last = ordered[-1]
    whole = [entry.number for entry in ordered] == list(range(len(ordered)))
    whole = whole and last.digest == digest(entry.stamp for entry in ordered[:-1])
    return StoredDocument(
        last.document_hash if whole else None, Counter(entry.content for entry in entries)
    )

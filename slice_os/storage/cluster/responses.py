"""What a cluster answers, as types: an answer is decoded into one of them, or it is an error.

Proxies cut answers off and answer something else; here is where that ends. Only what is read is
declared, so that new versions of a server may answer more.
"""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypedDict, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from slice_os.storage.cluster.cluster_errors import UnreadableError

T = TypeVar("T")
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Amount = Annotated[float, Meta(ge=0, le=2.0**63)]
"""A number of things that was computed as a float."""
Score = Annotated[float, Meta(ge=-(2.0**63), le=2.0**63)]
Digits = Annotated[str, Meta(pattern="^[0-9]+$")]
Nonempty = Annotated[list[T], Meta(min_length=1)]


def decoded(answer: Any, kind: type[T], url: str, at: str = "") -> T:
    """Return what an answer of the cluster at an address holds at a path, as a type.

    The path is made of the names of objects within each other: ``hits/total``.

    Raises:
        UnreadableError: it is something else.
    """
    try:
        return msgspec.convert(nested(answer, *at.split("/")) if at else answer, kind)
    except msgspec.ValidationError as exc:
        where = f" in {at}" if at else ""
        raise UnreadableError(url, f"{exc}{where}") from exc


def nested(value: Any, *names: str) -> Any:
    """Return a value of objects within each other; None where one is missing."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


# Hits


class Total(Struct):
    """How many passages a search finds."""

    value: Count


class Hits(Struct, Generic[T]):
    """The hits of a search that counts what it finds."""

    hits: list[T]
    total: Total


class _Described(TypedDict, total=False):
    title: str
    source: str
    metadata: dict[str, Any]
    unindexed: dict[str, Any]


class DocumentSource(_Described):
    """What each passage says of its document."""

    document: str


class Span(TypedDict):
    """A stored span."""

    start: int
    end: int
    vector: list[Score] | str


class _Stored(DocumentSource, total=False):
    document_hash: str
    document_digest: str
    content_hash: str
    stamp: str
    filters: list[str]
    fields: dict[str, Any]
    word_count: int
    tolerance: float
    spans: list[Span]


class PassageText(_Stored):
    """A passage as it is stored: its text, and what else was asked for."""

    passage: int
    start: int
    end: int
    text: str


class _MaybeWords(TypedDict, total=False):
    words: str


class PassageSource(PassageText, _MaybeWords):
    """A passage that may have been asked for without its words."""


class _StoredSource(PassageText):
    words: str


class IdHit(TypedDict):
    """A hit of which no more is asked for."""

    _id: str


class AnyHit(IdHit, total=False):
    """A hit of an index that somebody else has made, which may keep no `_source`."""

    _source: dict[str, Any]


class DocumentHit(IdHit):
    """A hit that says of which document it is."""

    _source: DocumentSource


class PassageHit(IdHit):
    """A passage."""

    _index: str
    _source: PassageSource


class StoredHit(IdHit):
    """A passage that was asked for with its words."""

    _source: _StoredSource


class RevisedHit(PassageHit):
    """A passage, and what tells whether it has changed since."""

    _seq_no: int
    _primary_term: int


class _Named(TypedDict, total=False):
    matched_queries: dict[str, Score] | list[str]


class RankedHit(StoredHit, _Named):
    """A passage with the score that ranks it."""

    _score: Score


class _KeyFields(TypedDict):
    document: Nonempty[str]
    passage: Nonempty[int]


class KeyHit(_Named):
    """A hit that is ranked, by its doc values alone."""

    fields: _KeyFields
    _score: Score


class _OfTheLast(TypedDict, total=False):
    document_hash: Nonempty[str]
    document_digest: Nonempty[str]


class EntryFields(_OfTheLast):
    """The doc values of a passage; the last one of a document has all."""

    document: Nonempty[str]
    passage: Nonempty[int]
    content_hash: Nonempty[str]
    stamp: Nonempty[str]
    word_count: Nonempty[int]


class EntryHit(IdHit):
    """What the cluster knows of a passage, by its doc values."""

    fields: EntryFields


# Aggregations


class DocumentKey(Struct):
    """What tells a document from others; `source` is None in passages of somebody else."""

    document: str
    source: str | None


class _Words(Struct):
    value: Amount


class DocumentBucket(Struct):
    """A document: its passages are counted, their words summed up."""

    key: DocumentKey
    doc_count: Count
    words: _Words


# Other answers


class Shards(Struct):
    """How many shards were asked, and how many have answered."""

    total: Count
    successful: Count
    failed: Count = 0

    @property
    def missing(self) -> int:
        """How many have failed, or have not answered: their nodes are away."""
        return max(self.failed, self.total - self.successful)


class _Refused(TypedDict, total=False):
    error: dict[str, Any] | str


class BulkResult(_Refused):
    """What became of an operation: an HTTP status, and why it was refused."""

    status: int


class IndexSettings(TypedDict, total=False):
    """The settings of an index."""

    uuid: str
    creation_date: Digits
    number_of_shards: Digits
    number_of_replicas: Digits
    refresh_interval: str
    verified_before_close: str
    blocks: dict[str, str | None]
    codec: str
    dense_vector: dict[str, Any]


class _Settings(TypedDict):
    index: IndexSettings


class IndexDescription(TypedDict):
    """What an index is; `mapping.read_meta` says what its mapping holds."""

    aliases: dict[str, dict[str, Any]]
    mappings: dict[str, Any]
    settings: _Settings


class EncoderNotes(Struct):
    """What an index, or a template for some, notes of the encoder that makes it."""

    name: str
    weights_hash: str
    dimension: Count
    phrase_head: str = ""


class VectorNotes(Struct):
    """How the vectors of spans are stored."""

    type: Literal["byte", "float"]
    dimension: Count


class IndexNotes(Struct):
    """``_meta.slice_os`` of an index; the last four come and go."""

    format: int
    encoder: EncoderNotes
    max_words: Count
    passage_words: Count
    tolerance: Score
    vector: VectorNotes
    store: tuple[str, ...] | None = None
    roots: dict[str, str] | None = None
    loading: dict[str, Any] = field(default_factory=dict)
    build: dict[str, Any] = field(default_factory=dict)
    held: dict[str, Any] = field(default_factory=dict)


class Name(TypedDict):
    """What has a name."""

    name: str


class NodePlugins(Name):
    """A node with its plugins."""

    plugins: list[Name]


class PluginRow(Name):
    """A node, by its name, and a plugin that it has."""

    component: str

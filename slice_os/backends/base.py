"""The contract that every backend keeps: what an index can do, wherever it lives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from slice_os.filters import Condition, Filter
from slice_os.records import (
    Document,
    DocumentInfo,
    EncodedPassage,
    Float32,
    Metadata,
    Passage,
    Reject,
    Words,
)

if TYPE_CHECKING:
    from slice_os.spans import QueryWords

Mode = Literal["hybrid", "dense", "lexical"]
FORMAT = 1


@dataclass(frozen=True, slots=True)
class IndexMeta:
    """What an index says of itself; fixed when it is made."""

    encoder: str
    family: str
    dimension: int
    max_words: int = 20
    passage_words: int = 110
    format: int = FORMAT
    store: tuple[str, ...] | None = None
    """The fields of metadata that a hit brings along, None for all; filters know all of them."""

    def stored(self, metadata: Metadata) -> Metadata:
        """Return what a hit brings along of metadata."""
        if self.store is None:
            return metadata
        kept = tuple(f"{name}." for name in self.store)
        return {
            name: value
            for name, value in metadata.items()
            if name in self.store or name.startswith(kept)
        }


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """How an index in a cluster is made; fixed then, but for the replicas."""

    tolerance: float = 0.9
    """The least cosine of a span with the stored span that stands for it (`spans.cover`)."""
    vector_type: Literal["byte", "float"] = "byte"
    dimensions: int | None = None
    """Of the stored span vectors, the first of the encoder's; None for all."""
    engine: Literal["lucene", "faiss"] = "lucene"
    analyzer: str = "english"
    shards: int = 1
    replicas: int = 1
    fields: Mapping[str, str] = field(default_factory=dict)
    """Metadata that is mapped with a type of its own too, name -> type: ``fields.year``."""


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """The size and state of an index."""

    location: str
    backend: str
    meta: IndexMeta
    documents: int
    passages: int
    words: int
    bytes: int
    details: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the status as plain JSON types."""
        return asdict(self)


@dataclass(frozen=True, slots=True, eq=False)
class StoredPassage:
    """A passage as the index holds it.

    `words.vectors` are those stored (dequantized); `norms` is float32 ``[max_words, N]``, row
    l - 1 the norms of the spans of l words by first word, 0 where there is none.
    """

    passage: Passage
    metadata: Metadata
    words: Words
    norms: Float32


@dataclass(frozen=True, slots=True, eq=False)
class Retrieval:
    """One search, ready for a backend: `vector` is the unit query, float32 ``[d]``.

    `words` are the query's, compared one by one with those of the passages that are read; `late` is
    the share of that in the dense score (`backends.relevance`). Pages of the same `reach`, the
    ranks that may be asked for one after the other, are cut from one sequence.
    """

    text: str
    vector: Float32
    lengths: range
    mode: Mode = "hybrid"
    fusion: str = "saturation"
    weight: float | None = None
    filters: Sequence[Condition] = ()
    size: int = 10
    offset: int = 0
    depth: int = 1000
    words: QueryWords | None = None
    late: float = 0.0
    reach: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A retrieved passage and the score that ranks it."""

    score: float
    stored: StoredPassage


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """What is known of a document before it is indexed again."""

    hash: str | None
    """None while its indexing is not complete."""
    passages: Counter[str] = field(default_factory=Counter)
    """How many stored passages have each passage hash, those of a broken-off run included."""


class Writer(ABC):
    """Puts documents into an index; at most one at a time is open on an index.

    A document is begun, its passages are added or kept in order, and it is finished. Nothing is
    visible before it is committed; the writer commits when it sees fit and when it is closed.
    """

    @abstractmethod
    def touch(self, document: str) -> bool:
        """Note that a document is unchanged; False if this run has already seen the id."""

    @abstractmethod
    def begin(self, document: Document) -> bool:
        """Start to replace a document; False (and nothing begun) if this run has seen the id."""

    @abstractmethod
    def add(self, passage: EncodedPassage) -> None:
        """Add an encoded passage to the begun document."""

    @abstractmethod
    def keep(self, passage: Passage) -> None:
        """Add a passage whose stored vectors, found by `Passage.hash`, are used again."""

    @abstractmethod
    def finish(self) -> int:
        """Complete the begun document in place of its former self; return its words."""

    @abstractmethod
    def delete(self, documents: Sequence[str]) -> int:
        """Delete documents by id; return how many there were."""

    @abstractmethod
    def unseen(self) -> Iterator[tuple[str, str]]:
        """Yield the ids and sources of the documents that this run has not seen.

        The first that is asked for commits what was added.
        """

    @abstractmethod
    def remember(self, roots: Mapping[str, str]) -> None:
        """Set the folders under which files have their ids, by prefix (`corpus.roots`)."""

    @abstractmethod
    def commit(self) -> None:
        """Make everything added so far durable."""

    @abstractmethod
    def close(self, *, tidy: bool = True) -> None:
        """Commit what is whole, tidy the index unless told not to, and let the next writer in."""

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(tidy=kind is None)


class Backend(ABC):
    """An index that exists."""

    location: str
    meta: IndexMeta

    @classmethod
    @abstractmethod
    def open(cls, location: str) -> Backend | None:
        """Open the index at a location; None if there is none.

        Raises:
            LocationError: there is something else.
        """

    @classmethod
    @abstractmethod
    def create(
        cls, location: str, meta: IndexMeta, settings: ClusterSettings | None = None
    ) -> Backend:
        """Make an empty index at a location, or open the one that another has made meanwhile."""

    @abstractmethod
    def check(self, settings: Mapping[str, Any]) -> None:
        """Raise LocationError unless the index is as these fields of ClusterSettings say.

        The number of replicas, which may change, is made what it should be.
        """

    @abstractmethod
    def status(self) -> IndexStatus:
        """Return the size and state of the index."""

    @abstractmethod
    def roots(self) -> dict[str, str] | None:
        """Return what `Writer.remember` has set; None: the index was made before there was any."""

    @abstractmethod
    def sources(self) -> Iterator[tuple[str, str]]:
        """Yield the ids and sources of all documents."""

    @abstractmethod
    def stored(self, documents: Sequence[str]) -> dict[str, StoredDocument]:
        """Return what is stored of each of some documents; one that is not stored is left out."""

    @abstractmethod
    def matching(self, filters: Sequence[Filter]) -> list[str]:
        """Return the ids of the documents whose metadata meets all filters."""

    @abstractmethod
    def documents(
        self, filters: Sequence[Filter], size: int, offset: int = 0
    ) -> list[DocumentInfo]:
        """Return `size` documents after the first `offset`, of those that meet all filters.

        Documents that a search can find, in the order of their ids (by Unicode code points).
        """

    @abstractmethod
    def passages(self, document: str, numbers: range | None = None) -> list[Passage]:
        """Return the passages of a document, or those of some numbers, in order; [] if it is not.

        Only those that a search can find.
        """

    @abstractmethod
    def has_field(self, name: str) -> bool:
        """Tell whether the metadata of a document has a field, as filters name it."""

    @abstractmethod
    def fields(self) -> list[str]:
        """Return the names of all fields of metadata; they may be many to read."""

    @abstractmethod
    def retrieve(self, retrieval: Retrieval) -> list[Candidate]:
        """Return `size` candidates after the first `offset`, best score first."""

    @abstractmethod
    def scan(
        self,
        vectors: Float32,
        lengths: Sequence[range],
        cosines: Float32,
        filters: Sequence[Condition] = (),
        on_progress: Callable[[float], object] = lambda share: None,
        exact: bool = False,
    ) -> Iterator[tuple[StoredPassage, list[int]]]:
        """Yield every passage with the phrases of which one of its spans may reach the cosine.

        `vectors` is float32 ``[m, d]``, of unit norm; `lengths` and `cosines` have one entry a
        phrase. A passage that qualifies is always yielded; one just below may be. `on_progress`
        is told now and then what share of the work is done. `exact` asks for a scan of every word
        where the backend would else ask an approximate index which passages to look at.
        """

    @abstractmethod
    def writer(self, on_reject: Callable[[Reject], None] = lambda reject: None) -> Writer:
        """Open the index for writing, or raise IndexLockedError.

        `on_reject` is handed what the index itself refuses, in the thread that writes.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of files and connections."""

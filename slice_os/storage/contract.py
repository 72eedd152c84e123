"""The contract that every backend keeps: what an index can do, wherever it lives."""

from __future__ import annotations

import os
import socket
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from slice_os.encoders import EncoderInfo
from slice_os.errors import EncoderMismatchError
from slice_os.run_stats import Effort
from slice_os.spans import PackedPassage, PhraseBatch
from slice_os.text.filters import Condition, Filter
from slice_os.types import Document, DocumentInfo, Float32, Metadata, Passage, Plain, Reject

if TYPE_CHECKING:
    from slice_os.spans import QueryWords

Mode = Literal["hybrid", "dense", "lexical"]
Order = Literal["degree"]
"""What hits and matches may be sorted by, highest first."""
FORMAT = 2
SHORT_SPANS = 3
"""The shortest span that counts for a query of five words."""


@dataclass(frozen=True, slots=True)
class IndexMeta:
    """Immutable index metadata."""

    encoder: str
    weights_hash: str
    dimension: int
    max_words: int = 20
    passage_words: int = 110
    format: int = FORMAT
    store: tuple[str, ...] | None = None
    """The fields of metadata that a hit brings along, None for all; filters know all of them."""
    phrase_head: str = ""
    """The hash of the phrase head whose norms are stored (`EncoderInfo.phrase_head`)."""

    def check_encoder(self, location: str, info: EncoderInfo) -> None:
        """Raise EncoderMismatchError unless the index was made by an encoder of these weights."""
        if self.weights_hash != info.weights_hash:
            raise EncoderMismatchError(
                f"The index {location} was made by the encoder {self.encoder} (weights "
                f"{self.weights_hash[:12]}), not by {info.name} (weights "
                f"{info.weights_hash[:12]}): give that encoder's folder, or index to a new "
                "location."
            )

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
class IndexStatus(Plain):
    """The size and state of an index."""

    location: str
    backend: str
    meta: IndexMeta
    documents: int
    passages: int
    words: int
    bytes: int
    details: dict[str, Any] = field(default_factory=dict)


BEGUN = {"state": "building"}
"""What is noted of a generation from its first moment on; without a note it would be retired."""


def this_process() -> dict[str, Any]:
    """Return what notes in an index say of the process that wrote them: `host` and `process`."""
    return {"host": socket.gethostname(), "process": os.getpid()}


def is_gone(noted: Mapping[str, Any]) -> bool:
    """Tell whether a process that was noted has ended, as far as can be told from here."""
    if noted.get("host") != socket.gethostname() or os.name == "nt":
        return False
    try:
        os.kill(noted["process"], 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    with suppress(OSError):  # Linux also says whether its parent has yet to take note of its end.
        said = Path(f"/proc/{noted['process']}/stat").read_bytes()
        return said.rpartition(b")")[2].split()[0] in b"ZX"
    return False


@dataclass(frozen=True, slots=True)
class Generation(Plain):
    """One of the indexes behind a location: it is searched, or was, or is to be.

    `state` is ``live``, ``building``, ``ready`` to be made live, ``retired``, or ``rolled back``
    from, which nobody goes back to; `build` says who builds one that is not live, where, since when
    and how far, and which documents of a retired one are not whole.
    """

    number: int
    state: str
    meta: IndexMeta
    settings: dict[str, Any]
    documents: int
    bytes: int
    made: str
    build: dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class StoredPassage:
    """A passage as an index holds it, with the metadata of its document."""

    passage: Passage
    metadata: Metadata
    packed: PackedPassage


@dataclass(frozen=True, slots=True, eq=False)
class SearchQuery:
    """What a backend is to find the candidates of.

    Attributes:
        text: The query; for BM25.
        vector: Its unit vector, float32 ``[d]``.
        lengths: The span lengths it is compared with.
        ranks: Which ranks to return.
        depth: How many passages of each ranking a hybrid search fuses.
        reach: The last rank that this search may be asked for: ranks that are asked for one after
            the other, with the same reach, are cut from one sequence.
        words: The words of the query, for late interaction.
        late: The share of late interaction in the dense score (`engine.rerank`).
    """

    text: str
    vector: Float32
    lengths: range
    mode: Mode = "hybrid"
    fusion: str = "saturation"
    weight: float | None = None
    filters: Sequence[Condition] = ()
    ranks: range = range(10)
    depth: int = 1000
    reach: int = 10
    words: QueryWords | None = None
    late: float = 0.0

    @property
    def is_short(self) -> bool:
        """Whether spans so short are compared that much is near to the query."""
        return self.lengths.start <= SHORT_SPANS


@dataclass(frozen=True, slots=True, eq=False)
class MiningQuery:
    """Phrases, and how near to one of them a span has to be.

    Attributes:
        phrases: The phrases and their thresholds.
        filters: What the passages have to meet.
        graph: Let an approximate index say which passages to read, by their vectors in context
            alone, where there is one; else every word is read.
    """

    phrases: PhraseBatch
    filters: Sequence[Condition] = ()
    graph: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A passage that was found, the score that ranks it, and its BM25 score, if it has one."""

    score: float
    stored: StoredPassage
    bm25: float | None = None


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """What is known of a document before it is indexed again."""

    hash: str | None
    """None while its indexing is not complete."""
    passages: Counter[str] = field(default_factory=Counter)
    """How many stored passages have each passage hash, those of a broken-off run included."""


class Writer(ABC):
    """Puts documents into an index; at most one at a time is open on an index.

    A document is begun, its passages are put or kept in order, and it is finished. Nothing is
    visible before it is committed; the writer commits when it sees fit and when it is closed.
    """

    @abstractmethod
    def touch(self, document: str) -> bool:
        """Note that a document is unchanged; False if this run has already seen the id."""

    @abstractmethod
    def begin(self, document: Document) -> bool:
        """Start to replace a document; False (and nothing begun) if this run has seen the id."""

    @abstractmethod
    def put(self, passage: Passage, packed: PackedPassage) -> None:
        """Add a passage to the begun document."""

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
    def close(self, *, merge: bool = True) -> None:
        """Commit what is whole, merge segments unless told not to, and release the lock."""

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.close(merge=kind is None)


class Backend(ABC):
    """An index that exists."""

    location: str
    meta: IndexMeta
    connection: Mapping[str, Any] = MappingProxyType({})
    """The options that it was opened with."""
    ranks_at_once: int = 100
    """Candidates whose words are read at once where a search goes on through the ranks: 20 MB."""

    @cached_property
    def effort(self) -> Effort:
        """What work on the index has taken since it was opened."""
        return Effort()

    @classmethod
    @abstractmethod
    def open(cls, location: str, **options: Any) -> Backend | None:
        """Open the index at a location; None if there is none.

        `options` are how to connect to a cluster (`backends.connection`).

        Raises:
            LocationError: there is something else.
        """

    @classmethod
    @abstractmethod
    def create(cls, location: str, meta: IndexMeta, **options: Any) -> Backend:
        """Make an empty index at a location, or open the one that another has made meanwhile.

        `options` are those of `open`, and the ``settings`` that the kind of index knows.
        """

    @abstractmethod
    def check_settings(self, settings: Mapping[str, Any]) -> None:
        """Raise LocationError unless the index was made with these settings.

        Those that may change, as the replicas of a cluster, are made what they should be.
        """

    @abstractmethod
    def status(self) -> IndexStatus:
        """Return the size and state of the index."""

    @abstractmethod
    def count(self) -> int:
        """Return how many complete documents a search can find."""

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
    def read(self, document: str, numbers: range | None = None) -> tuple[Metadata, list[Passage]]:
        """Return the metadata and the passages of a document, or those of some numbers, in order.

        Only those that a search can find; without one, ``({}, [])``.
        """

    @abstractmethod
    def passages(
        self,
        filters: Sequence[Filter] = (),
        after: tuple[str, int] | None = None,
        documents: Sequence[str] | None = None,
    ) -> Iterator[StoredPassage]:
        """Yield all passages of the documents that meet all filters, from one state of the index.

        By the ids of their documents and their numbers; `after` is the document and the number of
        the passage to go on from, `documents` the ids of those that are wanted, all if it is None.
        """

    @abstractmethod
    def has_field(self, name: str) -> bool:
        """Tell whether the metadata of a document has a field, as filters name it."""

    @abstractmethod
    def fields(self) -> list[str]:
        """Return the names of all fields of metadata; they may be many to read."""

    @abstractmethod
    def candidates(self, queries: Sequence[SearchQuery]) -> list[list[Candidate]]:
        """Return for each query the candidates of its ranks, best score first, as they are found.

        Scores may be approximate, but for those of the mode lexical and of fusions of rankings.
        """

    def exactness(self, query: SearchQuery) -> float:
        """Return how exact the order of the candidates is, above 0: 1 if all spans were compared.

        Of a less exact order as many more ranks are reranked.
        """
        return 1.0

    @abstractmethod
    def scan(
        self, query: MiningQuery, on_progress: Callable[[float], object] = lambda share: None
    ) -> Iterator[tuple[StoredPassage, list[int]]]:
        """Yield every passage with the phrases of which one of its spans may reach the cosine.

        A passage that qualifies is always yielded; one just below may be. `on_progress` is told
        now and then what share of the work is done.
        """

    @abstractmethod
    def is_live(self) -> bool:
        """Tell whether this generation is the one that its location names now."""

    def was_live(self) -> bool:
        """Tell the same as was known some seconds ago at most; what only reads may go by that."""
        return self.is_live()

    def forget(self) -> None:
        """Ask again for what is remembered: whether this is live, which fields there are."""
        return

    @abstractmethod
    def generations(self) -> list[Generation]:
        """Return the generations of the location, in order."""

    @abstractmethod
    def generation(self, number: int) -> Backend:
        """Open a generation by its number, live or not."""

    @abstractmethod
    def next_generation(self, meta: IndexMeta, settings: Mapping[str, Any]) -> Backend:
        """Make an empty generation beside this one; settings that are not said are this one's."""

    @abstractmethod
    def note_build(self, build: Mapping[str, Any] | None, token: object = ...) -> bool:
        """Note who builds this generation and how far; None: it is whole and live.

        With a `token` only if what is noted has that one, in one step; else it returns False.
        """

    @abstractmethod
    def swap(self, number: int) -> None:
        """Let the location name the generation of a number instead of this one, in one step.

        Raises:
            LocationError: it does not name this one.
        """

    @abstractmethod
    def drop(self, number: int) -> None:
        """Delete a generation that is not live."""

    @abstractmethod
    def hold(self, *, wait: bool = True) -> AbstractContextManager[None]:
        """Keep writers of this generation off; all that was acknowledged is there then.

        In a folder one that is under way ends first, or, with `wait` false, is an
        `IndexLockedError`; in a cluster it waits, and goes on with the generation that is live
        when this ends (`MovedError`). A generation that is no longer live takes nothing more.
        """

    @abstractmethod
    def changes(self) -> object:
        """Return what is equal to what it was if nothing has been written meanwhile."""

    @abstractmethod
    def writer(
        self,
        on_reject: Callable[[Reject], None] = lambda reject: None,
        former: Writer | None = None,
    ) -> Writer:
        """Open the index for writing, or raise IndexLockedError.

        `on_reject` is handed what the index itself refuses, in the thread that writes. `former`
        is the writer of the generation before, which a `MovedError` has ended: what that had seen
        at its last commit, this one has seen.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of files and connections."""

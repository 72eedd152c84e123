"""What every backend can do, wherever its indexes live.

A backend reads (`Reader`), keeps generations (`Generations`) and opens a `Writer`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from types import MappingProxyType
from typing import Any, Protocol

from slice_os.run_stats import Effort
from slice_os.spans import PackedPassage
from slice_os.storage.records import (
    BEGUN,
    FORMAT,
    Candidate,
    Generation,
    IndexMeta,
    IndexStatus,
    MiningQuery,
    Mode,
    Order,
    SearchQuery,
    StoredDocument,
    StoredPassage,
)
from slice_os.text.filters import Filter
from slice_os.types import Document, DocumentInfo, Metadata, OnProgress, Passage, Reject

__all__ = [
    "BEGUN", "FORMAT", "Backend", "Candidate", "Documents", "Generation", "Generations",
    "IndexMeta", "IndexStatus", "MiningQuery", "Mode", "Order", "Reader", "SearchQuery",
    "StoredDocument", "StoredPassage", "Target", "Writer",
]  # fmt: skip


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
        """Commit, and yield the ids and sources of the documents that this run has not seen."""

    @abstractmethod
    def remember(self, roots: Mapping[str, str]) -> None:
        """Set the folders under which files have their ids, by prefix (`Corpus.under`)."""

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


class Documents(Protocol):
    """Documents with their packed passages, which another index takes."""

    location: str
    meta: IndexMeta

    def roots(self) -> dict[str, str]:
        """As of `Reader`."""

    def sources(self) -> Iterator[tuple[str, str]]:
        """As of `Reader`."""

    def stored(self, documents: Sequence[str]) -> dict[str, StoredDocument]:
        """As of `Reader`."""

    def passages(self, *, documents: Sequence[str]) -> Iterator[StoredPassage]:
        """As of `Reader`."""


class Target(Protocol):
    """What documents are indexed into: a `Backend`, or files for one."""

    location: str
    meta: IndexMeta

    @property
    def effort(self) -> Effort:
        """As of `Backend`."""

    def roots(self) -> dict[str, str]:
        """As of `Reader`."""

    def sources(self) -> Iterator[tuple[str, str]]:
        """As of `Reader`."""

    def stored(self, documents: Sequence[str]) -> dict[str, StoredDocument]:
        """As of `Reader`."""

    def writer(
        self,
        on_reject: Callable[[Reject], None] = lambda reject: None,
        partition: tuple[int, int] | None = None,
    ) -> Writer:
        """As of `Backend`."""


class Reader(ABC):
    """Reads one generation of an index; what it returns is of one state of it."""

    location: str
    meta: IndexMeta
    ranks_at_once: int = 0
    """Candidates that are read together at least, where a search goes on through its ranks."""

    @abstractmethod
    def status(self) -> IndexStatus:
        """Return the size and state of the index."""

    @abstractmethod
    def count(self) -> int:
        """Return how many complete documents a search can find."""

    @abstractmethod
    def roots(self) -> dict[str, str]:
        """Return what `Writer.remember` has set."""

    @abstractmethod
    def sources(self) -> Iterator[tuple[str, str]]:
        """Yield the ids and sources of all documents."""

    @abstractmethod
    def stored(self, documents: Sequence[str]) -> dict[str, StoredDocument]:
        """Return what is stored of each of these documents; those that are not are left out."""

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
        the passage to go on from, `documents` the ids to choose from, all if it is None.
        """

    @abstractmethod
    def has_field(self, name: str) -> bool:
        """Tell whether the metadata of a document has a field, as filters name it."""

    @abstractmethod
    def fields(self) -> list[str]:
        """Return the names of all fields of metadata; they may be many to read."""

    @abstractmethod
    def candidates(self, queries: Sequence[SearchQuery]) -> list[list[Candidate]]:
        """Return for each query the candidates of its ranks, best score first.

        Scores may be approximate, but for those of the mode lexical and of fusions of rankings.
        """

    def exactness(self, query: SearchQuery) -> float:
        """Return how exact the order of the candidates is, above 0: 1 if all spans were compared.

        Of a less exact order as many more ranks are reranked.
        """
        return 1.0

    @abstractmethod
    def scan(
        self, query: MiningQuery, on_progress: OnProgress = lambda share: None
    ) -> Iterator[tuple[StoredPassage, list[int]]]:
        """Yield every passage with the phrases of which one of its spans may reach the cosine.

        A passage that qualifies is always yielded; one just below may be. `on_progress` is told
        now and then what share of the work is done.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of files and connections."""


class Generations(ABC):
    """The generations behind a location, seen from one of them."""

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
        """Make an empty generation beside this one; settings that are not given are this one's."""

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
        `IndexLockedError`; in a cluster it ends with a `MovedError`, and is run again. A generation
        that is no longer live takes nothing more.
        """

    @abstractmethod
    def changes(self) -> object:
        """Return a change token: equal tokens mean no writes in between."""


class Backend(Reader, Generations):
    """An index that exists."""

    connection: Mapping[str, Any] = MappingProxyType({})
    """The options that it was opened with."""

    @cached_property
    def effort(self) -> Effort:
        """What work on the index has taken since it was opened."""
        return Effort()

    @classmethod
    @abstractmethod
    def open(cls, location: str, **options: Any) -> Backend | None:
        """Open the index at a location; None if there is none.

        `options` are how to connect to a cluster (`storage.connection`).

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
    def writer(
        self,
        on_reject: Callable[[Reject], None] = lambda reject: None,
        partition: tuple[int, int] | None = None,
    ) -> Writer:
        """Open the index for writing.

        `on_reject` is handed what the index itself refuses, in the thread that writes. A
        `partition` is the number, from 0, and the count of writers that load it side by side.

        Raises:
            IndexLockedError: another process is writing to it.
            MovedError: another generation is live now.
        """

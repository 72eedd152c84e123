"""Bringing one generation up to date with another: whole documents, from words or from text."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice

from slice_os.encoders import Encoder
from slice_os.encoders.phrase_head import PhraseHead
from slice_os.ingest import LOOKED_UP, index_documents, problem_with
from slice_os.run_stats import Throttle
from slice_os.storage.contract import Backend, StoredDocument, StoredPassage
from slice_os.text import joined
from slice_os.text import with_neighbours as sharing
from slice_os.types import Document, Reject


@dataclass(frozen=True, slots=True)
class StoredCopy(Document):
    """A document put together from its passages, with the hash that its index knows it by."""

    known_hash: str = ""

    @property
    def hash(self) -> str:
        """What tells whether the document has changed: its white space is not all stored."""
        return self.known_hash


class Copier:
    """Makes `target` hold the documents of `live`.

    What it holds already, by their hashes, is left as it is: so this can be broken off at any
    moment and done again, and what was written to `live` meanwhile is met by doing it again.

    Args:
        live: Whose documents.
        target: Where they are to be.
        encoder: To encode their text; None: the stored words are handed over.
        max_rate: The most passages a second.
        on_done: Told how many documents have been looked at.
        on_reject: Handed what cannot be indexed.
        head: The phrase head of `target`, where it is another than that of `live`.

    Raises:
        EncoderMismatchError: the encoder is not that of `target`.
    """

    def __init__(
        self,
        live: Backend,
        target: Backend,
        encoder: Encoder | None,
        max_rate: float | None = None,
        on_done: Callable[[int], object] = lambda documents: None,
        on_reject: Callable[[Reject], None] = lambda reject: None,
        head: PhraseHead | None = None,
    ) -> None:
        if encoder is not None:
            target.meta.check_encoder(target.location, encoder.info)
        self._live, self._target, self._encoder, self._head = live, target, encoder, head
        self._max_rate, self._on_done, self._on_reject = max_rate, on_done, on_reject
        self._throttle, self._taken = Throttle(max_rate), _Taken()
        self.refused: list[str] = []
        """Documents that `target` did not take when all of `live` were last copied."""
        self.half: list[str] = []
        """Those of all documents of `live` that were not whole when they were last copied."""
        self._begun: set[str] | None = None
        self._claimed: Mapping[str, str] | None = None

    def take(
        self, corpus: Iterable[Document], encoder: Encoder, roots: Mapping[str, str] | None
    ) -> int:
        """Index a corpus instead of what `live` has of its documents; return how many.

        What is written to `live` from now on is newer, and is copied by `copy`.
        """
        self._claimed = roots
        report = index_documents(
            self._taken.noted(corpus, self._live),
            self._target,
            encoder,
            on_reject=self._on_reject,
            roots=roots,
            max_rate=self._max_rate,
            on_progress=lambda report: self._on_done(report.documents + report.unchanged),
        )
        return report.documents

    def copy(self, documents: Sequence[str] | None = None) -> int:
        """Copy documents, all or some, and of all delete the others; return how many it did."""
        roots = self._live.roots()
        if self._claimed is not None:
            roots = {**(roots or {}), **self._claimed}
        copied = looked = 0
        begun: set[str] = set()
        refused: set[str] = set()

        def reject(one: Reject) -> None:
            refused.add(one.document)
            self._on_reject(one)

        def wanted() -> Iterator[tuple[StoredCopy, list[StoredPassage]]]:
            nonlocal looked
            sources = self._live.sources()
            if documents is not None:
                sources = ((name, "") for name in documents)
            while some := dict(islice(sources, LOOKED_UP)):
                held = self._live.stored(list(some))
                begun.update(name for name, one in held.items() if one.hash is None)
                for document, passages in self._changed(some, held):
                    self._throttle.take(len(passages))
                    yield document, passages
                looked += len(some)
                self._on_done(looked)

        if self._encoder is not None:
            copies = (document for document, _ in wanted())
            report = index_documents(
                copies,
                self._target,
                self._encoder,
                on_reject=reject,
                roots=roots,
                on_progress=lambda report: self._on_done(looked),
            )
            copied = report.documents
        else:
            with self._target.writer(reject) as writer:
                if roots is not None:
                    writer.remember(roots)
                for document, passages in wanted():
                    writer.begin(document)
                    for one in passages:
                        packed = one.packed.with_head(self._head) if self._head else one.packed
                        writer.put(one.passage, packed)
                    writer.finish()
                    copied += 1
                    self._on_done(looked)
            copied -= len(refused)
        if documents is None:
            copied += self._delete_others()
            self.half, self.refused = sorted(begun), sorted(refused)
        # Those that were whole the first time are being replaced: the target has them as they were.
        self._begun = begun if self._begun is None else self._begun & begun
        return copied

    def left(self) -> list[str]:
        """Return the documents that were never found whole, and of which the target has nothing."""
        begun = sorted(self._begun or ())
        return [name for name in begun if name not in self._target.stored([name])]

    def _changed(
        self, some: Mapping[str, str], held: Mapping[str, StoredDocument]
    ) -> Iterator[tuple[StoredCopy, list[StoredPassage]]]:
        """Yield those of some documents that are to be copied."""
        has, taken = self._target.stored(list(some)), self._taken.hashes(list(some))
        hashes = {name: one.hash for name, one in held.items() if one.hash is not None}
        missing = [
            name for name, known in hashes.items()
            # Of what the corpus has of it nothing whole was taken: it stays as it is.
            if name not in has or has[name].hash is None
            or (has[name].hash != known and taken.get(name) != known)
        ]  # fmt: skip
        found = self._live.passages(documents=missing) if missing else iter(())
        for name, group in groupby(found, key=lambda one: one.passage.document):
            passages = with_neighbours(group)
            first = passages[0]
            text = "\n" * first.passage.start + joined([one.passage for one in passages])
            metadata, title = first.metadata, first.passage.title
            copy = StoredCopy(name, text, title, metadata, some[name], known_hash=hashes[name])
            yield copy, passages

    def _delete_others(self) -> int:
        """Delete the documents that only the target has; return how many.

        One that is just being replaced stays as it was.
        """
        gone: list[str] = []
        sources = self._target.sources()
        while some := [name for name, _ in islice(sources, LOOKED_UP)]:
            held, taken = self._live.stored(some), self._taken.hashes(some)
            gone += [name for name in some if name not in held and taken.get(name, "") is not None]
        if gone:
            with self._target.writer() as writer:
                writer.delete(gone)
        return len(gone)


def with_neighbours(passages: Iterable[StoredPassage]) -> list[StoredPassage]:
    """Return the passages of a document with what they share with their neighbours."""
    found = list(passages)
    whole = sharing([one.passage for one in found])
    return [replace(one, passage=two) for one, two in zip(found, whole, strict=True)]


class _Taken:
    """What an index had of the documents of a corpus when they were read: id -> hash."""

    def __init__(self) -> None:
        # On disk, should it grow; a run reads in one thread and looks up in another.
        self._known = sqlite3.connect("", check_same_thread=False)
        self._known.execute("CREATE TABLE known (id TEXT PRIMARY KEY, hash TEXT) WITHOUT ROWID")

    def noted(self, corpus: Iterable[Document], live: Backend) -> Iterator[Document]:
        """Yield the documents of a corpus; note what the index has of each."""
        documents = iter(corpus)
        while some := list(islice(documents, LOOKED_UP)):
            ids = [one.id for one in some if not problem_with(one)]
            held = live.stored(ids)
            rows = [(name, held[name].hash if name in held else None) for name in ids]
            self._known.executemany("INSERT OR IGNORE INTO known VALUES (?, ?)", rows)
            yield from some

    def hashes(self, documents: Sequence[str]) -> dict[str, str | None]:
        """Return what is noted of some documents, of those that are."""
        query = "SELECT id, hash FROM known WHERE id IN (SELECT value FROM json_each(?))"
        return dict(self._known.execute(query, (json.dumps(documents),)))

"""Bringing one generation up to date with another: whole documents, from words or from text."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby, islice

from slice_os.encoders import Encoder
from slice_os.encoders.phrase_head import PhraseHead
from slice_os.ingest import LOOKED_UP, index_documents, problem_with
from slice_os.run_stats import Throttle
from slice_os.storage.contract import Backend, Documents, StoredDocument, StoredPassage
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
        roots: That `target` has or is to have, beside those of `live`.
        spared: Documents that `target` keeps although `live` has not taken them.

    Raises:
        EncoderMismatchError: the encoder is not that of `target`.
    """

    def __init__(
        self,
        live: Documents,
        target: Backend,
        encoder: Encoder | None,
        max_rate: float | None = None,
        on_done: Callable[[int], object] = lambda documents: None,
        on_reject: Callable[[Reject], None] = lambda reject: None,
        head: PhraseHead | None = None,
        spared: Iterable[str] = (),
        roots: Mapping[str, str] | None = None,
    ) -> None:
        if encoder is not None:
            target.meta.check_encoder(target.location, encoder.info)
        self._live, self._target, self._encoder, self._head = live, target, encoder, head
        self._max_rate, self._on_done, self._on_reject = max_rate, on_done, on_reject
        self._throttle = Throttle(max_rate)
        self._spared = frozenset(spared)
        self._taken: _Taken | None = None
        self._claimed: Mapping[str, str] = roots or {}
        self.refused: list[str] = []
        """Documents that `target` did not take when all of `live` were last copied."""
        self.half: list[str] = []
        """Those of all documents of `live` that were not whole when they were last copied."""
        self._never_whole: set[str] | None = None

    @property
    def took_corpus(self) -> bool:
        """Whether documents of `target` are those of a corpus, not of `live`."""
        return self._taken is not None

    def differing(self) -> list[str]:
        """Return the ids of the documents that one of the two has otherwise, or alone."""
        different, sources = [], self._live.sources()
        while names := [name for name, _ in islice(sources, LOOKED_UP)]:
            held, has = self._live.stored(names), self._target.stored(names)
            different += [
                name for name, stored in held.items()
                if stored.hash is not None and (name not in has or has[name].hash != stored.hash)
            ]  # fmt: skip
        sources = self._target.sources()
        while names := [name for name, _ in islice(sources, LOOKED_UP)]:
            held = self._live.stored(names)
            different += [name for name in names if not (name in held or name in self._spared)]
        return different

    def take(
        self, corpus: Iterable[Document], encoder: Encoder, roots: Mapping[str, str] | None
    ) -> int:
        """Index a corpus instead of what `live` has of its documents; return how many.

        What is written to `live` from now on is newer, and is copied by `copy`.
        """
        self._claimed, self._taken = roots or {}, _Taken()
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

    def copy(self, documents: Mapping[str, str] | None = None) -> int:
        """Copy documents, all or some, and of all delete the others; return how many it did.

        Some are given by their ids, with their sources.
        """
        begun: set[str] = set()
        refused: set[str] = set()
        looked = 0

        def reject(reject: Reject) -> None:
            refused.add(reject.document)
            self._on_reject(reject)

        def changed() -> Iterator[tuple[StoredCopy, list[StoredPassage]]]:
            nonlocal looked
            sources = self._live.sources() if documents is None else iter(documents.items())
            while batch := dict(islice(sources, LOOKED_UP)):
                held = self._live.stored(list(batch))
                begun.update(name for name, stored in held.items() if stored.hash is None)
                for document, passages in self._changed(batch, held):
                    self._throttle.take(len(passages))
                    yield document, passages
                looked += len(batch)
                self._on_done(looked)

        roots = {**self._live.roots(), **self._claimed}
        copied, copies = 0, changed()
        first = next(copies, None)
        if first is not None or roots != self._target.roots():  # else no writer is opened
            copies = chain(() if first is None else (first,), copies)
            copied = self._write(copies, roots, reject, lambda: self._on_done(looked))
            copied -= len(refused) if self._encoder is None else 0
        if documents is None:
            copied += self._delete_others()
            self.half, self.refused = sorted(begun), sorted(refused)
        # Those that were whole the first time are being replaced: the target has them as they were.
        known = self._never_whole
        self._never_whole = begun if known is None else known & begun
        return copied

    def _write(
        self,
        copies: Iterable[tuple[StoredCopy, list[StoredPassage]]],
        roots: Mapping[str, str],
        reject: Callable[[Reject], None],
        on_written: Callable[[], object],
    ) -> int:
        """Write documents to the target, encoded anew or with their words; return how many."""
        if self._encoder is not None:
            report = index_documents(
                (document for document, _ in copies),
                self._target,
                self._encoder,
                on_reject=reject,
                roots=roots,
                on_progress=lambda report: on_written(),
            )
            return report.documents
        copied = 0
        with self._target.writer(reject) as writer:
            writer.remember(roots)
            for document, passages in copies:
                writer.begin(document)
                for stored in passages:
                    packed = stored.packed.with_head(self._head) if self._head else stored.packed
                    writer.put(stored.passage, packed)
                writer.finish()
                copied += 1
                on_written()
        return copied

    def left(self) -> list[str]:
        """Return the documents that were never found whole, and of which the target has nothing."""
        begun = sorted(self._never_whole or ())
        return [name for name in begun if name not in self._target.stored([name])]

    def _changed(
        self, batch: Mapping[str, str], held: Mapping[str, StoredDocument]
    ) -> Iterator[tuple[StoredCopy, list[StoredPassage]]]:
        """Yield those documents, of a batch with their sources, that are to be copied."""
        has, taken = self._target.stored(list(batch)), self._taken_hashes(list(batch))
        hashes = {name: stored.hash for name, stored in held.items() if stored.hash is not None}
        missing = [
            name for name, known in hashes.items()
            # Of what the corpus has of it nothing whole was taken: it stays as it is.
            if name not in has or has[name].hash is None
            or (has[name].hash != known and taken.get(name) != known)
        ]  # fmt: skip
        stored = self._live.passages(documents=missing) if missing else iter(())
        for name, group in groupby(stored, key=lambda stored: stored.passage.document):
            passages = with_neighbours(group)
            first = passages[0]
            text = "\n" * first.passage.start + joined([item.passage for item in passages])
            metadata, title = first.metadata, first.passage.title
            copy = StoredCopy(name, text, title, metadata, batch[name], known_hash=hashes[name])
            yield copy, passages

    def _delete_others(self) -> int:
        """Delete the documents that only the target has; return how many.

        One that is just being replaced stays as it was.
        """
        gone: list[str] = []
        sources = self._target.sources()
        while names := [name for name, _ in islice(sources, LOOKED_UP)]:
            held, taken = self._live.stored(names), self._taken_hashes(names)
            gone += [
                name for name in names
                if not (name in held or name in self._spared or taken.get(name, "") is None)
            ]  # fmt: skip
        if gone:
            with self._target.writer() as writer:
                writer.delete(gone)
        return len(gone)

    def _taken_hashes(self, documents: Sequence[str]) -> dict[str, str | None]:
        return self._taken.hashes(documents) if self._taken else {}


def with_neighbours(stored: Iterable[StoredPassage]) -> list[StoredPassage]:
    """Return the passages of a document with what they share with their neighbours."""
    alone = list(stored)
    passages = sharing([item.passage for item in alone])
    return [replace(item, passage=own) for item, own in zip(alone, passages, strict=True)]


class _Taken:
    """What an index had of the documents of a corpus when they were read: id -> hash."""

    def __init__(self) -> None:
        # On disk, should it grow; a run reads in one thread and looks up in another.
        self._known = sqlite3.connect("", check_same_thread=False)
        self._known.execute("CREATE TABLE known (id TEXT PRIMARY KEY, hash TEXT) WITHOUT ROWID")

    def noted(self, corpus: Iterable[Document], live: Documents) -> Iterator[Document]:
        """Yield the documents of a corpus; note what the index has of each."""
        documents = iter(corpus)
        while batch := list(islice(documents, LOOKED_UP)):
            ids = [document.id for document in batch if not problem_with(document)]
            held = live.stored(ids)
            rows = [(name, held[name].hash if name in held else None) for name in ids]
            self._known.executemany("INSERT OR IGNORE INTO known VALUES (?, ?)", rows)
            yield from batch

    def hashes(self, documents: Sequence[str]) -> dict[str, str | None]:
        """Return what is noted of some documents, of those that are."""
        query = "SELECT id, hash FROM known WHERE id IN (SELECT value FROM json_each(?))"
        return dict(self._known.execute(query, (json.dumps(documents),)))

"""Bringing one generation up to date with another: whole documents, from words or from text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby, islice

from slice_os.backends.base import Backend, StoredPassage
from slice_os.corpus import joined
from slice_os.effort import Throttle
from slice_os.encoder import Encoder
from slice_os.pipeline import LOOKED_UP, index_documents
from slice_os.records import Document, Reject


@dataclass(frozen=True, slots=True)
class StoredCopy(Document):
    """A document put together from its passages, with the hash that its index knows it by."""

    known_hash: str = ""

    @property
    def hash(self) -> str:
        """What tells whether the document has changed: its white space is not all stored."""
        return self.known_hash


def copy_documents(
    live: Backend,
    target: Backend,
    encoder: Encoder | None,
    max_rate: float | None = None,
    on_done: Callable[[int], object] = lambda documents: None,
    on_reject: Callable[[Reject], None] = lambda reject: None,
) -> int:
    """Make `target` hold the documents of `live`, and no others; return how many it did not.

    What it holds already, by their hashes, is left as it is: so this can be broken off at any
    moment and called again, and what was written to `live` meanwhile is met by calling it again.
    Without an encoder the stored words are handed over; with one, the text is encoded; `max_rate`
    passages a second at most.
    """
    roots, throttle = live.roots(), Throttle(max_rate)
    copied = looked = 0

    def wanted() -> Iterator[tuple[StoredCopy, list[StoredPassage]]]:
        nonlocal looked
        for count, copies in _changed(live, target):
            for document, passages in copies:
                throttle.take(len(passages))
                yield document, passages
            looked += count
            on_done(looked)

    if encoder is not None:
        documents = (document for document, _ in wanted())
        report = index_documents(documents, target, encoder, on_reject=on_reject, roots=roots)
        copied = report.documents
    else:
        with target.writer(on_reject) as writer:
            if roots is not None:
                writer.remember(roots)
            for document, passages in wanted():
                writer.begin(document)
                for one in passages:
                    writer.put(one.passage, one.packed)
                writer.finish()
                copied += 1
    return copied + _delete_others(live, target)


def _changed(
    live: Backend, target: Backend
) -> Iterator[tuple[int, list[tuple[StoredCopy, list[StoredPassage]]]]]:
    """Yield some documents at a time: how many were looked at, and those to be copied."""
    sources = live.sources()
    while some := dict(islice(sources, LOOKED_UP)):
        held, has = live.stored(list(some)), target.stored(list(some))
        hashes = {name: one.hash for name, one in held.items() if one.hash is not None}
        missing = [
            name for name, known in hashes.items()
            if name not in has or has[name].hash != known
        ]  # fmt: skip
        found = live.passages(documents=missing) if missing else iter(())
        copies = []
        for name, group in groupby(found, key=lambda one: one.passage.document):
            passages = with_neighbours(group)
            first = passages[0]
            text = "\n" * first.passage.start + joined([one.passage for one in passages])
            metadata, title = first.metadata, first.passage.title
            copy = StoredCopy(name, text, title, metadata, some[name], known_hash=hashes[name])
            copies.append((copy, passages))
        yield len(some), copies


def with_neighbours(passages: Iterable[StoredPassage]) -> list[StoredPassage]:
    """Return the passages of a document with what they share with their neighbours."""
    found = list(passages)
    ends = [0, *(one.passage.end for one in found)]
    starts = [*(one.passage.start for one in found[1:]), 1 << 62]
    return [
        replace(
            one,
            passage=replace(
                one.passage,
                before=max(0, before - one.passage.start),
                after=max(0, one.passage.end - after),
            ),
        )
        for one, before, after in zip(found, ends, starts, strict=False)
    ]


def _delete_others(live: Backend, target: Backend) -> int:
    """Delete the documents that only the target has; return how many."""
    gone: list[str] = []
    sources = target.sources()
    while some := [name for name, _ in islice(sources, LOOKED_UP)]:
        held = live.stored(some)
        gone += [name for name in some if name not in held or held[name].hash is None]
    if gone:
        with target.writer() as writer:
            writer.delete(gone)
    return len(gone)

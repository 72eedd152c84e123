"""Writing to an index of a cluster.

Every operation can be repeated: ids follow from the corpus, and a document counts as complete only
when all of its passages are there (see `stored_document`). So a run that was broken off, however,
is completed by running it again.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from slice_os.errors import ClusterError, GoneError, IndexDamagedError, RefusedError
from slice_os.spans import PackedPassage
from slice_os.storage.cluster import passages
from slice_os.storage.cluster.bulk import BulkSender, Operation
from slice_os.storage.cluster.cluster_errors import WRITE_RETRY_TIMEOUT
from slice_os.storage.cluster.hold import check_live, lift_block
from slice_os.storage.cluster.load_settings import Loading
from slice_os.storage.cluster.requests import WORDS_PAGE, WRITTEN, Cluster
from slice_os.storage.cluster.settings import Layout
from slice_os.storage.contract import Writer
from slice_os.types import Document, Passage, Reject

DELETED_AT_ONCE = 500


class ClusterWriter(Writer):
    """A writer of an index of a cluster; see `Writer` for the contract."""

    def __init__(
        self,
        cluster: Cluster,
        layout: Layout,
        known: dict[str, list[passages.Entry]],
        on_reject: Callable[[Reject], None],
        *,
        is_live: bool,
        loading: Loading,
    ) -> None:
        self._cluster, self._layout, self._known = cluster, layout, known
        self._on_reject = on_reject
        self._roots: Mapping[str, str] = {}
        self._seen = sqlite3.connect("")  # on disk, should it grow
        self._seen.execute("CREATE TABLE seen (id TEXT PRIMARY KEY) WITHOUT ROWID")
        self._generation = cluster.generations() if is_live else None
        if not is_live:  # a retired one takes nothing, until somebody is about to go back to it
            lift_block(cluster)
        self._check_generation()
        cluster.change_alias("add", WRITTEN.format(cluster.index))
        cluster.refresh(WRITE_RETRY_TIMEOUT)
        self._loading = loading
        try:
            self._loading.begin()
            self._sender = BulkSender(cluster, self._refused)
        except BaseException:  # Ctrl-C too: nobody else knows that it has begun
            self._loading.end(merge=False)
            raise
        self._document: Document | None = None
        self._moved: dict[str, tuple[Passage, dict[str, Any]]] = {}
        self._stale: list[tuple[str, str]] = []
        self._unfit: set[str] = set()

    def _refused(self, reject: Reject) -> None:
        self._unfit.add(reject.document)
        self._on_reject(reject)

    def _see(self, document: str) -> bool:
        seen = self._seen.execute("INSERT OR IGNORE INTO seen VALUES (?)", (document,))
        return seen.rowcount == 1

    def touch(self, document: str) -> bool:
        self._known.pop(document, None)
        return self._see(document)

    def begin(self, document: Document) -> bool:
        known = self._known.pop(document.id, None)
        if not self._see(document.id):
            return False
        if known is None:
            known = self._cluster.entries([document.id]).get(document.id, [])
        self._document = document
        self._stored: dict[str, list[passages.Entry]] = defaultdict(list)
        for entry in sorted(known, key=lambda entry: (entry.number, entry.id), reverse=True):
            self._stored[entry.content].append(entry)
        self._ids = {entry.id for entry in known}
        self._dropped = set(self._ids)
        self._occurrences: Counter[str] = Counter()
        self._fingerprints: list[str] = []
        self._words = 0
        self._held: tuple[Passage, PackedPassage | passages.Entry] | None = None
        return True

    def put(self, passage: Passage, packed: PackedPassage) -> None:
        self._take(passage, packed)

    def keep(self, passage: Passage) -> None:
        self._take(passage, self._stored[passage.hash].pop())

    def _take(self, passage: Passage, source: PackedPassage | passages.Entry) -> None:
        """Hold a passage back until the next comes: the last one says that all are there."""
        if self._held is not None:
            self._put_held({})
        self._held = passage, source

    def finish(self) -> int:
        assert self._document is not None
        if self._held is not None:
            end = {
                "document_hash": self._document.hash,
                "document_digest": passages.digest(self._fingerprints),
            }
            self._put_held(end)
        self._stale += [(self._document.id, id_) for id_ in sorted(self._dropped)]
        if len(self._stale) >= DELETED_AT_ONCE:
            self._complete()
        self._document = None
        return self._words

    def _put_held(self, end: Mapping[str, str]) -> None:
        """Send the passage held back, unless the cluster holds the very same."""
        assert self._document is not None
        assert self._held is not None
        passage, source = self._held
        document, declared = self._document, self._layout.fields
        body = {**passages.fields(passage, document.metadata, document.source, declared), **end}
        body["stamp"] = passages.fingerprint(body)
        self._fingerprints.append(body["stamp"])
        if isinstance(source, passages.Entry):
            id_, self._words = source.id, self._words + source.words
            self._dropped.discard(id_)
            if source.fingerprint == body["stamp"]:
                return
            self._moved[id_] = passage, body
            if len(self._moved) >= WORDS_PAGE:
                self._send_moved()
            return
        id_ = self._free_id(passage)
        self._words += source.own_words(passage)
        self._send(passage, id_, body, source)

    def _send_moved(self) -> None:
        """Send kept passages of which something else has changed, with the vectors they have."""
        words = self._cluster.words(list(self._moved))
        for id_, (passage, body) in self._moved.items():
            if id_ not in words:
                raise IndexDamagedError(
                    f"A passage of {passage.document} vanished from {self._cluster.address} while "
                    "it was read: is another run writing to it? Run this again."
                )
            self._send(passage, id_, body, passages.packed_passage(words[id_]))
        self._moved.clear()

    def _send(
        self, passage: Passage, id_: str, body: dict[str, Any], packed: PackedPassage
    ) -> None:
        vectors = passages.vector_fields(packed, self._layout, self._cluster.dialect, passage)
        self._cluster.client.effort.add(spans=len(vectors["spans"]))
        place = f"{passage.document}#{passage.number}"
        operation = passages.index_operation(id_, {**body, **vectors})
        self._sender.send(Operation(passage.document, place, operation))

    def _free_id(self, passage: Passage) -> str:
        """Return an id that no passage of the document has."""
        while True:
            occurrence = self._occurrences[passage.hash]
            self._occurrences[passage.hash] += 1
            id_ = passages.passage_id(passage.document, passage.hash, occurrence)
            if id_ not in self._ids:
                return id_

    def _complete(self) -> None:
        """Send what waits, and delete what finished documents no longer have.

        Not before their new passages are in; and of a document of which the cluster has refused a
        passage, the former ones stay.
        """
        if self._moved:
            self._send_moved()
        if self._stale:
            self._sender.flush()
            for document, id_ in self._stale:
                if document not in self._unfit:
                    self._sender.send(Operation(document, document, passages.delete_operation(id_)))
            self._stale.clear()

    def delete(self, documents: Sequence[str]) -> int:
        self.commit()
        deleted = 0
        for first in range(0, len(documents), DELETED_AT_ONCE):
            # Half a character cannot be stored, so no document has such an id.
            names = documents[first : first + DELETED_AT_ONCE]
            stored = self._cluster.entries([d.encode("utf-8", "replace").decode() for d in names])
            for document, entries in stored.items():
                for entry in entries:
                    operation = passages.delete_operation(entry.id)
                    self._sender.send(Operation(document, document, operation))
            deleted += len(stored)
        self._sender.flush()
        self._cluster.refresh(WRITE_RETRY_TIMEOUT)
        return deleted

    def unseen(self) -> Iterator[tuple[str, str]]:
        self.commit()
        for document, source in self._cluster.sources():
            seen = self._seen.execute("SELECT 1 FROM seen WHERE id = ?", (document,)).fetchone()
            if seen is None:
                yield document, source

    def remember(self, roots: Mapping[str, str]) -> None:
        self._roots = roots
        if self._cluster.notes().get("roots") != dict(roots):
            with self._cluster.alone():
                self._cluster.note(roots=dict(roots))

    def _check_roots(self) -> None:
        """Put the roots back that another writer, which has read them before, has replaced."""
        if not self._roots:
            return
        known = self._cluster.notes().get("roots") or {}
        for prefix, folder in self._roots.items():
            if known.get(prefix, folder) != folder:
                raise RefusedError(
                    f"Another run has given {self._cluster.address} the root {known[prefix]} "
                    f"meanwhile, where this one has {folder}",
                    hint="run this again with --root and an --id-prefix of its own.",
                )
        if self._roots.items() - known.items():
            self.remember({**known, **self._roots})

    def commit(self) -> None:
        """Return when the cluster has acknowledged, and shows, all that was sent."""
        self._complete()
        self._sender.flush()
        self._check_generation()
        self._check_roots()
        self._cluster.refresh(WRITE_RETRY_TIMEOUT)

    def _check_generation(self) -> None:
        """Raise unless the alias names this very index: one that is gone, a cluster makes anew."""
        if self._generation is None:  # it is built beside the live one
            return
        now = self._cluster.generations()
        if now != self._generation or list(now) != [self._cluster.index]:
            check_live(self._cluster)
            raise GoneError(f"{self._cluster.address} was made anew meanwhile: open it again.")

    def close(self, *, merge: bool = True) -> None:
        """Send what is left of finished documents and put the index's settings back."""
        whole = False
        try:
            if not merge:  # something has gone wrong, or somebody wants to leave
                self._sender.stop_retrying()
            self._complete()
            self._sender.close()
            whole = merge
        except BaseException:
            with suppress(ClusterError):
                self._sender.close(abandon=True)
            raise
        finally:
            self._loading.end(merge=whole)
            self._seen.close()

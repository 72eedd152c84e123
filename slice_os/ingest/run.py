"""An indexing run, from documents to the committed index."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from typing import Literal

from slice_os.corpus import Corpus
from slice_os.encoders import Encoder
from slice_os.encoders.phrase_head import PhraseHead
from slice_os.errors import CorpusError
from slice_os.host import one_blas_thread
from slice_os.ingest.partition import Partition
from slice_os.ingest.plan import IndexReport, Step, ahead, plan
from slice_os.run_stats import Throttle
from slice_os.spans import PackedPassage
from slice_os.storage.contract import Target, Writer
from slice_os.types import Document, Passage, Reject, Words

COMMIT_SECONDS = 120.0
"""How long a run goes on before it commits what it has written."""
AHEAD = 256
"""How many documents or passages a stage may be ahead of the next."""
DUPLICATE = "another document of this run has the same id"
Prune = bool | Literal["all"] | Callable[[int, int], bool]


class _Load:
    """Hands the steps to the writer and keeps count."""

    def __init__(
        self,
        writer: Writer,
        max_words: int,
        head: PhraseHead | None,
        report: IndexReport,
        on_reject: Callable[[Reject], None],
    ) -> None:
        self._writer, self._report, self._on_reject = writer, report, on_reject
        self._max_words, self._head = max_words, head
        self._state: Literal["fresh", "begun", "refused"] = "fresh"

    def take(self, step: Step, words: Words) -> None:
        """Write a passage, note that a document is unchanged or at its end, or refuse it."""
        if step.passage is not None:
            self._report.characters_done += len(step.passage.text)
        if step.problem:
            self._refuse(step.document, step.problem)
        elif step.unchanged:
            if self._writer.touch(step.document.id):
                self._report.unchanged += 1
            else:
                self._refuse(step.document, DUPLICATE)
        elif step.passage is None:
            self._end(step.document, step.replaces)
        elif not step.encode or len(words):
            self._put(step.document, step.passage, words if step.encode else None)

    def _put(self, document: Document, passage: Passage, words: Words | None) -> None:
        if self._state == "fresh":
            self._state = "begun" if self._writer.begin(document) else "refused"
        if self._state == "refused":
            return
        self._report.passages += 1
        if words is None:
            self._writer.keep(passage)
        else:
            self._writer.put(
                passage, PackedPassage.pack(words, self._max_words, passage, self._head)
            )
            self._report.encoded_words += len(words)

    def _end(self, document: Document, replaces: bool) -> None:
        if self._state == "begun":
            self._report.words += self._writer.finish()
            self._report.documents += 1
            self._report.replaced += replaces
        elif self._state == "refused":
            self._refuse(document, DUPLICATE)
        else:
            self._refuse(document, "it holds no word that the encoder knows")
        self._state = "fresh"

    def _refuse(self, document: Document, reason: str) -> None:
        self._report.rejected += 1
        name = str(document.id).encode("utf-8", "replace").decode()
        self._on_reject(Reject(name, reason, name))


def index_documents(
    documents: Iterable[Document],
    backend: Target,
    encoder: Encoder,
    *,
    on_reject: Callable[[Reject], None] = lambda reject: None,
    on_progress: Callable[[IndexReport], object] = lambda report: None,
    prune: Prune = False,
    roots: Mapping[str, str] | None = None,
    max_rate: float | None = None,
    partition: Partition | None = None,
) -> IndexReport:
    """Bring an index up to date with `documents`, encoding only what changed.

    A document whose id this run has already seen, that has no word the encoder knows, or that is
    not made of texts, is handed to `on_reject`; what the index holds of it stays. On an exception,
    Ctrl-C included, all complete documents are committed; one that `documents` raises is raised
    when those before it are indexed.

    With `prune`, documents that the run did not see are deleted: of a `Corpus` those that came
    from the paths it was given, but for those of a file that was rejected, wholly or in part. If
    they are more than a third, they are only deleted if `prune` is ``"all"``, or a function that,
    called with their number and that of all, says so. `roots` is what the index is to remember
    (`Corpus.under`). `max_rate` is the most passages a second, of documents that changed. Of a
    `partition` are all documents that the run looks at, writes and prunes.

    Raises:
        MovedError: another generation has become the live one; what is done is kept.
    """
    report = IndexReport()
    given, mine = documents, partition.holds if partition else _covers_all
    if isinstance(given, Corpus):
        given.only(mine)
    if partition is not None:
        documents = (document for document in documents if mine(document.id))
    throttle, effort = Throttle(max_rate), backend.effort
    before, started = effort.so_far(), time.monotonic()
    rejected: set[str] = set()
    unfit: set[str] = set()

    def reject_document(reject: Reject) -> None:
        rejected.add(reject.document)
        on_reject(reject)

    def reject_passage(reject: Reject) -> None:
        """Count a passage that the backend refuses, and its document not as indexed."""
        report.rejected += 1
        if reject.document not in unfit:
            unfit.add(reject.document)
            report.documents -= 1
        on_reject(reject)

    def count_effort() -> None:
        report.seconds = time.monotonic() - started
        effort.since(before, report)

    try:
        with (
            backend.writer(reject_passage, partition) as writer,
            one_blas_thread(),
            closing(ahead(plan(documents, backend, report), AHEAD)) as planned,
        ):
            if roots is not None:
                writer.remember(roots)
            load = _Load(writer, backend.meta.max_words, encoder.head, report, reject_document)
            committed = time.monotonic()
            for step, words in effort.timed(_encode(planned, encoder), "encoding_seconds"):
                if step.passage is not None and (waited := throttle.take()):
                    effort.add(waiting_seconds=waited)
                with effort.spent("writing_seconds"):
                    load.take(step, words)
                    if step.passage is None and time.monotonic() - committed > COMMIT_SECONDS:
                        writer.commit()
                        committed = time.monotonic()
                count_effort()
                on_progress(report)
            with effort.spent("writing_seconds"):
                writer.commit()
            if prune:
                covers = getattr(given, "covers", None) or _covers_all
                _prune(writer, report, prune, covers, mine, rejected)
        report.rejected += getattr(given, "rejects", 0)  # a corpus counts its own
    finally:
        if isinstance(given, Corpus):
            given.only(_covers_all)
        count_effort()
    return report


def claim_roots(corpus: Iterable[Document] | None, backend: Target | None) -> dict[str, str] | None:
    """Have a corpus take its ids from an index's roots; return them if they change.

    Documents that are no `Corpus` have ids of their own.
    """
    if not isinstance(corpus, Corpus):
        return None
    if backend is None:
        return corpus.under({})
    known = backend.roots()
    roots = corpus.under(known)
    for prefix in roots.keys() - known.keys():
        if prefix and any(id_.startswith(prefix) for id_, _ in backend.sources()):
            raise CorpusError(
                f"The index {backend.location} has ids that begin with {prefix!r}",
                hint=f"give another --id-prefix, such as --id-prefix {prefix.rstrip('/')}-2/.",
            )
    return None if roots == known else roots


def _covers_all(source: str) -> bool:
    return True


def _prune(
    writer: Writer,
    report: IndexReport,
    prune: Prune,
    covers: Callable[[str], bool],
    mine: Callable[[str], bool],
    rejected: set[str],
) -> None:
    """Delete what the run did not see and was not rejected, unless it is too much."""
    unseen = dict(writer.unseen())
    gone = [
        id_
        for id_, source in unseen.items()
        if mine(id_) and id_ not in rejected and covers(source)
    ]
    total = len(gone) + report.documents + report.unchanged
    few = 3 * len(gone) <= total
    if not few and not (prune(len(gone), total) if callable(prune) else prune == "all"):
        report.kept = len(gone)
        return
    report.pruned = writer.delete(gone) if gone else 0


def _encode(steps: Iterable[Step], encoder: Encoder) -> Iterator[tuple[Step, Words]]:
    """Pair each step with its passage's words: none where nothing is to be encoded."""
    waiting: deque[Step] = deque()
    failed: list[Exception] = []

    def texts() -> Iterator[str]:
        try:
            for step in steps:
                waiting.append(step)
                yield step.passage.text if step.passage and step.encode else ""
        except Exception as exc:  # what was read before it is indexed first
            failed.append(exc)

    for words in encoder.encode_words(texts()):
        yield waiting.popleft(), words
    if failed:
        raise failed[0]

"""Corpus -> encoder -> spans -> backend, in bounded memory.

Reading, splitting and tokenizing run ahead in a thread of their own while the encoder works; the
index is written in the order of the corpus.
"""

from __future__ import annotations

import re
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from queue import Full, Queue
from threading import Event, Lock, Thread
from typing import Literal, TypeVar

from slice_os.backends.base import Backend, StoredDocument, Writer
from slice_os.corpus import Corpus, split
from slice_os.effort import Throttle
from slice_os.encoder import Encoder
from slice_os.errors import CorpusError, LocationError, MovedError
from slice_os.records import Document, Passage, Plain, Reject, Words
from slice_os.spans import PackedPassage
from slice_os.threads import one_blas_thread

T = TypeVar("T")
Prune = bool | Literal["all"] | Callable[[int, int], bool]
AHEAD = 256
"""How many documents or passages a stage may be ahead of the next."""
LONGEST_WORD = 100_000
"""Characters; texts have none, but data that was taken for text has."""
LONGEST_TITLE = 10_000
"""Characters: every passage of a document has its title."""
SETTLED_SECONDS = 120.0
"""After which a run commits, so that it need not keep what it may have to repeat,"""
SETTLED_CHARACTERS = 32_000_000
"""or after so many."""
_WORD = re.compile(r"[^\s\u0e00-\U0010ffff]+")  # from Thai on, words need no spaces
LOOKED_UP = 64
"""Documents that the index is asked about at once,"""
LOOKED_UP_CHARACTERS = 100_000
"""or fewer, if they are long."""


@dataclass(slots=True)
class IndexReport(Plain):
    """What an indexing run did; live while it runs.

    `documents` were indexed, `replaced` of them had been in the index before; `passages` are
    theirs, `kept` are documents that pruning would have deleted, were they not so many. `spans`,
    `retries` and what took how many seconds are explained by `slice_os.effort.Effort`.
    """

    documents: int = 0
    replaced: int = 0
    unchanged: int = 0
    passages: int = 0
    words: int = 0
    encoded_words: int = 0
    rejected: int = 0
    pruned: int = 0
    kept: int = 0
    spans: int = 0
    retries: int = 0
    seconds: float = 0.0
    encoding_seconds: float = 0.0
    writing_seconds: float = 0.0
    sending_seconds: float = 0.0
    waiting_seconds: float = 0.0
    characters_read: int = 0
    characters_done: int = 0


_REPEATED = (
    "documents", "replaced", "unchanged", "passages", "words", "rejected", "characters_read",
    "characters_done",
)  # fmt: skip
"""What is counted again of documents that are met again."""


class _Unsettled:
    """Documents, and again those that are not settled; threads may take turns."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._source = iter(documents)
        self._failed: Exception | None = None
        self._kept: list[Document] = []
        self._settled = self._done = self._met = self._size = 0
        self._due = time.monotonic() + SETTLED_SECONDS
        self._one = Lock()

    def __iter__(self) -> Iterator[Document]:
        at = self._settled
        while True:
            with self._one:
                if at - self._settled == len(self._kept) and not self._read():
                    return
                document = self._kept[at - self._settled]
            at += 1
            yield document

    def _read(self) -> bool:
        """Keep one more; False if there is none."""
        if self._failed is not None:
            raise self._failed
        try:
            document = next(self._source, None)
        except Exception as exc:
            self._failed = exc
            raise
        if document is not None:
            self._kept.append(document)
            self._size += len(document.text) if isinstance(document.text, str) else 0
        return document is not None

    @property
    def is_repeating(self) -> bool:
        """Whether the next to be done was done before."""
        return self._done < self._met

    def done(self) -> bool:
        """Note that one more is done; tell whether it is time to settle."""
        self._done += 1
        return self._size > SETTLED_CHARACTERS or time.monotonic() > self._due

    def settle(self) -> None:
        """Forget those that are done."""
        with self._one:
            del self._kept[: self._done - self._settled]
            self._settled, self._size = self._done, 0
        self._due = time.monotonic() + SETTLED_SECONDS

    def repeat(self) -> None:
        """Have those that are not settled done again."""
        self._met = max(self._met, self._done)
        self._done = self._settled


@dataclass(frozen=True, slots=True)
class _Step:
    """One thing to do for a document, in order: a passage, or (None) the document's end."""

    document: Document
    passage: Passage | None = None
    encode: bool = False
    unchanged: bool = False
    replaces: bool = False
    problem: str = ""


def index_documents(
    documents: Iterable[Document],
    backend: Backend,
    encoder: Encoder,
    *,
    on_reject: Callable[[Reject], None] = lambda reject: None,
    on_progress: Callable[[IndexReport], None] = lambda report: None,
    prune: Prune = False,
    roots: Mapping[str, str] | None = None,
    max_rate: float | None = None,
    reopen: Callable[[], tuple[Backend, Encoder]] | None = None,
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
    (`Corpus.under`). `max_rate` is the most passages a second, of documents that changed.

    If another generation takes the place of the index meanwhile, the run goes on with what `reopen`
    returns: with the documents that are not known to be in it.
    """
    report, settled = IndexReport(), IndexReport()
    throttle, effort = Throttle(max_rate), backend.effort
    before, started = effort.so_far(), time.monotonic()
    source, former = _Unsettled(documents), None

    def count() -> None:
        report.seconds = time.monotonic() - started
        effort.since(before, report)

    unfit: set[str] = set()
    rejected: set[str] = set()

    def told(reject: Reject) -> None:
        rejected.add(reject.document)
        if not source.is_repeating:
            on_reject(reject)

    def refused(reject: Reject) -> None:
        """Count a passage that the backend refuses, and its document not as indexed."""
        report.rejected += 1
        if reject.document not in unfit:
            unfit.add(reject.document)
            report.documents -= 1
        on_reject(reject)

    def work(writer: Writer) -> None:
        nonlocal settled
        if roots is not None:
            writer.remember(roots)
        load = _Load(writer, backend.meta.max_words, report, told)
        with closing(_ahead(_plan(source, backend, report), AHEAD)) as planned:
            for step, words in effort.timed(_encode(planned, encoder), "encoding_seconds"):
                if step.passage is not None and (waited := throttle.take()):
                    effort.add(waiting_seconds=waited)
                with effort.spent("writing_seconds"):
                    load.take(step, words)
                    if step.passage is None and source.done():
                        writer.commit()
                        source.settle()
                        settled = replace(report)
                count()
                on_progress(report)
        with effort.spent("writing_seconds"):
            writer.commit()
        source.settle()
        settled = replace(report)
        if prune:
            covers = getattr(documents, "covers", None) or _covers_all
            _prune(writer, report, prune, covers, rejected)

    try:
        while True:
            try:
                with backend.writer(refused, former) as writer, one_blas_thread():
                    former = writer
                    work(writer)
                break
            except MovedError:
                if reopen is None:
                    raise
                backend, encoder = reopen()
                effort, spent = backend.effort, effort.so_far()
                now = effort.so_far()
                before = {name: now[name] - (spent[name] - before[name]) for name in now}
                source.repeat()
                settled.characters_read = settled.characters_done
                for name in _REPEATED:
                    setattr(report, name, getattr(settled, name))
                unfit.clear()
        report.rejected += getattr(documents, "rejects", 0)  # a corpus counts its own
    finally:
        count()
    return report


def claim_roots(corpus: Corpus, backend: Backend | None) -> dict[str, str] | None:
    """Have a corpus take its ids from an index's roots; return them if they change."""
    if backend is None:
        return corpus.under({})
    known = backend.roots()
    if known is None and not corpus.names_root and any(True for _ in backend.sources()):
        raise LocationError(
            f"The index {backend.location} was made before an index remembered where its ids "
            "start: give --root FOLDER (for an id like docs/a.txt the folder that holds docs), "
            "or index to a new location."
        )
    roots = corpus.under(known or {})
    for prefix in roots.keys() - (known or roots).keys():
        if prefix and any(id_.startswith(prefix) for id_, _ in backend.sources()):
            raise CorpusError(
                f"The index {backend.location} has ids that begin with {prefix!r}: give another "
                "--id-prefix."
            )
    return None if roots == known else roots


def _covers_all(source: str) -> bool:
    return True


def _prune(
    writer: Writer,
    report: IndexReport,
    prune: Prune,
    covers: Callable[[str], bool],
    rejected: set[str],
) -> None:
    """Delete what the run did not see and was not rejected, unless it is too much."""
    unseen = dict(writer.unseen())
    gone = [id_ for id_, source in unseen.items() if id_ not in rejected and covers(source)]
    total = len(gone) + report.documents + report.unchanged
    few = 3 * len(gone) <= total
    if not few and not (prune(len(gone), total) if callable(prune) else prune == "all"):
        report.kept = len(gone)
        return
    report.pruned = writer.delete(gone) if gone else 0


def _plan(documents: Iterable[Document], backend: Backend, report: IndexReport) -> Iterator[_Step]:
    """Decide what of each document is unchanged, what is kept and what must be encoded."""
    for document, problem, stored in _look_up(documents, backend):
        if problem:
            # Without its text: it waits.
            yield _Step(Document(document.id, ""), problem=problem)
            continue
        report.characters_read += len(document.text)
        if stored is not None and stored.hash == document.hash:
            report.characters_done += len(document.text)
            yield _Step(Document(document.id, ""), unchanged=True)  # without its text: it waits
            continue
        known = stored.passages if stored else Counter[str]()
        for passage in split(document, backend.meta.passage_words):
            kept = known[passage.hash] > 0
            known[passage.hash] -= kept
            yield _Step(document, passage, encode=not kept)
        yield _Step(document, replaces=stored is not None and stored.hash is not None)


def _look_up(
    documents: Iterable[Document], backend: Backend
) -> Iterator[tuple[Document, str, StoredDocument | None]]:
    """Pair each document with why it cannot be indexed, or with what is stored of it."""
    failed: list[Exception] = []
    for batch in _batches(documents, failed):
        problems = [problem_with(document) for document in batch]
        sound = [one.id for one, problem in zip(batch, problems, strict=True) if not problem]
        stored = backend.stored(sound) if sound else {}
        for document, problem in zip(batch, problems, strict=True):
            yield document, problem, None if problem else stored.get(document.id)
    if failed:
        raise failed[0]


def _batches(documents: Iterable[Document], failed: list[Exception]) -> Iterator[list[Document]]:
    """Yield documents in lists, short enough to be held; an error of their source goes to a list.

    What was read before the error is indexed first.
    """
    batch: list[Document] = []
    size = 0
    try:
        for document in documents:
            batch.append(document)
            size += len(document.text) if isinstance(document.text, str) else 0
            if len(batch) == LOOKED_UP or size > LOOKED_UP_CHARACTERS:
                yield batch
                batch, size = [], 0
    except Exception as exc:
        failed.append(exc)
    yield batch


def problem_with(document: Document) -> str:
    """Return why a document cannot be indexed, nothing if it can."""
    try:
        if all(isinstance(text, str) for text in (document.id, document.title, document.text)):
            document.id.encode()
            if not (document.id and document.hash):
                return "it has no id"
            if len(document.title) > LONGEST_TITLE:
                return f"its title has more than {LONGEST_TITLE:,} characters"
            return _endless_word(document.text)
    except UnicodeEncodeError:
        return "it holds half a character (a lone surrogate)"
    except (TypeError, ValueError) as exc:
        return f"its metadata cannot be stored: {exc}"
    return "its id, title and text must be texts"


def _endless_word(text: str) -> str:
    if len(text) > LONGEST_WORD:  # one word is a passage, however long, and encoded at once
        for word in _WORD.finditer(text):
            if word.end() - word.start() > LONGEST_WORD:
                return f"it has a word of more than {LONGEST_WORD:,} characters"
    return ""


def _encode(steps: Iterable[_Step], encoder: Encoder) -> Iterator[tuple[_Step, Words]]:
    """Pair each step with its passage's words: none where nothing is to be encoded."""
    waiting: deque[_Step] = deque()
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


class _Load:
    """Hands the steps to the writer and keeps count."""

    def __init__(
        self,
        writer: Writer,
        max_words: int,
        report: IndexReport,
        on_reject: Callable[[Reject], None],
    ) -> None:
        self._writer, self._report, self._on_reject = writer, report, on_reject
        self._max_words = max_words
        self._state: Literal["fresh", "begun", "refused"] = "fresh"

    def take(self, step: _Step, words: Words) -> None:
        if step.passage is not None:
            self._report.characters_done += len(step.passage.text)
        if step.problem:
            self._refuse(step.document, step.problem)
        elif step.unchanged:
            if self._writer.touch(step.document.id):
                self._report.unchanged += 1
            else:
                self._refuse(step.document, "another document of this run has the same id")
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
            self._writer.put(passage, PackedPassage.pack(words, self._max_words, passage))
            self._report.encoded_words += len(words)

    def _end(self, document: Document, replaces: bool) -> None:
        if self._state == "begun":
            self._report.words += self._writer.finish()
            self._report.documents += 1
            self._report.replaced += replaces
        elif self._state == "refused":
            self._refuse(document, "another document of this run has the same id")
        else:
            self._refuse(document, "it holds no word that the encoder knows")
        self._state = "fresh"

    def _refuse(self, document: Document, reason: str) -> None:
        self._report.rejected += 1
        name = str(document.id).encode("utf-8", "replace").decode()
        self._on_reject(Reject(name, reason, name))


def _ahead(items: Iterable[T], size: int) -> Generator[T, None, None]:
    """Yield `items`, up to `size` of them worked out ahead in a thread."""
    queue: Queue[T | _End] = Queue(size)
    abandoned = Event()

    def put(item: T | _End) -> bool:
        while not abandoned.is_set():
            with suppress(Full):
                queue.put(item, timeout=0.1)
                return True
        return False

    def work() -> None:
        try:
            if all(put(item) for item in items):
                put(_End(None))
        except BaseException as exc:
            put(_End(exc))

    Thread(target=work, name="slice-os-ahead", daemon=True).start()
    try:
        while not isinstance(item := queue.get(), _End):
            yield item
        if item.error is not None:
            raise item.error
    finally:
        abandoned.set()


@dataclass(frozen=True, slots=True)
class _End:
    error: BaseException | None
